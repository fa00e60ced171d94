//! The agent under test: its card as it was served, how it is reached, and the callers' credentials.

use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request};
use serde_json::Value;
use switchboard_a2a::card::AgentInterface;
use switchboard_a2a::{Version, parse_version};
use switchboard_client::{Binding, CallContext, Client, ClientError, Credentials, FoundCard, Interface, Peer};
use switchboard_egress::{Egress, ResponseBody};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::caller::CallerIdentity;
use crate::redact::{CUT, Redactor};
use crate::reply::{RawResponse, Reply};
use crate::request::{Caller, TestRequest};
use crate::retry::RetryPolicy;
use crate::run::CheckOptions;
use crate::verdict::{CheckResult, OrSkip, applies_if};
use crate::wire::entries;

const USER_AGENT_VALUE: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// The largest response body that is read.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;
/// The longest excerpt of it, in characters.
const MAX_EXCERPT: usize = 240;
/// The longest line of the report.
const MAX_LINE: usize = 900;

pub(crate) struct TestedAgent {
    egress: Egress,
    first: CallerIdentity,
    anonymous: CallerIdentity,
    wrong_credentials: CallerIdentity,
    second: Option<CallerIdentity>,
    /// The extensions the card marks as required: callers that do not declare them are refused.
    pub(crate) required: Vec<String>,
    secrets: Redactor,
    retry: RetryPolicy,
    /// Whether any header or parameter of ours is a credential.
    pub(crate) has_credentials: bool,
    pub(crate) name: String,
    pub(crate) card_url: String,
    /// The card as callers of version 1.0 get it.
    pub(crate) card: Value,
    pub(crate) card_reply: Reply,
    v03_card: OnceCell<Reply>,
    pub(crate) text: String,
    pub(crate) patience: Duration,
    /// How long a stream may be silent.
    pub(crate) silence: Duration,
}

/// A response whose head has arrived, and when its request was sent.
pub(crate) struct Opened {
    pub(crate) response: http::Response<ResponseBody>,
    pub(crate) began: Instant,
}

/// An interface, and its url on the card if it is called at another one.
pub(crate) type DeclaredInterface = (Interface, Option<String>);

impl TestedAgent {
    /// Fetches the card and the interfaces on it that can be called.
    pub(crate) async fn find(
        egress: Egress,
        peer: &Peer,
        options: &CheckOptions,
    ) -> Result<(Self, Vec<DeclaredInterface>), ClientError> {
        let context = CallContext::default();
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
                        let card_url_of = card_url_of(&found, &interface);
                        interfaces.push((interface, card_url_of));
                    }
                    Err(ClientError::NoInterface { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if interfaces.is_empty() {
            // The client's error says what is offered instead.
            client.interface(&context).await?;
        }
        let mut first = CallerIdentity { headers: peer.headers.iter().cloned().collect(), parameter: None };
        let mut secrets = Vec::new();
        for value in peer.headers.iter().filter_map(|(_, value)| value.to_str().ok()) {
            // In `Bearer abc` the second word is the secret.
            secrets.extend(value.split_once(' ').map(|(_, word)| word.to_owned()));
            secrets.push(value.to_owned());
        }
        secrets.extend(first.add(&peer.credentials)?);
        let anonymous = first.anonymous(&peer.credentials);
        let mut second = None;
        if !matches!(options.other, Credentials::None) {
            let mut identity = anonymous.clone();
            secrets.extend(identity.add(&options.other)?);
            second = Some(identity);
        }
        let mut agent = Self {
            egress,
            has_credentials: first != anonymous,
            wrong_credentials: first.with_wrong_credentials(&peer.credentials),
            first,
            anonymous,
            second,
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
        let extensions = entries(&agent.card["capabilities"]["extensions"]);
        let required = extensions.filter(|extension| extension["required"] == true);
        agent.required = required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect();
        agent.card_reply = answer;
        Ok((agent, interfaces))
    }

    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.card["capabilities"][capability] == true
    }

    /// The card as callers of version 0.3 get it.
    pub(crate) async fn v03_card(&self) -> &Reply {
        let test_request = TestRequest::get(&self.card_url, Some("0.3"));
        self.v03_card.get_or_init(|| async move { self.fetch(&test_request).await }).await
    }

    /// The check applies if there is a second caller.
    pub(crate) fn second_caller(&self) -> CheckResult {
        let missing = "it needs the key of a second caller, in A2ACLI_OTHER_BEARER or A2ACLI_OTHER_API_KEY";
        let second = self.second.as_ref().or_skip(missing)?;
        applies_if(*second != self.first, "the second caller has the key of the first")
    }

    /// Sends a request whose reply has no envelope.
    pub(crate) async fn fetch(&self, test_request: &TestRequest) -> Reply {
        Reply::plain(self, test_request, self.ask(test_request).await)
    }

    pub(crate) async fn ask(&self, test_request: &TestRequest) -> Result<RawResponse, String> {
        let Opened { response, began } = self.open(test_request).await?;
        let (parts, body) = response.into_parts();
        let left = self.patience.saturating_sub(began.elapsed());
        let (body, end) = body.collect(MAX_BODY_BYTES, left).await;
        Ok(RawResponse { status: parts.status.as_u16(), headers: parts.headers, body, end, took: began.elapsed() })
    }

    /// Returns the response as soon as its head has arrived; retries if the agent is overloaded.
    pub(crate) async fn open(&self, test_request: &TestRequest) -> Result<Opened, String> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let began = Instant::now();
            let response = self.open_once(test_request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers());
            match self.retry.wait(status, headers, attempt, self.patience) {
                None => return Ok(Opened { response, began }),
                Some(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    async fn open_once(&self, test_request: &TestRequest) -> Result<http::Response<ResponseBody>, String> {
        let body = Bytes::from(test_request.body.clone().unwrap_or_default());
        let caller = match test_request.caller {
            Caller::First => self.first.clone(),
            Caller::Anonymous => self.anonymous.clone(),
            Caller::WrongCredentials => self.wrong_credentials.clone(),
            Caller::Second => self.second.as_ref().unwrap_or(&self.anonymous).clone(),
        };
        let request = Request::builder().method(test_request.method).uri(caller.address(&test_request.url)).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, USER_AGENT_VALUE);
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

    /// Text of the agent's on one short line, sanitized for terminals and with our secrets redacted.
    pub(crate) fn sanitize(&self, text: &str) -> String {
        self.secrets.redact(&one_line(&self.secrets.redact(text)))
    }

    /// The same for a line of the report, which may hold several excerpts.
    pub(crate) fn sanitize_line(&self, text: &str) -> String {
        self.secrets.redact(&cut(&self.secrets.redact(text), MAX_LINE))
    }
}

/// The url of an interface on the card, if it is called at another one.
fn card_url_of(found: &FoundCard, interface: &Interface) -> Option<String> {
    let is_it = |entry: &&AgentInterface| {
        let major = parse_version(&entry.protocol_version).map(|version| version.major);
        let is_version = major == Some(if interface.version == Version::V1 { 1 } else { 0 });
        is_version && Binding::from_name(&entry.protocol_binding) == Some(interface.binding)
    };
    let card_url_of = &found.card.supported_interfaces.iter().find(is_it)?.url;
    let url = url::Url::parse(&found.url).ok().and_then(|card| card.join(card_url_of).ok());
    let is_called = url.is_some_and(|url| url::Url::parse(&interface.url).is_ok_and(|called| called == url));
    (!is_called).then(|| card_url_of.clone())
}

/// On one short line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    cut(text, MAX_EXCERPT)
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
