//! One request to an OAuth 2.0 token server (RFC 6749), and what it answers: a token, or why there is none.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_egress::{BodyEnd, Egress, SendError};
use url::form_urlencoded::{Serializer, byte_serialize};

const LARGEST_ANSWER: usize = 64 << 10;
/// How deep an answer may be nested.
const MAX_DEPTH: usize = 64;
/// A longer lifetime is cut to this, in seconds, so that a time can be calculated with it.
const LONGEST: f64 = 1e12;

#[derive(Clone, Copy)]
pub struct TokenRequest<'a> {
    pub url: &'a str,
    /// The form, without the scopes.
    pub form: &'a [(&'a str, &'a str)],
    /// None for the server's default.
    pub scopes: &'a [String],
    /// The id and the secret of a client that has one.
    pub client: Option<(&'a str, &'a str)>,
}

#[derive(Deserialize)]
pub struct Granted {
    pub access_token: String,
    pub refresh_token: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    pub expires_in: Option<Duration>,
}

/// The error of the server.
#[derive(Debug, Deserialize)]
pub struct Denied {
    pub error: String,
    error_description: Option<String>,
}

/// Why there is no answer that can be used.
#[derive(Debug)]
pub enum TokenError {
    /// The url is invalid.
    Url(http::Error),
    Send(SendError),
    Denied {
        status: u16,
        /// None if the answer says nothing that OAuth knows.
        denied: Option<Denied>,
    },
}

impl TokenRequest<'_> {
    /// How long a server may take to answer.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    pub async fn send<T: DeserializeOwned>(self, egress: &Egress) -> Result<T, TokenError> {
        let request = self.encode().map_err(TokenError::Url)?;
        let answer = egress.send(request, Self::TIMEOUT, LARGEST_ANSWER).await.map_err(TokenError::Send)?;
        let is_whole = answer.extensions().get() == Some(&BodyEnd::Complete);
        let body = Some(answer.body()).filter(|body| !depth_exceeds(body, MAX_DEPTH));
        if answer.status().is_success()
            && is_whole
            && let Some(Ok(read)) = body.map(|body| serde_json::from_slice(body))
        {
            return Ok(read);
        }
        let denied = body.and_then(|body| serde_json::from_slice(body).ok());
        Err(TokenError::Denied { status: answer.status().as_u16(), denied })
    }

    fn encode(self) -> Result<Request<Bytes>, http::Error> {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(self.form);
        if !self.scopes.is_empty() {
            form.append_pair("scope", &self.scopes.join(" "));
        }
        let mut request = Request::post(self.url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((id, secret)) = self.client {
            // Both halves are encoded before they are joined (RFC 6749, 2.3.1).
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
            let mut value = HeaderValue::try_from(format!("Basic {pair}"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(form.finish().into())
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error_description {
            Some(why) => write!(formatter, "{}: {why}", self.error),
            None => formatter.write_str(&self.error),
        }
    }
}

/// Reads a number of seconds, which some servers write as text. What is neither is taken as not said.
pub fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let value = Value::deserialize(from)?;
    let as_text = || value.as_str()?.trim().parse().ok();
    let seconds = value.as_f64().or_else(as_text).filter(|seconds| seconds.is_finite());
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.min(LONGEST)).ok()))
}
