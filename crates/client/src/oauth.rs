//! OAuth 2.0 client credentials (RFC 6749, 4.4): a token is fetched once, shared by all calls, and fetched again
//! shortly before it expires or when the agent refuses it.

use std::sync::Arc;
use std::time::Duration;

use switchboard_egress::Egress;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::{Host, Url};

use crate::redact::redact_url;
use crate::token_request::{Granted, TokenError, TokenRequest};
use crate::{ClientError, Secret};

/// A token is not used any more this long before it expires.
const MARGIN: Duration = Duration::from_secs(30);
/// The lifetime without `expires_in`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
const LONGEST_LIFETIME: Duration = Duration::from_secs(86_400);

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
        let timeout = timeout.min(TokenRequest::TIMEOUT);
        let late = |_| ClientError::Timeout { origin: redact_url(&self.token_url), after: timeout, task: None };
        // The timeout covers waiting for another call's fetch as well.
        tokio::time::timeout(timeout, self.token_in_time(egress)).await.map_err(late)?
    }

    async fn token_in_time(&self, egress: &Egress) -> Result<String, ClientError> {
        let of = self.key();
        let mut kept = self.token.lock().await;
        if let Some(token) = &*kept
            && token.until > Instant::now()
            && token.of == of
        {
            return token.value.read();
        }
        let granted = self.fetch(egress).await?;
        let value = Secret::Plain(granted.access_token.clone());
        let lifetime = granted.expires_in.map_or(DEFAULT_LIFETIME, |lifetime| lifetime.min(LONGEST_LIFETIME));
        *kept = Some(Token { value, until: Instant::now() + lifetime.saturating_sub(MARGIN), of });
        Ok(granted.access_token)
    }

    /// Drops a token the agent refused, unless it was replaced meanwhile.
    pub(crate) async fn forget(&self, refused: &str) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|token| token.value == Secret::Plain(refused.to_owned())) {
            *kept = None;
        }
    }

    async fn fetch(&self, egress: &Egress) -> Result<Granted, ClientError> {
        if !is_private(&self.token_url) {
            return Err(ClientError::Invalid {
                field: "tokenUrl",
                problem: format!(
                    "{} would be told the client's secret without encryption; it should begin with https",
                    redact_url(&self.token_url)
                ),
            });
        }
        let secret = self.client_secret.read()?;
        let request = TokenRequest {
            url: &self.token_url,
            form: &[("grant_type", "client_credentials")],
            scopes: &self.scopes,
            client: Some((&self.client_id, &secret)),
        };
        request.send(egress).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: TokenError) -> ClientError {
        let origin = redact_url(&self.token_url);
        match error {
            TokenError::Url(error) => ClientError::Invalid { field: "tokenUrl", problem: error.to_string() },
            TokenError::Send(error) => ClientError::transport(&origin, error, TokenRequest::TIMEOUT),
            TokenError::Denied { status, denied } => {
                let none = || "the token server gave no token".to_owned();
                let problem = denied.map_or_else(none, |denied| format!("the token server refused ({denied})"));
                ClientError::Credentials { origin, status, problem }
            }
        }
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
