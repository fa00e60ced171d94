//! Who we are to an agent. Secrets are read when they are needed, so that a changed one needs no restart, and are never
//! printed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ClientError;
use crate::oauth::ClientCredentials;

/// Something that must not be seen.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// Itself.
    Plain(String),
    /// The name of a variable of the environment, read at every call.
    Environment(String),
}

impl Secret {
    /// The secret as of now.
    ///
    /// # Errors
    /// When the variable is not set, with its name.
    pub fn read(&self) -> Result<String, ClientError> {
        match self {
            Self::Plain(secret) => Ok(secret.clone()),
            Self::Environment(name) => std::env::var(name)
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| ClientError::Secret(format!("the environment variable {name} is not set"))),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => formatter.write_str("***"),
            Self::Environment(name) => write!(formatter, "${name}"),
        }
    }
}

/// Who we are to an agent.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// Nobody in particular.
    #[default]
    None,
    /// `Authorization: Bearer …`.
    Bearer(Secret),
    /// A key in a header, `X-API-Key` as a rule.
    ApiKey {
        /// The header.
        header: HeaderName,
        /// The key.
        key: Secret,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that is fetched, and fetched again before it runs out.
    OAuth(ClientCredentials),
}

impl Credentials {
    /// Adds what the agent wants to see.
    pub(crate) fn apply(&self, token: Option<&str>, headers: &mut HeaderMap) -> Result<(), ClientError> {
        let (name, text) = match (self, token) {
            (Self::None, _) | (Self::OAuth(_), None) => return Ok(()),
            (Self::OAuth(_), Some(token)) => (AUTHORIZATION, format!("Bearer {token}")),
            (Self::Bearer(secret), _) => (AUTHORIZATION, format!("Bearer {}", secret.read()?)),
            (Self::ApiKey { header, key }, _) => (header.clone(), key.read()?),
            (Self::Basic { user, password }, _) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.read()?));
                (AUTHORIZATION, format!("Basic {pair}"))
            }
        };
        headers.insert(name, sensitive(&text)?);
        Ok(())
    }
}

/// A header value that no log prints.
pub(crate) fn sensitive(text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        ClientError::Secret("a secret has characters that cannot stand in a header, such as a line break".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}
