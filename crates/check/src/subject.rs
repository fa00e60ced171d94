//! The agent under examination: its card as it came, how to reach it, and who we are to it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::Value;
use switchboard_client::{Client, ClientError, Context, Credentials, Interface, Peer};
use switchboard_egress::{AnswerBody, Egress};

use crate::answer::{Answer, Reply};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// The most that is read of an answer.
const LARGEST: usize = 8 << 20;
/// The most that is shown of it.
const SHOWN: usize = 240;

/// The agent under examination.
pub(crate) struct Subject {
    egress: Egress,
    /// What every request carries, credentials included.
    headers: HeaderMap,
    /// Never to be shown.
    secrets: Vec<String>,
    pub(crate) has_credentials: bool,
    pub(crate) name: String,
    pub(crate) card_url: String,
    /// The card as callers of version 1.0 get it.
    pub(crate) card: Value,
    /// How that came.
    pub(crate) card_answer: Reply,
    pub(crate) text: String,
    pub(crate) patience: Duration,
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) version: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) is_anonymous: bool,
}

impl Question {
    pub(crate) fn get(url: &str, version: Option<&'static str>) -> Self {
        Self { method: "GET", url: url.to_owned(), version, headers: Vec::new(), body: None, is_anonymous: false }
    }

    /// What it was, for the report.
    pub(crate) fn shown(&self) -> String {
        let path = url::Url::parse(&self.url)
            .map_or_else(|_| self.url.clone(), |url| url[url::Position::BeforePath..].to_owned());
        let version = match self.version {
            Some(version) => format!(" (A2A-Version: {version})"),
            None => " (no A2A-Version)".to_owned(),
        };
        let body = self.body.as_ref().map(|body| format!(" {}", String::from_utf8_lossy(body))).unwrap_or_default();
        shortened(&format!("{} {path}{version}{body}", self.method))
    }
}

impl Subject {
    /// Finds the agent's card, and what it offers that can be spoken here.
    pub(crate) async fn find(
        egress: Egress,
        peer: &Peer,
        text: &str,
        patience: Duration,
    ) -> Result<(Self, Vec<Interface>), ClientError> {
        let context = Context::default();
        let client = Client::new(egress.clone(), peer.clone())?;
        let found = client.card(&context).await?;
        let mut interfaces = Vec::new();
        for version in [switchboard_a2a::Version::V1, switchboard_a2a::Version::V03] {
            for binding in [switchboard_client::Binding::JsonRpc, switchboard_client::Binding::Rest] {
                let is_wanted = peer.version.is_none_or(|wanted| wanted == version)
                    && peer.binding.is_none_or(|wanted| wanted == binding);
                if !is_wanted {
                    continue;
                }
                let pinned = Peer { version: Some(version), binding: Some(binding), ..peer.clone() };
                match Client::new(egress.clone(), pinned)?.interface(&context).await {
                    Ok(interface) => interfaces.push(interface),
                    Err(ClientError::NoInterface { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if interfaces.is_empty() {
            // In the words of the client, which knows what is offered instead.
            client.interface(&context).await?;
        }
        let mut headers: HeaderMap = peer.headers.iter().cloned().collect();
        let mut secrets: Vec<String> =
            peer.headers.iter().filter_map(|(_, value)| value.to_str().ok()).map(str::to_owned).collect();
        if let Some((name, value, secret)) = credentials(&peer.credentials)? {
            headers.insert(name, value);
            secrets.push(secret);
        }
        secrets.retain(|secret| secret.len() > 3);
        let has_credentials = !headers.is_empty();
        let mut subject = Self {
            egress,
            headers,
            secrets,
            has_credentials,
            name: found.card.name.clone(),
            card_url: found.url.clone(),
            card: Value::Null,
            card_answer: Reply::default(),
            text: text.to_owned(),
            patience,
        };
        let answer = subject.ask_plainly(&Question::get(&found.url, Some("1.0"))).await;
        subject.card = answer.json.clone().unwrap_or_default();
        subject.card_answer = answer;
        Ok((subject, interfaces))
    }

    /// Whether a capability is declared.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.card["capabilities"][capability] == true
    }

    /// Asks something that has no envelope: the answer is what it is.
    pub(crate) async fn ask_plainly(&self, question: &Question) -> Reply {
        Reply::plain(self, question, self.ask(question).await)
    }

    /// Asks and reads all of the answer.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Answer, String> {
        let began = tokio::time::Instant::now();
        let (parts, body) = self.open(question).await?.into_parts();
        let left = self.patience.saturating_sub(began.elapsed());
        let (body, _) = body.collect(LARGEST, left).await;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Asks and gives the answer as soon as its head is there.
    pub(crate) async fn open(&self, question: &Question) -> Result<http::Response<AnswerBody>, String> {
        let body = Bytes::from(question.body.clone().unwrap_or_default());
        let request = Request::builder().method(question.method).uri(&question.url).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, AGENT);
        if let Some(version) = question.version {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        for (name, value) in &question.headers {
            headers.insert(name, value.clone());
        }
        if !question.is_anonymous {
            headers.extend(self.headers.clone());
        }
        self.egress.open(request, self.patience).await.map_err(|error| error.to_string())
    }

    /// Text of the agent's on one short line, with nothing that a terminal obeys and none of our secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "***");
        }
        shortened(&text)
    }
}

fn shortened(text: &str) -> String {
    let is_bad = |character: char| {
        character.is_whitespace()
            || character.is_control()
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let words: Vec<&str> = text.split(is_bad).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Where credentials go, how, and what of it is secret.
fn credentials(credentials: &Credentials) -> Result<Option<(HeaderName, HeaderValue, String)>, ClientError> {
    let (name, text, secret) = match credentials {
        Credentials::None => return Ok(None),
        Credentials::Bearer(secret) => {
            let secret = secret.read()?;
            (AUTHORIZATION, format!("Bearer {secret}"), secret)
        }
        Credentials::ApiKey { header, key } => {
            let key = key.read()?;
            (header.clone(), key.clone(), key)
        }
        Credentials::Basic { user, password } => {
            let pair = STANDARD.encode(format!("{user}:{}", password.read()?));
            (AUTHORIZATION, format!("Basic {pair}"), pair)
        }
        Credentials::OAuth(_) => {
            return Err(ClientError::Secret(
                "checks need a token that is there already, not one to be fetched".to_owned(),
            ));
        }
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| ClientError::Secret("a secret has characters that cannot stand in a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(Some((name, value, secret)))
}
