//! Fronts: endpoints beside A2A, such as the operator API, behind the same guards, authentication, limits, graceful
//! shutdown and access log.
//!
//! A front says what a path needs before anything of the body is read, and the server enforces it. So an endpoint cannot
//! forget to, and a request that is refused costs nothing.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use switchboard_a2a::Error;
use switchboard_engine::{Caller, CallerRole};

use crate::bindings::off_thread;
use crate::body::split_into_pieces;
use crate::edge::activity::Activity;
use crate::edge::stream_slots::StreamSlot;
use crate::edge::{json_response, request_body};
use crate::event_stream::{self, FrameFormat};
use crate::response_budget::{ReservedBytes, SMALL};
use crate::state::stopping;
use crate::{Body, CallerIdentity, State};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Endpoints beside A2A.
pub trait Front: Send + Sync + 'static {
    /// What it is called in metrics.
    fn name(&self) -> &'static str;

    /// What a request needs; nothing if the path is not of this front. The method of a HEAD request is GET here.
    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>>;

    /// Answers a request that has what it needs. Dropped when the connection is lost or the caller's key is revoked, so what
    /// must not stop half way runs in a task of its own, with the request that [`Exchange::detach`] gives it.
    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>>;

    /// The response to a request that is refused before it gets here, such as one without a key.
    fn refuse(&self, _path: &str, error: &Error) -> Response<Body> {
        json_response::refusal(error)
    }

    /// The response to a request whose path only has other methods, as the message says. The server adds `Allow`.
    fn refuse_method(&self, _path: &str, message: &str) -> Response<Body> {
        json_response::error(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    /// The response at a path where nothing is, if it looks like one of this front's.
    fn refuse_path(&self, _path: &str) -> Option<Response<Body>> {
        None
    }

    /// Its part of `/openapi.json`: an object that is merged into the document.
    fn describe(&self) -> Option<serde_json::Value> {
        None
    }
}

/// What a request needs, known before its body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The caller.
    pub authorization: Authorization,
    /// The body.
    pub body: BodyRule,
    /// Whether the response is an event stream for certain: its slot is taken before the body is read.
    pub stream: bool,
    /// Whether it opens a WebSocket: a key may be among the protocols that the request offers.
    pub websocket: bool,
    /// Whether a task token is good here, as it is at every A2A endpoint.
    pub task_tokens: bool,
}

/// Which callers an endpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// All, without a key too, unless the endpoint checks credentials of its own.
    Public,
    /// Those with a key of this role or a higher one; [`CallerRole::None`] is any key.
    Role(CallerRole),
}

/// What a request's body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule {
    /// None: what is sent is discarded.
    None,
    /// JSON within `limits.requestBody`.
    Json,
}

/// A path that only has other methods: the value of the `Allow` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongMethod(pub &'static str);

impl Access {
    /// For all callers, without a body.
    pub const PUBLIC: Self = Self {
        authorization: Authorization::Public,
        body: BodyRule::None,
        stream: false,
        websocket: false,
        task_tokens: false,
    };

    /// For callers with a role, without a body.
    pub const fn role(role: CallerRole) -> Self {
        Self { authorization: Authorization::Role(role), ..Self::PUBLIC }
    }

    /// The same with a JSON body.
    #[must_use]
    pub const fn with_json(self) -> Self {
        Self { body: BodyRule::Json, ..self }
    }

    /// The same with a WebSocket as its response.
    #[must_use]
    pub const fn with_websocket(self) -> Self {
        Self { websocket: true, ..self }
    }

    /// The same for the programs of running tasks too.
    #[must_use]
    pub const fn with_task_tokens(self) -> Self {
        Self { task_tokens: true, ..self }
    }

    /// The same with an event stream as its response.
    #[must_use]
    pub const fn with_stream(self) -> Self {
        Self { stream: true, ..self }
    }
}

/// A request at a front, and what its response is made with.
pub struct Exchange {
    /// The request without its body.
    pub parts: Parts,
    /// The caller; on public paths perhaps the anonymous one.
    pub identity: Arc<CallerIdentity>,
    state: Arc<State>,
    activity: Arc<Activity>,
    rule: BodyRule,
    /// Until it is read.
    body: Option<RequestBody>,
    slot: Option<StreamSlot>,
    /// Bytes of the response budget for what is being read, and how many they were said to be.
    reserved: Option<(ReservedBytes, usize)>,
}

enum RequestBody {
    Incoming(Incoming),
    /// Of a request that was detached.
    Complete(Bytes),
}

impl Exchange {
    pub(crate) fn new(
        state: &Arc<State>,
        activity: &Arc<Activity>,
        identity: &Arc<CallerIdentity>,
        rule: BodyRule,
        parts: Parts,
        body: Incoming,
    ) -> Self {
        Self {
            parts,
            identity: Arc::clone(identity),
            state: Arc::clone(state),
            activity: Arc::clone(activity),
            rule,
            body: Some(RequestBody::Incoming(body)),
            slot: None,
            reserved: None,
        }
    }

    /// The same request for a task of its own, with its stream slot. Its body is read first: what has not come whole begins
    /// nothing.
    pub async fn detach(
        &mut self,
        refuse: impl FnOnce(&Error) -> Response<Body> + Send,
    ) -> Result<Self, Response<Body>> {
        let body = self.read_body_or(refuse).await?;
        Ok(Self {
            parts: self.parts.clone(),
            identity: Arc::clone(&self.identity),
            state: Arc::clone(&self.state),
            activity: Arc::clone(&self.activity),
            rule: self.rule,
            body: Some(RequestBody::Complete(body)),
            slot: self.slot.take(),
            reserved: self.reserved.take(),
        })
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// Reads the body as its rule says; empty if there is none or it was read before. A refused body is an error that is
    /// a response.
    pub async fn read_body(&mut self) -> Result<Bytes, Response<Body>> {
        self.read_body_or(json_response::refusal).await
    }

    /// The same, with the response that the front makes of an error.
    pub async fn read_body_or(
        &mut self,
        refuse: impl FnOnce(&Error) -> Response<Body> + Send,
    ) -> Result<Bytes, Response<Body>> {
        if self.rule == BodyRule::None {
            return Ok(Bytes::new());
        }
        let body = match self.body.take() {
            None => return Ok(Bytes::new()),
            Some(RequestBody::Complete(body)) => return Ok(body),
            Some(RequestBody::Incoming(body)) => body,
        };
        let read = request_body::read(&self.state, &self.activity, &self.parts, body).await;
        read.map_err(|rejected| rejected.finish(&self.parts, refuse(&rejected.error)))
    }

    /// Responds with an event stream; with the retryable error if no stream slot is left.
    pub fn event_stream(&mut self, format: impl FrameFormat) -> Response<Body> {
        if let Err(error) = self.take_stream_slot() {
            return json_response::refusal(&error);
        }
        event_stream_response(event_stream::body(&self.state, &self.identity, format, self.slot.take(), None))
    }

    /// Takes the slot of a stream early, so that what the stream needs is not opened in vain.
    pub fn take_stream_slot(&mut self) -> Result<(), Error> {
        if self.slot.is_none() {
            self.slot = Some(self.state.streams.take(&self.identity.caller.id)?);
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The slot of a stream, for what is to hold it.
    pub(crate) fn take_slot(&mut self) -> Option<StreamSlot> {
        self.slot.take()
    }

    /// Reserves about so many bytes of the response budget before they are read, as soon as the caller has them. What was
    /// reserved before is given back first, so that a response that waits holds nothing.
    pub async fn reserve(&mut self, bytes: u64) -> Result<(), Error> {
        self.reserved = None;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let responses = &self.state.responses;
        let reserved = match responses.try_reserve(&self.identity, bytes) {
            Some(reserved) => reserved,
            None => tokio::select! {
                biased;
                reserved = Box::pin(responses.reserve(&self.identity, bytes)) => reserved,
                // A wait for slow clients must not delay graceful shutdown.
                () = self.state.engine.drained().cancelled() => return Err(stopping()),
            },
        };
        self.reserved = Some((reserved, bytes));
        Ok(())
    }

    /// The same for the answer to what is done already: it does not wait.
    pub fn reserve_at_once(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.reserved = Some((self.state.responses.force(&self.identity, bytes), bytes));
    }

    /// A JSON response, which holds what was reserved until the client has taken it. A large one is rendered off the async
    /// threads, with callers in turn.
    pub async fn json(
        &mut self,
        status: StatusCode,
        value: impl Serialize + Send + 'static,
    ) -> Result<Response<Body>, Error> {
        let Some((mut reserved, bytes)) = self.reserved.take() else {
            return Ok(json_response::json(status, &value));
        };
        let body = if bytes <= SMALL {
            let body = serde_json::to_vec(&value).unwrap_or_default();
            reserved.resize(body.len());
            Body::full(body)
        } else {
            let slot = tokio::select! {
                biased;
                slot = self.state.responses.render_slot(&self.identity) => Some(slot),
                () = self.state.engine.drained().cancelled() => None,
            };
            let pieces = off_thread(move || {
                let body = serde_json::to_vec(&value).unwrap_or_default();
                drop((value, slot));
                Ok(split_into_pieces(body))
            });
            let pieces = pieces.await?;
            reserved.resize(pieces.iter().map(Bytes::len).sum());
            Body::pieces(pieces)
        };
        let mut response = json_response::body(status, "application/json", Bytes::new());
        *response.body_mut() = body.counted(Some(reserved));
        Ok(response)
    }

    /// Discards a body that was not read, so that the connection can be used again.
    pub(crate) async fn discard_body(&mut self) {
        if let Some(RequestBody::Incoming(mut body)) = self.body.take() {
            request_body::drain_refused(&self.state, &self.activity, &self.parts, Bytes::new(), &mut body).await;
        }
    }
}

/// An event stream, which no proxy may cache or buffer.
pub(crate) fn event_stream_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
