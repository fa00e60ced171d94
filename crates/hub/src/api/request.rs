//! A request at one of the hub's endpoints: its path's variables and its query, checked, and its body once it is asked for.

use std::ops::RangeInclusive;
use std::str::FromStr;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::{AgentName, Caller};
use switchboard_host::config::suggestion::did_you_mean;
use switchboard_server::{Body, Exchange, json_response, percent};

use super::error::{ApiError, Problem, RefusedBody, protocol_refusal};
use super::fields::Fields;
use super::route::{Parameter, Route, Style, Takes, Variables};
use crate::audit::{Act, Actor};
use crate::hub::HubState;

/// What a value is cut to in an error.
const QUOTED: usize = 80;

/// A request at an endpoint.
pub(crate) struct ApiRequest<'a> {
    pub(crate) hub: &'a std::sync::Arc<HubState>,
    pub(crate) exchange: &'a mut Exchange,
    route: &'static Route,
    variables: Variables,
    query: Vec<(String, String)>,
}

impl<'a> ApiRequest<'a> {
    /// Reads the query. One that is silently left out would show more than was asked for, so what is not known is refused.
    pub(crate) fn read(
        hub: &'a std::sync::Arc<HubState>,
        route: &'static Route,
        variables: Variables,
        exchange: &'a mut Exchange,
    ) -> Result<Self, ApiError> {
        let query = percent::query(exchange.parts.uri.query())
            .map_err(|error| ApiError::invalid("query", error.message, "percent-encoded UTF-8"))?;
        let names: Vec<&str> = route.parameters.iter().map(|parameter| parameter.name).collect();
        let mut problems = Vec::new();
        for (index, (name, _)) in query.iter().enumerate() {
            let Some(known) = route.parameters.iter().find(|parameter| parameter.name == name) else {
                problems.push(Problem::new(quoted(name), "is no parameter here", offered(name, &names)));
                continue;
            };
            if !known.repeats && query.iter().take(index).any(|(other, _)| other == name) {
                problems.push(Problem::new(quoted(name), "is there more than once", "send it once"));
            }
        }
        if problems.is_empty() {
            return Ok(Self { hub, exchange, route, variables, query });
        }
        Err(ApiError::Invalid(problems))
    }

    pub(crate) fn caller(&self) -> &Caller {
        self.exchange.caller()
    }

    /// The path of the endpoint, with the names of its variables.
    pub(crate) fn path(&self) -> &'static str {
        self.route.path
    }

    /// The value of a variable of the path.
    pub(crate) fn variable(&self, name: &str) -> &str {
        self.variables.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The value of a parameter; empty is the same as absent.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that repeats.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.query.iter().filter(move |(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// A parameter that is one of some words.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(given) = self.value(name) else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == given);
        let right = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        found.map(|(_, value)| Some(*value)).ok_or_else(|| wrong(name, given, &right()))
    }

    /// A number within a range.
    pub(crate) fn number<T: FromStr + PartialOrd + std::fmt::Display + Copy>(
        &self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, ApiError> {
        let Some(given) = self.value(name) else { return Ok(default) };
        let number = given.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| wrong(name, given, &format!("a number from {} to {}", range.start(), range.end())))
    }

    /// The name of an agent.
    pub(crate) fn agent(&self) -> Option<AgentName> {
        self.value("agent").map(AgentName::from)
    }

    /// Who asks, for the audit.
    pub(crate) fn actor(&self) -> Actor {
        let caller = self.caller().clone();
        let request_id = self.exchange.parts.headers.get("x-request-id").and_then(|id| id.to_str().ok());
        Actor { name: self.hub.parts.callers.name(&caller.id), request_id: request_id.map(str::to_owned), caller }
    }

    /// The line that says what this request has done.
    pub(crate) fn did(&self, act: Act<'_>) -> JournalLine {
        self.actor().did(self.hub.parts.clock.now(), act)
    }

    /// Writes that line of an act that is no write of the store's; of one that is, the line is in the same transaction. Such
    /// an act is done by now, and its caller is told so: a line that cannot be written is missing in the audit and named in
    /// the log.
    pub(crate) async fn audit(&self, act: Act<'_>) {
        let line = self.did(act);
        let (topic, caller) = (line.topic.clone(), self.caller().id.clone());
        if let Err(error) = self.hub.parts.store.journal(vec![line]).await {
            tracing::warn!(%topic, %caller, %error, "what was done is not in the audit");
        }
    }

    /// Waits until the caller's response budget has about so many bytes for what is to be read. What was reserved before is
    /// given back.
    pub(crate) async fn reserve(&mut self, bytes: u64) -> Result<(), ApiError> {
        self.exchange.reserve(bytes).await.map_err(ApiError::Protocol)
    }

    async fn body(&mut self) -> Result<Bytes, ApiError> {
        let style = self.route.style;
        let read = self.exchange.read_body_or(|error| protocol_refusal(style, error)).await;
        let body = read.map_err(|refused| ApiError::Refused(RefusedBody(Box::new(refused))))?;
        let most = self.hub.parts.config.limits.nesting.get();
        if depth_exceeds(&body, most) {
            let wrong = format!("is nested deeper than the limit of {most} levels");
            return Err(ApiError::invalid("body", wrong, "fewer objects and lists within each other"));
        }
        Ok(body)
    }

    /// The body's members, of which none is unknown.
    pub(crate) async fn fields(&mut self) -> Result<Fields, ApiError> {
        let body = self.body().await?;
        let names: Vec<&'static str> = self.route.members.iter().map(|member| member.name).collect();
        Fields::read(&body, &names)
    }

    /// The body as an object. Of its members only the types of those that are listed are checked here.
    pub(crate) async fn object(&mut self) -> Result<serde_json::Map<String, serde_json::Value>, ApiError> {
        let body = self.body().await?;
        let members = match serde_json::from_slice(&body) {
            Ok(serde_json::Value::Object(members)) => members,
            Ok(_) => return Err(ApiError::invalid("body", "is no object", "a JSON object")),
            Err(error) => return Err(ApiError::invalid("body", error.to_string(), "a JSON object")),
        };
        let wrong: Vec<Problem> =
            self.route.members.iter().filter_map(|member| wrong_type(member, members.get(member.name)?)).collect();
        if wrong.is_empty() { Ok(members) } else { Err(ApiError::Invalid(wrong)) }
    }

    /// Refuses a body with members; there may be none.
    pub(crate) async fn no_members(&mut self) -> Result<(), ApiError> {
        let body = self.body().await?;
        if body.is_empty() {
            return Ok(());
        }
        Fields::read(&body, &[])?.finish()
    }

    /// The answer without a body.
    pub(crate) fn empty(&self) -> Response<Body> {
        let mut response = json_response::json(StatusCode::NO_CONTENT, &json!({}));
        *response.body_mut() = Body::empty();
        response
    }

    /// The answer in the style of the path.
    pub(crate) fn answer(&self, status: StatusCode, value: &impl Serialize) -> Response<Body> {
        match self.route.style {
            Style::Own | Style::Tool => json_response::json(status, value),
            Style::Envelope => json_response::json(status, &Envelope { success: true, data: value }),
        }
    }

    /// The same within what was reserved, which is given back as the client takes the answer.
    pub(crate) async fn answer_reserved(
        &mut self,
        status: StatusCode,
        value: impl Serialize + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        let answered = match self.route.style {
            Style::Own | Style::Tool => self.exchange.json(status, value).await,
            Style::Envelope => self.exchange.json(status, Envelope { success: true, data: value }).await,
        };
        answered.map_err(ApiError::Protocol)
    }
}

/// An answer as earlier hubs have it.
#[derive(Serialize)]
struct Envelope<T> {
    success: bool,
    data: T,
}

/// The error of a parameter whose value cannot be right.
pub(crate) fn wrong(name: &str, given: &str, right: &str) -> ApiError {
    ApiError::invalid(name, format!("is {:?}", quoted(given)), right)
}

/// What is wrong with a member that is not of the type that its route says.
fn wrong_type(member: &Parameter, value: &serde_json::Value) -> Option<Problem> {
    let (fits, right) = match member.takes {
        Takes::Anything => return None,
        Takes::Text | Takes::Like(_) | Takes::Time | Takes::Words(_) => (value.is_string(), "a text"),
        Takes::Integer => (value.is_u64() || value.is_i64(), "a number"),
        Takes::Flag => (value.is_boolean(), "true or false"),
        Takes::List => (value.is_array(), "a list"),
        Takes::Object => (value.is_object(), "an object"),
        Takes::Names => (value.is_string() || value.is_array(), "a name or a list of names"),
        Takes::TextOrObject => (value.is_string() || value.is_object(), "a text or an object"),
        Takes::OneOrList => {
            (value.is_string() || value.is_object() || value.is_array(), "a text, an object or a list of them")
        }
    };
    (!fits && !value.is_null()).then(|| Problem::new(member.name, format!("is {}", kind(value)), right))
}

fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "true or false",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a text",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "an object",
    }
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

/// What is there in place of an unknown name.
pub(super) fn offered(name: &str, known: &[&str]) -> String {
    match known {
        [] => "there is none here".to_owned(),
        known => did_you_mean(name, known, "there are"),
    }
}
