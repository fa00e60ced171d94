//! Credentials for an agent. Secrets are read when they are needed, so that a changed one needs no restart, and are
//! redacted in `Debug`.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Request, Uri};

use crate::oauth::ClientCredentials;
use crate::{ClientError, signature};

/// A secret, or where to read it.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The secret itself.
    Plain(String),
    /// An environment variable, read at every call.
    Environment(String),
    /// The same, as long as it is permitted, which is asked at every call.
    Permitted(String, SecretPermit),
}

/// Says whether a variable may be read now, and otherwise why not.
#[derive(Clone)]
pub struct SecretPermit(Arc<Permits>);

type Permits = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl SecretPermit {
    /// One that asks a function, which is told the variable.
    pub fn new(permits: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(permits))
    }
}

impl PartialEq for SecretPermit {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SecretPermit {}

impl Secret {
    /// Reads the secret.
    ///
    /// # Errors
    /// When the variable is not set or may not be read, with its name.
    pub fn read(&self) -> Result<String, ClientError> {
        match self {
            Self::Plain(secret) => Ok(secret.clone()),
            Self::Environment(name) => variable(name),
            Self::Permitted(name, SecretPermit(permits)) => {
                permits(name).map_err(ClientError::Secret)?;
                variable(name)
            }
        }
    }
}

fn variable(name: &str) -> Result<String, ClientError> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| ClientError::Secret(format!("the environment variable {name} is not set")))
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => formatter.write_str("***"),
            Self::Environment(name) | Self::Permitted(name, _) => write!(formatter, "${name}"),
        }
    }
}

/// Credentials for an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Credentials {
    /// No credentials.
    #[default]
    None,
    /// `Authorization: Bearer …`.
    Bearer(Secret),
    /// A key in a header, `X-API-Key` as a rule.
    ApiKey { header: HeaderName, key: Secret },
    /// A key in the query, for agents whose card wants it there.
    ApiKeyInQuery {
        /// The name of the parameter.
        name: String,
        key: Secret,
    },
    /// `Authorization: Basic …`.
    Basic { user: String, password: Secret },
    /// A signature over every request with a secret that both sides have, in a header, `X-Signature` as a rule:
    /// `t=<seconds since 1970>,v1=<hexadecimal HMAC-SHA256>` over `<seconds>.<method>.<path and query>.<body>`.
    Signature { header: HeaderName, secret: Secret },
    /// A token that is fetched, and fetched again before it expires.
    OAuth(ClientCredentials),
}

impl Credentials {
    /// Whether the secret can be read now.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self) -> Result<(), ClientError> {
        match self {
            Self::None => Ok(()),
            Self::Bearer(secret)
            | Self::ApiKey { key: secret, .. }
            | Self::ApiKeyInQuery { key: secret, .. }
            | Self::Basic { password: secret, .. }
            | Self::Signature { secret, .. } => secret.read().map(drop),
            Self::OAuth(oauth) => oauth.client_secret.read().map(drop),
        }
    }

    /// Adds a query parameter if the credentials are one; says whether they are.
    pub(crate) fn add_to_uri(&self, uri: &mut Uri) -> Result<bool, ClientError> {
        let Self::ApiKeyInQuery { name, key } = self else { return Ok(false) };
        let wrong = |problem: String| ClientError::Invalid { field: "url", problem };
        let mut url = url::Url::parse(&uri.to_string()).map_err(|error| wrong(error.to_string()))?;
        url.query_pairs_mut().append_pair(name, &key.read()?);
        *uri = Uri::try_from(url.as_str()).map_err(|_| wrong("it cannot carry a key".to_owned()))?;
        Ok(true)
    }

    /// Adds the header to a request that is otherwise complete.
    pub(crate) fn apply(&self, token: Option<&str>, request: &mut Request<Bytes>) -> Result<(), ClientError> {
        let (name, text) = match (self, token) {
            (Self::None | Self::ApiKeyInQuery { .. }, _) | (Self::OAuth(_), None) => return Ok(()),
            (Self::OAuth(_), Some(token)) => (AUTHORIZATION, format!("Bearer {token}")),
            (Self::Bearer(secret), _) => (AUTHORIZATION, format!("Bearer {}", secret.read()?)),
            (Self::ApiKey { header, key }, _) => (header.clone(), key.read()?),
            (Self::Signature { header, secret }, _) => (header.clone(), signature::of(&secret.read()?, request)),
            (Self::Basic { user, password }, _) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.read()?));
                (AUTHORIZATION, format!("Basic {pair}"))
            }
        };
        request.headers_mut().insert(name, sensitive(&text)?);
        Ok(())
    }
}

/// A header value that is redacted in logs.
fn sensitive(text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        ClientError::Secret("a secret has characters that cannot stand in a header, such as a line break".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}
