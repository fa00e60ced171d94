//! The agent under examination: its card as it came, how to reach it, and who we are to it.

use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use serde_json::Value;
use switchboard_a2a::card::AgentInterface;
use switchboard_a2a::{Version, parse_version};
use switchboard_client::{Binding, Client, ClientError, Context, Credentials, FoundCard, Interface, Peer};
use switchboard_egress::{AnswerBody, Egress};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::caller::CallerIdentity;
use crate::redact::{CUT, Redactor};
use crate::reply::{RawResponse, Reply};
use crate::request::{Caller, TestRequest};
use crate::retry::RetryPolicy;
use crate::run::Options;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// The most that is read of an answer.
pub(crate) const LARGEST: usize = 8 << 20;
/// The most that is shown of it.
const SHOWN: usize = 240;
/// The longest line of the report.
const LONGEST_LINE: usize = 900;

/// The agent under examination.
pub(crate) struct TestedAgent {
    egress: Egress,
    us: CallerIdentity,
    anonymous: CallerIdentity,
    impostor: CallerIdentity,
    /// The second caller, if there is one.
    other: Option<CallerIdentity>,
    /// The extensions that the agent insists on: whoever does not declare them is refused.
    pub(crate) required: Vec<String>,
    secrets: Redactor,
    retry: RetryPolicy,
    /// Whether we are somebody in particular: a header that says something else makes nobody known.
    pub(crate) has_credentials: bool,
    pub(crate) name: String,
    pub(crate) card_url: String,
    /// The card as callers of version 1.0 get it.
    pub(crate) card: Value,
    /// How that came.
    pub(crate) card_reply: Reply,
    v03_card: OnceCell<Reply>,
    pub(crate) text: String,
    pub(crate) patience: Duration,
    /// How long a stream may be silent.
    pub(crate) silence: Duration,
}

/// An answer whose head is there, and when it was asked for.
pub(crate) struct Opened {
    pub(crate) response: http::Response<AnswerBody>,
    pub(crate) began: Instant,
}

/// An interface, and where the card says that it is, if that is not where it is called.
pub(crate) type DeclaredInterface = (Interface, Option<String>);

impl TestedAgent {
    /// Finds the agent's card, and what it offers that can be spoken here.
    pub(crate) async fn find(
        egress: Egress,
        peer: &Peer,
        options: &Options,
    ) -> Result<(Self, Vec<DeclaredInterface>), ClientError> {
        let context = Context::default();
        let client = Client::new(egress.clone(), peer.clone())?;
        let found = client.card(&context).await?;
        let mut interfaces = Vec::new();
        for version in [Version::V1, Version::V03] {
            for binding in [Binding::JsonRpc, Binding::Rest] {
                let is_wanted = peer.version.is_none_or(|wanted| wanted == version)
                    && peer.binding.is_none_or(|wanted| wanted == binding);
                if !is_wanted {
                    continue;
                }
                let pinned = Peer { version: Some(version), binding: Some(binding), ..peer.clone() };
                match Client::new(egress.clone(), pinned)?.interface(&context).await {
                    Ok(interface) => {
                        let said = said(&found, &interface);
                        interfaces.push((interface, said));
                    }
                    Err(ClientError::NoInterface { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if interfaces.is_empty() {
            // In the words of the client, which knows what is offered instead.
            client.interface(&context).await?;
        }
        let mut us = CallerIdentity { headers: peer.headers.iter().cloned().collect(), parameter: None };
        let mut secrets = Vec::new();
        for value in peer.headers.iter().filter_map(|(_, value)| value.to_str().ok()) {
            // Of `Bearer abc` the second word is the secret.
            secrets.extend(value.split_once(' ').map(|(_, word)| word.to_owned()));
            secrets.push(value.to_owned());
        }
        secrets.extend(us.add(&peer.credentials)?);
        let anonymous = us.anonymous(&peer.credentials);
        let mut other = None;
        if !matches!(options.other, Credentials::None) {
            let mut identity = anonymous.clone();
            secrets.extend(identity.add(&options.other)?);
            other = Some(identity);
        }
        let mut agent = Self {
            egress,
            has_credentials: us != anonymous,
            impostor: us.impostor(&peer.credentials),
            us,
            anonymous,
            other,
            required: Vec::new(),
            secrets: Redactor::new(secrets),
            retry: RetryPolicy::default(),
            name: found.card.name.clone(),
            card_url: found.url.clone(),
            card: Value::Null,
            card_reply: Reply::default(),
            v03_card: OnceCell::new(),
            text: options.text.clone(),
            patience: options.patience,
            silence: options.silence,
        };
        let answer = agent.fetch(&TestRequest::get(&found.url, Some("1.0"))).await;
        agent.card = answer.json.clone().unwrap_or_default();
        let extensions = agent.card["capabilities"]["extensions"].as_array().into_iter().flatten();
        let required = extensions.filter(|extension| extension["required"] == true);
        agent.required = required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect();
        agent.card_reply = answer;
        Ok((agent, interfaces))
    }

    /// Whether a capability is declared.
    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.card["capabilities"][capability] == true
    }

    /// The card as callers of version 0.3 get it.
    pub(crate) async fn v03_card(&self) -> &Reply {
        let test_request = TestRequest::get(&self.card_url, Some("0.3"));
        self.v03_card.get_or_init(|| async move { self.fetch(&test_request).await }).await
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
    pub(crate) async fn fetch(&self, test_request: &TestRequest) -> Reply {
        Reply::plain(self, test_request, self.ask(test_request).await)
    }

    /// Asks and reads all of the answer.
    pub(crate) async fn ask(&self, test_request: &TestRequest) -> Result<RawResponse, String> {
        let Opened { response, began } = self.open(test_request).await?;
        let (parts, body) = response.into_parts();
        let left = self.patience.saturating_sub(began.elapsed());
        let (body, end) = body.collect(LARGEST, left).await;
        Ok(RawResponse { status: parts.status.as_u16(), headers: parts.headers, body, end, took: began.elapsed() })
    }

    /// Asks and gives the answer as soon as its head is there; again if the agent has no time at first.
    pub(crate) async fn open(&self, test_request: &TestRequest) -> Result<Opened, String> {
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            let response = self.open_once(test_request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers());
            match self.retry.wait(status, headers, tries, self.patience) {
                None => return Ok(Opened { response, began }),
                Some(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    async fn open_once(&self, test_request: &TestRequest) -> Result<http::Response<AnswerBody>, String> {
        let body = Bytes::from(test_request.body.clone().unwrap_or_default());
        let caller = match test_request.caller {
            Caller::First => self.us.clone(),
            Caller::Anonymous => self.anonymous.clone(),
            Caller::WrongCredentials => self.impostor.clone(),
            Caller::Second => self.other.as_ref().unwrap_or(&self.anonymous).clone(),
        };
        let request = Request::builder().method(test_request.method).uri(caller.address(&test_request.url)).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, AGENT);
        if let Some(version) = test_request.version {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        for (name, value) in &test_request.headers {
            headers.insert(name, value.clone());
        }
        if test_request.declares_extensions
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
    pub(crate) fn sanitize(&self, text: &str) -> String {
        self.secrets.redact(&one_line(&self.secrets.redact(text)))
    }

    /// The same for a line of the report, which may be made of several.
    pub(crate) fn sanitize_line(&self, text: &str) -> String {
        self.secrets.redact(&cut(&self.secrets.redact(text), LONGEST_LINE))
    }
}

/// Where the card says that an interface is, if that is not where it is called.
fn said(found: &FoundCard, interface: &Interface) -> Option<String> {
    let is_it = |entry: &&AgentInterface| {
        let major = parse_version(&entry.protocol_version).map(|version| version.major);
        let is_version = major == Some(if interface.version == Version::V1 { 1 } else { 0 });
        is_version && Binding::from_name(&entry.protocol_binding) == Some(interface.binding)
    };
    let said = &found.card.supported_interfaces.iter().find(is_it)?.url;
    let place = url::Url::parse(&found.url).ok().and_then(|card| card.join(said).ok());
    let is_called = place.is_some_and(|place| url::Url::parse(&interface.url).is_ok_and(|called| called == place));
    (!is_called).then(|| said.clone())
}

/// On one line, with nothing that a terminal obeys, and not long.
pub(crate) fn one_line(text: &str) -> String {
    cut(text, SHOWN)
}

fn cut(text: &str, most: usize) -> String {
    let is_bad = |character: char| {
        character.is_whitespace()
            || character.is_control()
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let words: Vec<&str> = text.split(is_bad).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}{CUT}", &line[..end]),
        None => line,
    }
}
