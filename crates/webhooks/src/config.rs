//! The configuration of a webhook: validated when it is set, stored as JSON, and returned without its secrets.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{AuthenticationInfo, PushConfig, PushPayload, Version};
use switchboard_engine::Error;
use switchboard_engine::store::webhooks::WebhookRow;

/// The longest id: it is part of a header and of an index.
const ID_BYTES: usize = 128;
/// The longest token or credentials; longer ones would not fit into the headers that receivers take.
const SECRET_BYTES: usize = 4 << 10;
const SCHEME_BYTES: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    /// Set with protocol version 0.3, in which its bodies are written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) v03: bool,
    /// As its caller asked for it, without its names, which are columns of their own.
    #[serde(flatten)]
    pub(crate) push: PushConfig,
}

impl Config {
    /// Validates everything but the URL, which the SSRF guard checks.
    pub(crate) fn read(version: Version, asked: &PushConfig) -> Result<Self, Error> {
        if let Some(id) = &asked.id
            && (id.len() > ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(invalid("id", format!("must be at most {ID_BYTES} visible ASCII characters without spaces")));
        }
        if let Some(token) = &asked.token {
            check_secret("token", token)?;
        }
        if let Some(AuthenticationInfo { scheme, credentials }) = &asked.authentication {
            if scheme.len() > SCHEME_BYTES || !scheme.bytes().all(is_token_byte) {
                let problem = "must be the name of an HTTP authentication scheme, such as Bearer or Basic";
                return Err(invalid("authentication.scheme", problem.to_owned()));
            }
            if let Some(credentials) = credentials {
                check_secret("authentication.credentials", credentials)?;
            }
        }
        let push = PushConfig { tenant: None, id: None, task_id: None, ..asked.clone() };
        Ok(Self { v03: version == Version::V03, push })
    }

    pub(crate) fn stored(row: &WebhookRow) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&row.config)
    }

    pub(crate) fn version(&self) -> Version {
        if self.v03 { Version::V03 } else { Version::V1 }
    }

    /// A number for the wanted form of bodies, by which the store sees a change of it.
    pub(crate) fn form(&self) -> u8 {
        let payload = match self.push.payload {
            None => 0,
            Some(PushPayload::Task) => 1,
            Some(PushPayload::StatusUpdate) => 2,
            Some(PushPayload::StreamResponse) => 3,
        };
        payload + if self.v03 { 4 } else { 0 }
    }

    /// The configuration as callers read it.
    /// Secrets are left out and not masked: a client that writes back what it has read would store the mask.
    pub(crate) fn shown(self, task: &str, id: &str, with_secrets: bool) -> PushConfig {
        let mut shown = PushConfig { id: Some(id.to_owned()), task_id: Some(task.to_owned()), ..self.push };
        if !with_secrets {
            shown.token = None;
            shown.authentication.iter_mut().for_each(|authentication| authentication.credentials = None);
        }
        shown
    }
}

pub(crate) fn invalid(field: &'static str, problem: String) -> Error {
    Error::Invalid { field, problem }
}

/// Tokens and credentials become headers as they are, so they must not contain line breaks.
fn check_secret(field: &'static str, secret: &str) -> Result<(), Error> {
    if secret.len() <= SECRET_BYTES && secret.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(());
    }
    let problem = format!("must be at most {SECRET_BYTES} ASCII characters without line breaks or control characters");
    Err(invalid(field, problem))
}

/// RFC 9110, `tchar`.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
