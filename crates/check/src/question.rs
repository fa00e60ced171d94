//! A request of ours before it is sent, and who sends it.

use http::{HeaderName, HeaderValue};

use crate::subject::shortened;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Whoever was given the credentials.
    Us,
    /// Somebody without any.
    Nobody,
    /// Somebody with credentials that were never given out.
    Impostor,
    /// The second caller; like nobody where there is none.
    Other,
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) version: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) caller: Caller,
    /// Whether the extensions that the agent insists on are declared.
    pub(crate) declares: bool,
}

impl Question {
    pub(crate) fn get(url: &str, version: Option<&'static str>) -> Self {
        let url = url.to_owned();
        Self { method: "GET", url, version, headers: Vec::new(), body: None, caller: Caller::Us, declares: true }
    }

    /// What it was, for the report.
    pub(crate) fn shown(&self) -> String {
        let path = url::Url::parse(&self.url)
            .map_or_else(|_| self.url.clone(), |url| url[url::Position::BeforePath..].to_owned());
        let version = match self.version {
            Some(version) => format!(" (A2A-Version: {version})"),
            None => " (no A2A-Version)".to_owned(),
        };
        let caller = match self.caller {
            Caller::Us => "",
            Caller::Nobody => " (without credentials)",
            Caller::Impostor => " (with credentials that nobody has)",
            Caller::Other => " (as the second caller)",
        };
        let body = self.body.as_ref().map(|body| format!(" {}", String::from_utf8_lossy(body))).unwrap_or_default();
        shortened(&format!("{} {path}{version}{caller}{body}", self.method))
    }
}
