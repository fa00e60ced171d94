//! The agent under examination: its card as it came, how to reach it, and who we are to it.

use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue, Request};
use serde_json::Value;
use switchboard_client::{Client, ClientError, Context, Credentials, Interface, Peer};
use switchboard_egress::{AnswerBody, Egress};
use tokio::sync::OnceCell;

use crate::answer::{Answer, Reply};
use crate::identity::Identity;
use crate::run::Options;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// The most that is read of an answer.
const LARGEST: usize = 8 << 20;
/// The most that is shown of it.
const SHOWN: usize = 240;

/// The agent under examination.
pub(crate) struct Subject {
    egress: Egress,
    us: Identity,
    /// The second caller, if there is one.
    other: Option<Identity>,
    /// The extensions that the agent insists on: whoever does not declare them is refused.
    pub(crate) required: Vec<String>,
    /// Never to be shown.
    secrets: Vec<String>,
    pub(crate) has_credentials: bool,
    pub(crate) name: String,
    pub(crate) card_url: String,
    /// The card as callers of version 1.0 get it.
    pub(crate) card: Value,
    /// How that came.
    pub(crate) card_answer: Reply,
    old_card: OnceCell<Reply>,
    pub(crate) text: String,
    pub(crate) patience: Duration,
    /// How long a stream may be silent.
    pub(crate) silence: Duration,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Whoever was given the credentials.
    Us,
    /// Somebody without any.
    Nobody,
    /// The second caller; like nobody where there is none.
    Other,
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) version: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) caller: Caller,
    /// Whether the extensions that the agent insists on are declared.
    pub(crate) declares: bool,
}

impl Question {
    pub(crate) fn get(url: &str, version: Option<&'static str>) -> Self {
        let url = url.to_owned();
        Self { method: "GET", url, version, headers: Vec::new(), body: None, caller: Caller::Us, declares: true }
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
        options: &Options,
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
        let mut us = Identity { headers: peer.headers.iter().cloned().collect(), parameter: None };
        let mut secrets: Vec<String> =
            peer.headers.iter().filter_map(|(_, value)| value.to_str().ok()).map(str::to_owned).collect();
        secrets.extend(us.add(&peer.credentials)?);
        let mut other = None;
        if !matches!(options.other, Credentials::None) {
            let mut identity = us.anonymous(&peer.credentials);
            secrets.extend(identity.add(&options.other)?);
            other = Some(identity);
        }
        secrets.retain(|secret| secret.len() > 3);
        let has_credentials = !us.is_nobody();
        let mut subject = Self {
            egress,
            us,
            other,
            required: Vec::new(),
            secrets,
            has_credentials,
            name: found.card.name.clone(),
            card_url: found.url.clone(),
            card: Value::Null,
            card_answer: Reply::default(),
            old_card: OnceCell::new(),
            text: options.text.clone(),
            patience: options.patience,
            silence: options.silence,
        };
        let answer = subject.ask_plainly(&Question::get(&found.url, Some("1.0"))).await;
        subject.card = answer.json.clone().unwrap_or_default();
        let extensions = subject.card["capabilities"]["extensions"].as_array().into_iter().flatten();
        let required = extensions.filter(|extension| extension["required"] == true);
        subject.required = required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect();
        subject.card_answer = answer;
        Ok((subject, interfaces))
    }

    /// Whether a capability is declared.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.card["capabilities"][capability] == true
    }

    /// The card as callers of version 0.3 get it.
    pub(crate) async fn old_card(&self) -> &Reply {
        let question = Question::get(&self.card_url, Some("0.3"));
        self.old_card.get_or_init(|| async move { self.ask_plainly(&question).await }).await
    }

    /// Whether there is a second caller, and why not.
    pub(crate) fn second_caller(&self) -> Result<(), &'static str> {
        match &self.other {
            None => Err("it needs the key of a second caller, in A2ACLI_OTHER_BEARER or A2ACLI_OTHER_API_KEY"),
            Some(other) if *other == self.us => Err("the second caller has the key of the first"),
            Some(_) => Ok(()),
        }
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
        let caller = match question.caller {
            Caller::Us => self.us.clone(),
            Caller::Nobody => Identity::default(),
            Caller::Other => self.other.clone().unwrap_or_default(),
        };
        let request = Request::builder().method(question.method).uri(caller.address(&question.url)).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, AGENT);
        if let Some(version) = question.version {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        for (name, value) in &question.headers {
            headers.insert(name, value.clone());
        }
        if question.declares
            && !self.required.is_empty()
            && let Ok(declared) = HeaderValue::from_str(&self.required.join(","))
        {
            headers.insert("x-a2a-extensions", declared.clone());
            headers.insert("a2a-extensions", declared);
        }
        headers.extend(caller.headers);
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
