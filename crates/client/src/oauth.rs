//! OAuth 2.0 client credentials (RFC 6749, 4.4): a token is fetched once, shared by all calls, and fetched again
//! shortly before it expires or when the agent refuses it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use serde::Deserialize;
use serde_json::Value;
use switchboard_egress::{BodyEnd, Egress};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::form_urlencoded::Serializer;
use url::{Host, Url};

use crate::ClientError;
use crate::credentials::{Secret, sensitive};
use crate::redact::redact_url;

/// A token is not used any more this long before it expires.
const MARGIN: Duration = Duration::from_secs(30);
/// The lifetime without `expires_in`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
const TIMEOUT: Duration = Duration::from_secs(30);
const LARGEST_ANSWER: usize = 64 << 10;

/// The source of tokens. Clones share the token while their settings are the same.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    pub token_url: String,
    pub client_id: String,
    pub client_secret: Secret,
    /// The scopes; none for the server's default.
    pub scopes: Vec<String>,
    token: Arc<Mutex<Option<Token>>>,
}

#[derive(Debug)]
struct Token {
    value: Secret,
    until: Instant,
    of: TokenKey,
}

/// The url, the client, its secret and the scopes that a token was issued for.
type TokenKey = (String, String, Secret, Vec<String>);

impl PartialEq for ClientCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: Value,
}

impl Granted {
    fn lives(&self) -> Duration {
        // Some servers write the number as text.
        let as_text = || self.expires_in.as_str()?.trim().parse().ok();
        let said = self.expires_in.as_f64().or_else(as_text);
        let said = said.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        said.map_or(DEFAULT_LIFETIME, |seconds| Duration::from_secs_f64(seconds.min(86_400.0)))
    }
}

#[derive(Deserialize)]
struct Denied {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl ClientCredentials {
    /// Tokens without scopes.
    pub fn new(token_url: impl Into<String>, client_id: impl Into<String>, client_secret: Secret) -> Self {
        Self {
            token_url: token_url.into(),
            client_id: client_id.into(),
            client_secret,
            scopes: Vec::new(),
            token: Arc::default(),
        }
    }

    fn key(&self) -> TokenKey {
        (self.token_url.clone(), self.client_id.clone(), self.client_secret.clone(), self.scopes.clone())
    }

    /// A valid token.
    pub(crate) async fn token(&self, egress: &Egress, timeout: Duration) -> Result<String, ClientError> {
        let timeout = timeout.min(TIMEOUT);
        let late = |_| ClientError::Timeout { origin: redact_url(&self.token_url), after: timeout, task: None };
        // The timeout covers waiting for another call's fetch as well.
        tokio::time::timeout(timeout, self.token_in_time(egress, timeout)).await.map_err(late)?
    }

    async fn token_in_time(&self, egress: &Egress, timeout: Duration) -> Result<String, ClientError> {
        let of = self.key();
        let mut kept = self.token.lock().await;
        if let Some(token) = &*kept
            && token.until > Instant::now()
            && token.of == of
        {
            return token.value.read();
        }
        let granted = self.fetch(egress, timeout).await?;
        let value = Secret::Plain(granted.access_token.clone());
        *kept = Some(Token { value, until: Instant::now() + granted.lives().saturating_sub(MARGIN), of });
        Ok(granted.access_token)
    }

    /// Drops a token the agent refused, unless it was replaced meanwhile.
    pub(crate) async fn forget(&self, refused: &str) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|token| token.value == Secret::Plain(refused.to_owned())) {
            *kept = None;
        }
    }

    fn form(&self) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !self.scopes.is_empty() {
            form.append_pair("scope", &self.scopes.join(" "));
        }
        form.finish()
    }

    async fn fetch(&self, egress: &Egress, timeout: Duration) -> Result<Granted, ClientError> {
        if !is_private(&self.token_url) {
            return Err(ClientError::Invalid {
                field: "tokenUrl",
                problem: format!(
                    "{} would be told the client's secret without encryption; it should begin with https",
                    redact_url(&self.token_url)
                ),
            });
        }
        let pair = STANDARD.encode(format!("{}:{}", encoded(&self.client_id), encoded(&self.client_secret.read()?)));
        let request = Request::post(&self.token_url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(AUTHORIZATION, sensitive(&format!("Basic {pair}"))?)
            .body(Bytes::from(self.form()))
            .map_err(|error| ClientError::Invalid { field: "tokenUrl", problem: error.to_string() })?;
        let origin = &redact_url(&self.token_url);
        let answer = egress.send(request, timeout, LARGEST_ANSWER).await;
        let answer = answer.map_err(|error| ClientError::transport(origin, error, timeout))?;
        let status = answer.status();
        if status.is_success()
            && answer.extensions().get() == Some(&BodyEnd::Complete)
            && let Ok(granted) = serde_json::from_slice::<Granted>(answer.body())
        {
            return Ok(granted);
        }
        let problem = match serde_json::from_slice::<Denied>(answer.body()) {
            Ok(denied) => {
                let why = denied.error_description.map_or_else(String::new, |why| format!(": {why}"));
                format!("the token server refused ({}{why})", denied.error)
            }
            Err(_) => "the token server gave no token".to_owned(),
        };
        Err(ClientError::Credentials { origin: origin.clone(), status: status.as_u16(), problem })
    }
}

/// Whether requests to a url cannot be read on the way: it is https or loopback. An invalid url is reported elsewhere.
#[must_use]
pub fn is_private(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return true };
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || is_here
}

/// Both halves of the pair are encoded before they are joined (RFC 6749, 2.3.1).
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
