//! One HTTP exchange: headers, credentials, the envelope of the binding, and every way a response can be invalid.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use switchboard_a2a::jsonrpc::{self, Response as RpcAnswer, RpcId, depth_exceeds};
use switchboard_a2a::{
    Dialect, EncodeError, Error as AgentError, ErrorKind, Operation, Request, encode_params, encode_rest,
};
use switchboard_egress::{BodyEnd, Egress, ResponseBody, SendError, Target};
use tokio::time::Instant;

use crate::address::AgentAddress;
use crate::route::Route;
use crate::wire_format::WireFormat;
use crate::{Binding, CallContext, ClientError, Credentials, Peer, not_a2a, trace};

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
const OLD_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// Each request has its own response body, so all have the same JSON-RPC id.
const RPC_ID: u64 = 1;
/// How deep the JSON of a response may be nested: as deep as that of a request, which servers take 64 levels of, and what
/// stands around a message of it in a response, an envelope with a task and its history. What is nested deeper would be
/// kept by those who read it, and refused wherever they pass it on.
pub(crate) const MAX_DEPTH: usize = 64 + 3;
/// The same of a page of tasks: one of them must not hide the others, and none is kept from there.
const MAX_PAGE_DEPTH: usize = 128;
/// Enough for the usual headers of a request.
const HEADER_CAPACITY: usize = 12;

#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) egress: &'a Egress,
    pub(crate) peer: &'a Peer,
    /// The peer's parsed address.
    pub(crate) address: &'a AgentAddress,
    pub(crate) context: &'a CallContext,
}

/// Why a request failed, and when the agent wants it to be retried.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ClientError,
    pub(crate) retry_after: Option<Duration>,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { error, retry_after: None }
    }
}

pub(crate) struct PreparedRequest {
    method: Method,
    target: Arc<Target>,
    body: Option<Bytes>,
    /// Each name once.
    headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) format: WireFormat,
    binding: Binding,
    /// How deep the JSON of its response may be nested.
    max_depth: usize,
    /// The alternate REST form, for agents that do not take the first one.
    alternate: Option<(Method, Option<Bytes>)>,
}

impl PreparedRequest {
    /// Encodes a request for an interface.
    pub(crate) fn new(
        route: &Route,
        format: WireFormat,
        operation: Operation,
        request: &Request,
    ) -> Result<Self, ClientError> {
        let interface = &route.interface;
        let dialect = format.dialect;
        let unsayable = |problem: EncodeError| ClientError::Invalid { field: "request", problem: problem.to_string() };
        let (method, target, body, alternate) = match interface.binding {
            Binding::JsonRpc => {
                let params = encode_params(dialect, operation, request).map_err(unsayable)?;
                let method = operation.method(interface.version);
                let body = jsonrpc::write_request(&RpcId::number(RPC_ID), method, &params);
                (Method::POST, Arc::clone(&route.target), Some(body.into()), None)
            }
            Binding::Rest => {
                let call = encode_rest(dialect, operation, request).map_err(unsayable)?;
                let target = route.below(&call.target())?;
                let alternate = match call.fallback {
                    Some(other) => Some((method(other.method)?, other.body.map(Bytes::from))),
                    None => None,
                };
                (method(call.method)?, target, call.body.map(Bytes::from), alternate)
            }
        };
        let mut headers = Vec::with_capacity(HEADER_CAPACITY);
        headers.push((VERSION, HeaderValue::from_static(interface.version.as_str())));
        if body.is_some() {
            let is_a2a = (dialect, interface.binding) == (Dialect::V1, Binding::Rest);
            let media_type = if is_a2a { "application/a2a+json" } else { "application/json" };
            headers.push((CONTENT_TYPE, HeaderValue::from_static(media_type)));
        }
        let accept = match operation.is_streaming() {
            true => "text/event-stream, application/json;q=0.9, application/a2a+json;q=0.9",
            false => "application/json, application/a2a+json",
        };
        headers.push((ACCEPT, HeaderValue::from_static(accept)));
        let max_depth = if operation == Operation::ListTasks { MAX_PAGE_DEPTH } else { MAX_DEPTH };
        Ok(Self { method, target, body, headers, format, binding: interface.binding, max_depth, alternate })
    }

    /// Switches to the alternate form; false if there is none.
    pub(crate) fn switch_form(&mut self) -> bool {
        let Some(alternate) = self.alternate.take() else { return false };
        (self.method, self.body) = alternate;
        if self.body.is_none() {
            self.headers.retain(|(name, _)| name != CONTENT_TYPE);
        }
        true
    }

    /// The same request with one more header.
    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Result<Self, ClientError> {
        let value = header_value("header", name.as_str(), value)?;
        self.headers.push((name, value));
        Ok(self)
    }

    /// Without path and query, for messages.
    pub(crate) fn origin(&self) -> String {
        let url = self.target.url();
        url::Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
    }

    /// The result in a response, or its error.
    pub(crate) fn parse_result(&self, status: StatusCode, headers: &HeaderMap, body: Bytes) -> Result<Bytes, Failure> {
        let refusal = match self.binding {
            _ if depth_exceeds(&body, self.max_depth) => None,
            Binding::Rest if status.is_success() => return Ok(body),
            Binding::Rest => AgentError::decode(&body).ok().map(|error| refine_by_status(error, status)),
            Binding::JsonRpc => match jsonrpc::parse_response(&body, self.max_depth) {
                Ok(answer) if status.is_success() && !has_our_id(&answer) => {
                    return Err(self.answer_to_another(&answer, status).into());
                }
                Ok(RpcAnswer { outcome: Err(error), .. }) => Some(error),
                Ok(RpcAnswer { outcome: Ok(result), .. }) if status.is_success() => {
                    let null = Bytes::from_static(b"null");
                    return Ok(result.map_or(null, |result| body.slice_ref(result.get().as_bytes())));
                }
                // Web frameworks send their own errors without an envelope.
                _ if !status.is_success() => AgentError::decode(&body).ok(),
                _ => None,
            },
        };
        let error = match refusal {
            refusal if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                credentials(self.origin(), status, headers, refusal.map(|error| error.message))
            }
            Some(error) => ClientError::Agent(AgentError { received_status: Some(status.as_u16()), ..error }),
            None => not_a2a::error(&self.origin(), status.as_u16(), headers, &body, self.max_depth),
        };
        Err(Failure { error, retry_after: retry_after(headers) })
    }

    fn answer_to_another(&self, answer: &RpcAnswer<'_>, status: StatusCode) -> ClientError {
        let id = answer.id.as_ref().map_or("null", RpcId::as_str);
        let what = format!("an answer to another question (id {}, not {RPC_ID})", not_a2a::excerpt(id));
        ClientError::NotA2a { origin: self.origin(), status: status.as_u16(), what, hint: String::new() }
    }
}

/// What an operation is answered with: one JSON value, or a stream of events.
pub(crate) trait Answer: Sized {
    /// Sends the request and reads the answer.
    fn receive(
        exchange: Exchange<'_>,
        prepared: &PreparedRequest,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self, Failure>> + Send;
}

/// The JSON of the result.
impl Answer for Bytes {
    async fn receive(exchange: Exchange<'_>, prepared: &PreparedRequest, timeout: Duration) -> Result<Self, Failure> {
        let began = Instant::now();
        let response = exchange.open(prepared, timeout).await?;
        let (status, headers, body) = exchange.read_body(response, prepared, timeout, began).await?;
        prepared.parse_result(status, &headers, body)
    }
}

impl Exchange<'_> {
    /// Sends the request and returns the response when its head has arrived. HTTP errors are left to
    /// [`PreparedRequest::parse_result`].
    pub(crate) async fn open(
        &self,
        prepared: &PreparedRequest,
        timeout: Duration,
    ) -> Result<Response<ResponseBody>, Failure> {
        let credentials = self.context.credentials.as_ref().unwrap_or(&self.peer.credentials);
        self.check_credential_pinning(credentials, prepared)?;
        let Credentials::OAuth(oauth) = credentials else {
            return self.open_with(prepared, credentials, None, timeout).await;
        };
        let began = Instant::now();
        let left = || timeout.saturating_sub(began.elapsed());
        let token = oauth.token(self.egress, timeout).await?;
        let response = self.open_with(prepared, credentials, Some(&token), left()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // The token may have been revoked before it expired.
        oauth.forget(&token).await;
        let token = oauth.token(self.egress, left()).await?;
        self.open_with(prepared, credentials, Some(&token), left()).await
    }

    /// Refuses to send pinned credentials to another host than the agent's.
    fn check_credential_pinning(
        &self,
        credentials: &Credentials,
        prepared: &PreparedRequest,
    ) -> Result<(), ClientError> {
        let is_named = self.peer.endpoint.is_some();
        if !self.peer.pins_credentials || is_named || matches!(credentials, Credentials::None) {
            return Ok(());
        }
        let (home, target) = (self.address.origin(), prepared.origin());
        if home == target {
            return Ok(());
        }
        Err(ClientError::Secret(format!("the credentials are for {home} and are not sent to {target}")))
    }

    async fn open_with(
        &self,
        prepared: &PreparedRequest,
        credentials: &Credentials,
        token: Option<&str>,
        timeout: Duration,
    ) -> Result<Response<ResponseBody>, Failure> {
        let mut request = HttpRequest::new(prepared.body.clone().unwrap_or_default());
        *request.method_mut() = prepared.method.clone();
        *request.uri_mut() = prepared.target.uri().clone();
        let headers = request.headers_mut();
        headers.reserve(HEADER_CAPACITY);
        self.set_common_headers(headers)?;
        for (name, value) in &prepared.headers {
            headers.insert(name, value.clone());
        }
        self.declare_extensions(headers)?;
        credentials.apply(token, &mut request)?;
        trace::request(&request);
        // After tracing, so that no key in the query is logged.
        let opened = match credentials.add_to_uri(request.uri_mut())? {
            true => self.egress.open(request, timeout).await,
            false => self.egress.open_to(&prepared.target, request, timeout).await,
        };
        Ok(opened.map_err(|error| ClientError::transport(&prepared.origin(), error, timeout))?)
    }

    /// The headers of every request. Those of a call override those of the peer, and both the defaults.
    pub(crate) fn set_common_headers(&self, headers: &mut HeaderMap) -> Result<(), ClientError> {
        headers.insert(USER_AGENT, AGENT);
        replace(headers, &self.peer.headers);
        self.context.apply(headers)?;
        replace(headers, &self.context.headers);
        Ok(())
    }

    /// Under both names: which one an agent reads depends on its version.
    fn declare_extensions(&self, headers: &mut HeaderMap) -> Result<(), ClientError> {
        let own = &self.peer.extensions;
        let of_call = self.context.extensions.iter().filter(|uri| !own.contains(uri));
        let declared: Vec<&str> = own.iter().chain(of_call).map(String::as_str).collect();
        if declared.is_empty() {
            return Ok(());
        }
        let value = header_value("extensions", "an extension's name", &declared.join(", "))?;
        headers.insert(EXTENSIONS, value.clone());
        headers.insert(OLD_EXTENSIONS, value);
        Ok(())
    }

    pub(crate) async fn read_body(
        &self,
        response: Response<ResponseBody>,
        prepared: &PreparedRequest,
        timeout: Duration,
        began: Instant,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Failure> {
        let (parts, body) = response.into_parts();
        let limit = self.peer.limits.body;
        let (bytes, end) = body.collect(limit, timeout.saturating_sub(began.elapsed())).await;
        let origin = || prepared.origin();
        match end {
            BodyEnd::Complete => {
                trace::response(parts.status, &parts.headers, Some(&bytes));
                Ok((parts.status, parts.headers, bytes))
            }
            BodyEnd::Cut => Err(ClientError::TooLarge { origin: origin(), limit }.into()),
            BodyEnd::Late => Err(ClientError::Timeout { origin: origin(), after: timeout, task: None }.into()),
            BodyEnd::Broken => Err(ClientError::Lost { origin: origin(), error: SendError::Broken }.into()),
        }
    }
}

/// A header value. If it cannot be one, the error names the field and what is wrong there.
pub(crate) fn header_value(field: &'static str, what: &str, text: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(text).map_err(|_| ClientError::Invalid {
        field,
        problem: format!("{what} has characters that cannot stand in a header"),
    })
}

/// Whether a response has our id. Some agents leave it out or write it as text, and after a parse error it is null.
fn has_our_id(answer: &RpcAnswer<'_>) -> bool {
    match &answer.id {
        None => true,
        Some(id) if *id == RpcId::NULL => answer.outcome.is_err(),
        Some(id) => id.as_str().trim_matches('"').parse() == Ok(RPC_ID),
    }
}

/// Replaces headers by name.
fn replace(headers: &mut HeaderMap, with: &[(HeaderName, HeaderValue)]) {
    for (name, _) in with {
        headers.remove(name);
    }
    for (name, value) in with {
        headers.append(name, value.clone());
    }
}

fn method(name: &str) -> Result<Method, ClientError> {
    let invalid = |_| ClientError::Invalid { field: "method", problem: format!("{name:?} is no method of HTTP") };
    name.parse().map_err(invalid)
}

/// Some agents of version 0.3 send a message only, so the status decides the kind.
fn refine_by_status(mut error: AgentError, status: StatusCode) -> AgentError {
    if error.kind == ErrorKind::Internal && error.metadata.is_empty() {
        error.kind = match status.as_u16() {
            400 => ErrorKind::InvalidRequest,
            404 => ErrorKind::TaskNotFound,
            409 => ErrorKind::TaskNotCancelable,
            415 => ErrorKind::ContentTypeNotSupported,
            422 => ErrorKind::InvalidParams,
            501 => ErrorKind::UnsupportedOperation,
            _ => ErrorKind::Internal,
        };
    }
    error
}

fn credentials(origin: String, status: StatusCode, headers: &HeaderMap, message: Option<String>) -> ClientError {
    let challenge = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let problem = message.or_else(|| challenge.map(|challenge| format!("it asks for {}", not_a2a::excerpt(challenge))));
    let default =
        if status == StatusCode::FORBIDDEN { "these credentials are not enough" } else { "credentials are needed" };
    ClientError::Credentials { origin, status: status.as_u16(), problem: problem.unwrap_or_else(|| default.to_owned()) }
}

/// `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(std::time::SystemTime::now()).unwrap_or_default())
}
