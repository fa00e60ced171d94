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
use http::{HeaderName, HeaderValue, Method, Response};
use hyper::body::Incoming;
use switchboard_a2a::Error;
use switchboard_engine::{Caller, CallerRole};

use crate::edge::activity::Activity;
use crate::edge::stream_slots::StreamSlot;
use crate::edge::{json_response, request_body};
use crate::event_stream::{self, FrameFormat};
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
    pub const PUBLIC: Self = Self { authorization: Authorization::Public, body: BodyRule::None, stream: false };

    /// For callers with a role, without a body.
    pub const fn role(role: CallerRole) -> Self {
        Self { authorization: Authorization::Role(role), ..Self::PUBLIC }
    }

    /// The same with a JSON body.
    #[must_use]
    pub const fn with_json(self) -> Self {
        Self { body: BodyRule::Json, ..self }
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
