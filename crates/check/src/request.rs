//! A request before it is sent, and its caller.

use http::{HeaderName, HeaderValue};

use crate::agent::one_line;

/// Whose credentials a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The configured ones.
    First,
    Anonymous,
    /// Some that were never issued.
    WrongCredentials,
    /// Those of the second caller; none if there is no second caller.
    Second,
}

#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) version: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) caller: Caller,
    /// Whether the required extensions are declared.
    pub(crate) declares_extensions: bool,
}

impl TestRequest {
    pub(crate) fn get(url: &str, version: Option<&'static str>) -> Self {
        Self {
            method: "GET",
            url: url.to_owned(),
            version,
            headers: Vec::new(),
            body: None,
            caller: Caller::First,
            declares_extensions: true,
        }
    }

    /// Describes it in the report.
    pub(crate) fn described(&self) -> String {
        let path = url::Url::parse(&self.url)
            .map_or_else(|_| self.url.clone(), |url| url[url::Position::BeforePath..].to_owned());
        let version = match self.version {
            Some(version) => format!(" (A2A-Version: {version})"),
            None => " (no A2A-Version)".to_owned(),
        };
        let caller = match self.caller {
            Caller::First => "",
            Caller::Anonymous => " (without credentials)",
            Caller::WrongCredentials => " (with credentials that were never issued)",
            Caller::Second => " (as the second caller)",
        };
        let body = self.body.as_ref().map(|body| format!(" {}", String::from_utf8_lossy(body))).unwrap_or_default();
        one_line(&format!("{} {path}{version}{caller}{body}", self.method))
    }
}
