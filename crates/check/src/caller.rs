//! Who asks: the headers, and where an agent wants it there the parameter, that make a caller known.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_client::{ClientError, Credentials};

/// A key that nobody has.
const NOBODYS: &str = "a2a-check-no-such-key";
const NOBODYS_BEARER: &str = "Bearer a2a-check-no-such-key";

/// What makes a caller known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallerIdentity {
    pub(crate) headers: HeaderMap,
    /// Goes into the address.
    pub(crate) parameter: Option<(String, String)>,
}

impl CallerIdentity {
    /// Adds credentials; what of it is secret.
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

    /// The same without what says who it is, for somebody else.
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

    /// The same with credentials of the same kind that were never given out.
    pub(crate) fn impostor(&self, credentials: &Credentials) -> Self {
        let mut impostor = self.anonymous(credentials);
        match credentials {
            Credentials::ApiKey { header, .. } => {
                impostor.headers.insert(header.clone(), HeaderValue::from_static(NOBODYS));
            }
            Credentials::ApiKeyInQuery { name, .. } => {
                impostor.parameter = Some((name.clone(), NOBODYS.to_owned()));
            }
            _ => {
                impostor.headers.insert(AUTHORIZATION, HeaderValue::from_static(NOBODYS_BEARER));
            }
        }
        impostor
    }

    /// An address as this caller asks for it.
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
