//! The credentials of a caller as they are sent: headers, or a query parameter.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_client::{ClientError, Credentials};

/// A key that was never issued.
const UNKNOWN_KEY: &str = "a2a-check-no-such-key";
const UNKNOWN_BEARER: &str = "Bearer a2a-check-no-such-key";

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallerIdentity {
    pub(crate) headers: HeaderMap,
    /// Added to the url.
    pub(crate) parameter: Option<(String, String)>,
}

impl CallerIdentity {
    /// Adds credentials; returns the secrets in them.
    pub(crate) fn add(&mut self, credentials: &Credentials) -> Result<Vec<String>, ClientError> {
        let (name, text, secrets) = match credentials {
            Credentials::None => return Ok(Vec::new()),
            Credentials::Bearer(secret) => {
                let secret = secret.read()?;
                (AUTHORIZATION, format!("Bearer {secret}"), vec![secret])
            }
            Credentials::ApiKey { header, key } => {
                let key = key.read()?;
                (header.clone(), key.clone(), vec![key])
            }
            Credentials::ApiKeyInQuery { name, key } => {
                let key = key.read()?;
                self.parameter = Some((name.clone(), key.clone()));
                return Ok(vec![key]);
            }
            Credentials::Basic { user, password } => {
                let password = password.read()?;
                let pair = STANDARD.encode(format!("{user}:{password}"));
                (AUTHORIZATION, format!("Basic {pair}"), vec![pair, password])
            }
            Credentials::Signature { .. } => {
                let problem = "checks send requests of their own and cannot sign them; use another way to be known";
                return Err(ClientError::Secret(problem.to_owned()));
            }
            Credentials::OAuth(_) => {
                let problem = "checks need a token that is there already, not one to be fetched";
                return Err(ClientError::Secret(problem.to_owned()));
            }
        };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| ClientError::Secret("a secret has characters that cannot stand in a header".to_owned()))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(secrets)
    }

    /// The same headers without credentials.
    pub(crate) fn anonymous(&self, credentials: &Credentials) -> Self {
        let mut headers = self.headers.clone();
        for name in [AUTHORIZATION, COOKIE, HeaderName::from_static("x-api-key")] {
            headers.remove(name);
        }
        if let Credentials::ApiKey { header, .. } = credentials {
            headers.remove(header);
        }
        Self { headers, parameter: None }
    }

    /// The same with credentials of the same kind that were never issued.
    pub(crate) fn with_wrong_credentials(&self, credentials: &Credentials) -> Self {
        let mut caller = self.anonymous(credentials);
        match credentials {
            Credentials::ApiKey { header, .. } => {
                caller.headers.insert(header.clone(), HeaderValue::from_static(UNKNOWN_KEY));
            }
            Credentials::ApiKeyInQuery { name, .. } => {
                caller.parameter = Some((name.clone(), UNKNOWN_KEY.to_owned()));
            }
            _ => {
                caller.headers.insert(AUTHORIZATION, HeaderValue::from_static(UNKNOWN_BEARER));
            }
        }
        caller
    }

    /// A url with this caller's parameter.
    pub(crate) fn address(&self, url: &str) -> String {
        match (&self.parameter, url::Url::parse(url)) {
            (Some((name, value)), Ok(mut url)) => {
                url.query_pairs_mut().append_pair(name, value);
                url.into()
            }
            _ => url.to_owned(),
        }
    }
}
