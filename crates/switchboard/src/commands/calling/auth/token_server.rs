//! The OAuth token endpoint (RFC 6749): sends a form and reads the token or the error.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use switchboard_client::is_private;
use switchboard_egress::{BodyEnd, Egress};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::commands::calling::{Failure, sanitize};

const TIMEOUT: Duration = Duration::from_secs(30);
const LARGEST_ANSWER: usize = 64 << 10;

#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_in: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct Denied {
    pub(super) error: String,
    error_description: Option<String>,
}

pub(super) struct TokenServer {
    pub(super) url: String,
    pub(super) client_id: String,
}

impl TokenServer {
    pub(super) fn new(url: Option<&str>, client_id: &str) -> Result<Self, Failure> {
        let url = url.ok_or_else(|| Failure::card("the agent's card does not say where tokens are had", ""))?;
        Ok(Self { url: safe(url)?, client_id: client_id.to_owned() })
    }

    pub(super) async fn with_secret(
        &self,
        egress: &Egress,
        secret: &str,
        scopes: &[String],
    ) -> Result<Granted, Failure> {
        let mut form = vec![("grant_type", "client_credentials".to_owned())];
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        let answer = ask(egress, &self.url, &form, Some((&self.client_id, secret))).await?;
        answer.map_err(|denied| denied.failure(&self.url))
    }

    pub(super) async fn renew(&self, egress: &Egress, refresh: &str) -> Result<Granted, Failure> {
        let form = [
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.to_owned()),
            ("client_id", self.client_id.clone()),
        ];
        ask(egress, &self.url, &form, None).await?.map_err(|denied: Denied| denied.failure(&self.url))
    }
}

impl Denied {
    pub(super) fn failure(&self, url: &str) -> Failure {
        let why = self.error_description.as_ref().map_or_else(String::new, |why| format!(": {}", sanitize::line(why)));
        let message = format!("{url} gives no token: {}{why}", sanitize::line(&self.error));
        Failure::refused_credentials(message, "check --client-id, the secret and --scope")
    }
}

/// Secrets go over encrypted connections only, this machine aside.
pub(super) fn safe(url: &str) -> Result<String, Failure> {
    match Url::parse(url).is_ok() && is_private(url) {
        true => Ok(url.to_owned()),
        false => {
            let message =
                format!("the agent's card names {} to get tokens from, which is not https", sanitize::line(url));
            Err(Failure::card(message, "ask the agent's operator to correct it"))
        }
    }
}

pub(super) fn is_same_host(url: &str, other: &str) -> bool {
    matches!((Url::parse(url), Url::parse(other)), (Ok(url), Ok(other)) if url.origin() == other.origin())
}

pub(super) async fn ask<T: DeserializeOwned>(
    egress: &Egress,
    url: &str,
    form: &[(&str, String)],
    basic: Option<(&str, &str)>,
) -> Result<Result<T, Denied>, Failure> {
    let mut body = Serializer::new(String::new());
    body.extend_pairs(form);
    let mut request = Request::post(url)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
        .header(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some((id, secret)) = basic {
        // Both halves are encoded before they are joined (RFC 6749, 2.3.1).
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
        let mut value = HeaderValue::from_str(&format!("Basic {pair}"))
            .map_err(|_| Failure::usage("the client's secret cannot stand in a header", "check it for line breaks"))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let request = request.body(body.finish().into_bytes().into());
    let request = request.map_err(|error| Failure::internal(format!("{url} cannot be asked: {error}")))?;
    let answer = egress.send(request, TIMEOUT, LARGEST_ANSWER).await;
    let answer = answer.map_err(|error| {
        let message = format!("{url}, which gives tokens, cannot be reached: {error}");
        Failure::unreachable(message, "check the network, and the addresses on the agent's card")
    })?;
    let is_whole = answer.extensions().get() == Some(&BodyEnd::Complete);
    if answer.status().is_success()
        && is_whole
        && let Ok(read) = serde_json::from_slice(answer.body())
    {
        return Ok(Ok(read));
    }
    match serde_json::from_slice::<Denied>(answer.body()) {
        Ok(denied) => Ok(Err(denied)),
        Err(_) => {
            let message =
                format!("{url}, which gives tokens, answered {} and nothing of use", answer.status().as_u16());
            Err(Failure::refused_credentials(message, "check the addresses on the agent's card"))
        }
    }
}
