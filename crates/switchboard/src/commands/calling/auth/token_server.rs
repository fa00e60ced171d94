//! The server that gives tokens: which requests it gets, and what is said if it refuses.

use serde::de::DeserializeOwned;
use switchboard_client::is_private;
use switchboard_client::token_request::{Granted, TokenError, TokenRequest};
use switchboard_egress::Egress;
use url::Url;

use super::Token;
use crate::commands::calling::{Failure, sanitize};

impl Token {
    pub(super) async fn with_secret(&self, egress: &Egress, secret: &str) -> Result<Granted, Failure> {
        let (url, scopes, form) = (&self.token_url, &self.scopes, [("grant_type", "client_credentials")]);
        ask(egress, TokenRequest { url, form: &form, scopes, client: Some((&self.client_id, secret)) }).await
    }

    pub(super) async fn with_refresh_token(&self, egress: &Egress, refresh: &str) -> Result<Granted, Failure> {
        let form =
            [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", self.client_id.as_str())];
        ask(egress, TokenRequest { url: &self.token_url, form: &form, scopes: &[], client: None }).await
    }
}

/// The url on the card for tokens or codes. Secrets go over encrypted connections only, this machine aside.
pub(super) fn safe(url: Option<&str>, what: &str) -> Result<String, Failure> {
    let missing = || Failure::card(format!("the agent's card does not say where {what} are had"), "");
    let url = url.ok_or_else(missing)?;
    if Url::parse(url).is_ok() && is_private(url) {
        return Ok(url.to_owned());
    }
    let message = format!("the agent's card names {} to get tokens from, which is not https", sanitize::line(url));
    Err(Failure::card(message, "ask the agent's operator to correct it"))
}

pub(super) fn is_same_host(url: &str, other: &str) -> bool {
    matches!((Url::parse(url), Url::parse(other)), (Ok(url), Ok(other)) if url.origin() == other.origin())
}

pub(super) async fn ask<T: DeserializeOwned>(egress: &Egress, request: TokenRequest<'_>) -> Result<T, Failure> {
    request.send(egress).await.map_err(|error| failed(request.url, error))
}

pub(super) fn failed(url: &str, error: TokenError) -> Failure {
    match error {
        TokenError::Url(error) => Failure::internal(format!("{url} cannot be asked: {error}")),
        TokenError::Send(error) => {
            let message = format!("{url}, which gives tokens, cannot be reached: {error}");
            Failure::unreachable(message, "check the network, and the addresses on the agent's card")
        }
        TokenError::Denied { denied: Some(denied), .. } => {
            let message = format!("{url} gives no token: {}", sanitize::line(&denied.to_string()));
            Failure::refused_credentials(message, "check --client-id, the secret and --scope")
        }
        TokenError::Denied { status, denied: None } => {
            let message = format!("{url}, which gives tokens, answered {status} and nothing of use");
            Failure::refused_credentials(message, "check the addresses on the agent's card")
        }
    }
}
