//! One row of the table of endpoints: where it is, who may call it, what it takes, and which function answers.

use futures_util::future::BoxFuture;
use http::{Method, Response};
use switchboard_engine::CallerRole;
use switchboard_server::{Access, Body, percent};

use super::error::ApiError;
use super::request::ApiRequest;

/// An endpoint.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Segments in braces are variables; one may have a `:verb` behind it.
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) style: Style,
    /// One line for `/openapi.json`.
    pub(crate) summary: &'static str,
    /// Those of the query; others are refused.
    pub(crate) parameters: &'static [Parameter],
    /// Members of the JSON body; others are refused.
    pub(crate) members: &'static [Parameter],
    /// What it reads of the request's headers.
    pub(crate) headers: &'static [Header],
    /// Statuses of its own refusals, and their codes.
    pub(crate) refusals: &'static [(u16, &'static str)],
    /// Whether it may send a message, which is refused as one that comes over A2A.
    pub(crate) sends: bool,
    /// Whether it answers with an event stream, unless JSON is asked for.
    pub(crate) streams: bool,
    pub(crate) answer: Handler,
}

/// What answers at an endpoint.
pub(crate) type Handler = for<'a> fn(ApiRequest<'a>) -> BoxFuture<'a, Result<Response<Body>, ApiError>>;

/// What errors and answers look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The answer itself; errors as everywhere else on this server.
    Own,
    /// `{"success": true, "data": …}` and `{"success": false, "error": …, "code": …}`, as earlier hubs have it.
    Envelope,
    /// The answer itself, and `{"error": …, "code": …, "retryable": …}`, as a model is told of a failed tool.
    Tool,
}

/// A parameter of the query, or a member of the body.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// What it is, in a sentence, which ends with `; required.` if it has to be there.
    pub(crate) about: &'static str,
    /// Whether it may be there more than once.
    pub(crate) repeats: bool,
    /// What its value may be.
    pub(crate) takes: Takes,
}

/// A header of a request that means something to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    IdempotencyKey,
    IfMatch,
    LastEventId,
    /// `X-Correlation-Id`, `X-Parent-Id` and `traceparent`.
    Trace,
}

/// What the value of a parameter or member may be, for `/openapi.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// What its handler says. In a query it is a text.
    Anything,
    Text,
    /// A text that fits a regular expression.
    Like(&'static str),
    /// A time in RFC 3339.
    Time,
    /// One of these.
    Words(&'static [&'static str]),
    Integer,
    Flag,
    List,
    Object,
    /// A text or a list of texts.
    Names,
    /// A text or an object.
    TextOrObject,
    /// The same, or a list of them.
    OneOrList,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, repeats: false, takes: Takes::Anything }
    }

    pub(crate) const fn text(self) -> Self {
        Self { takes: Takes::Text, ..self }
    }

    pub(crate) const fn like(self, pattern: &'static str) -> Self {
        Self { takes: Takes::Like(pattern), ..self }
    }

    pub(crate) const fn time(self) -> Self {
        Self { takes: Takes::Time, ..self }
    }

    pub(crate) const fn words(self, words: &'static [&'static str]) -> Self {
        Self { takes: Takes::Words(words), ..self }
    }

    pub(crate) const fn integer(self) -> Self {
        Self { takes: Takes::Integer, ..self }
    }

    pub(crate) const fn flag(self) -> Self {
        Self { takes: Takes::Flag, ..self }
    }

    pub(crate) const fn list(self) -> Self {
        Self { takes: Takes::List, ..self }
    }

    pub(crate) const fn names(self) -> Self {
        Self { takes: Takes::Names, ..self }
    }

    pub(crate) const fn text_or_object(self) -> Self {
        Self { takes: Takes::TextOrObject, ..self }
    }

    pub(crate) const fn one_or_list(self) -> Self {
        Self { takes: Takes::OneOrList, ..self }
    }

    /// Whether a request without it is refused.
    pub(crate) fn is_required(&self) -> bool {
        self.about.ends_with("; required.")
    }

    pub(crate) const fn object(self) -> Self {
        Self { takes: Takes::Object, ..self }
    }

    pub(crate) const fn repeated(self) -> Self {
        Self { repeats: true, ..self }
    }
}

impl Route {
    /// A GET for any key.
    pub(crate) const fn get(path: &'static str, summary: &'static str, answer: Handler) -> Self {
        Self::new(Method::GET, path, summary, answer)
    }

    /// A request for any key, without a body.
    pub(crate) const fn new(method: Method, path: &'static str, summary: &'static str, answer: Handler) -> Self {
        let access = Access::role(CallerRole::None);
        Self {
            method,
            path,
            access,
            style: Style::Own,
            summary,
            parameters: &[],
            members: &[],
            headers: &[],
            refusals: &[],
            sends: false,
            streams: false,
            answer,
        }
    }

    /// For keys of a role.
    pub(crate) const fn role(mut self, role: CallerRole) -> Self {
        self.access.authorization = Access::role(role).authorization;
        self
    }

    /// With a JSON body of these members.
    pub(crate) const fn body(mut self, members: &'static [Parameter]) -> Self {
        self.access = self.access.with_json();
        self.members = members;
        self
    }

    pub(crate) const fn parameters(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    pub(crate) const fn headers(mut self, headers: &'static [Header]) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) const fn refusals(mut self, refusals: &'static [(u16, &'static str)]) -> Self {
        self.refusals = refusals;
        self
    }

    /// For the programs of running tasks too.
    pub(crate) const fn for_tasks(mut self) -> Self {
        self.access = self.access.with_task_tokens();
        self
    }

    /// With refusals of the message that it sends.
    pub(crate) const fn sending(mut self) -> Self {
        self.sends = true;
        self
    }

    /// With an event stream as its answer.
    pub(crate) const fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    /// With a WebSocket as its answer.
    pub(crate) const fn websocket(mut self) -> Self {
        self.access = self.access.with_websocket();
        self
    }

    /// In the form of earlier hubs.
    pub(crate) const fn enveloped(mut self) -> Self {
        self.style = Style::Envelope;
        self
    }

    /// With errors as a model is told them.
    pub(crate) const fn tool(mut self) -> Self {
        self.style = Style::Tool;
        self
    }

    /// Whether it goes on when its client does not wait for it: all that change something, but for those that wait for a task,
    /// which the kernel begins as a whole and which ends without them.
    pub(crate) fn is_detached(&self) -> bool {
        self.method != Method::GET && !self.sends
    }

    fn variables(&self) -> usize {
        self.path.matches('{').count()
    }

    /// Whether it has a `:verb` behind its last variable.
    fn has_verb(&self) -> bool {
        self.path.contains("}:")
    }
}

/// The values of a path's variables by their names.
pub(crate) type Variables = Vec<(&'static str, String)>;

/// The route of a request; the value of `Allow` if the path only has other methods.
pub(crate) fn find<'a>(
    routes: &'a [Route],
    path: &str,
    method: &Method,
) -> Option<Result<(&'a Route, Variables), &'static str>> {
    let mut matching = matching(routes, path);
    if matching.is_empty() {
        return None;
    }
    let methods = matching.iter().fold(0, |methods, (route, _)| methods | bit(&route.method));
    // What has the method goes by the name of the path, else by a variable in its place.
    matching.sort_by_key(|(route, _)| route.variables());
    let found = matching.into_iter().find(|(route, _)| route.method == *method);
    Some(found.ok_or(ALLOWED[methods]))
}

/// What errors look like at a path. Where nothing is, they look like all that is in the same place, if that is alike.
pub(crate) fn style_at(routes: &[Route], path: &str) -> Style {
    if let Some((route, _)) = matching(routes, path).first() {
        return route.style;
    }
    let mut place = path;
    while let Some((above, _)) = place.rsplit_once('/') {
        let is_below = |route: &&Route| route.path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
        let mut below = routes.iter().filter(is_below).map(|route| route.style);
        if let Some(first) = below.next() {
            return if below.all(|style| style == first) { first } else { Style::Own };
        }
        place = above;
    }
    Style::Own
}

/// The routes that a path fits. Where one has a verb, the path is not an id that ends like it.
fn matching<'a>(routes: &'a [Route], path: &str) -> Vec<(&'a Route, Variables)> {
    let mut matching: Vec<_> = routes.iter().filter_map(|route| Some((route, matched(route.path, path)?))).collect();
    if matching.iter().any(|(route, _)| route.has_verb()) {
        matching.retain(|(route, _)| route.has_verb());
    }
    matching
}

/// The variables of a path that fits a pattern.
fn matched(pattern: &'static str, path: &str) -> Option<Variables> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut variables = Vec::new();
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        let (wanted, given) = match (wanted.next(), given.next()) {
            (None, None) => return Some(variables),
            (Some(wanted), Some(given)) => (wanted, given),
            _ => return None,
        };
        let Some(variable) = wanted.strip_prefix('{') else {
            if wanted != given {
                return None;
            }
            continue;
        };
        let (name, verb) = variable.split_once('}')?;
        let value = given.strip_suffix(verb).filter(|value| !value.is_empty())?;
        variables.push((name, percent::decode(value)?.into_owned()));
    }
}

/// The `Allow` header for each set of methods.
const ALLOWED: [&str; 16] = [
    "",
    "GET, HEAD",
    "POST",
    "GET, HEAD, POST",
    "PUT",
    "GET, HEAD, PUT",
    "POST, PUT",
    "GET, HEAD, POST, PUT",
    "DELETE",
    "GET, HEAD, DELETE",
    "POST, DELETE",
    "GET, HEAD, POST, DELETE",
    "PUT, DELETE",
    "GET, HEAD, PUT, DELETE",
    "POST, PUT, DELETE",
    "GET, HEAD, POST, PUT, DELETE",
];

fn bit(method: &Method) -> usize {
    match *method {
        Method::GET => 1,
        Method::POST => 2,
        Method::PUT => 4,
        Method::DELETE => 8,
        _ => 0,
    }
}
