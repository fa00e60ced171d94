//! The handler of one request, from its head to its response: guards, caller, body, binding; then metrics and access
//! log.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONNECTION, CONTENT_LENGTH, ORIGIN, STRICT_TRANSPORT_SECURITY, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use switchboard_a2a::{Error, ErrorKind, TaskId};
use switchboard_engine::Address;

use super::access_log::AccessLog;
use super::activity::Activity;
use super::authenticate::{AuthError, INSUFFICIENT_SCOPE, identify};
use super::client_address::ClientAddress;
use super::request_guard::Origin;
use super::request_id::X_REQUEST_ID;
use super::{client_address, cors, header_limits, hsts, json_response, landing_page, request_body};
use crate::bindings::routes::{self, Route, WrongMethod};
use crate::health::{self, HealthCheck};
use crate::{Body, CallerIdentity, RequestContext, RequestLabels, State, api, bindings};

/// When a client that has too many requests under way may try again: most take less.
const OVERLOADED_RETRY_MS: u64 = 1_000;

enum Endpoint {
    A2a(Route),
    Health(HealthCheck),
    Api(api::Route),
    /// With the methods there are, and whose address it is.
    WrongMethod(&'static str, Address),
    Nothing,
}

/// A response and what metrics, access log and CORS need to know of its request.
struct HandledRequest {
    response: Response<Body>,
    /// Once the caller is authenticated.
    identity: Option<Arc<CallerIdentity>>,
    /// Whether it counts as an A2A request.
    counted: bool,
    origin: Origin,
}

/// Answers one request; a panic behind this becomes a response too.
pub(super) async fn handle(
    state: Arc<State>,
    activity: Arc<Activity>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let began = Instant::now();
    let in_flight = activity.begin(request.version() == Version::HTTP_2);
    let (parts, body) = request.into_parts();
    let request_id = state.request_ids.name(&parts.headers);
    let client = client_address::of_request(peer, &parts.headers, &state.options.trusted_proxies);
    let log = AccessLog::begin(&parts.method, &parts.uri, client.address());
    // A proxy's connection carries the requests of many clients; each address has its slots all the same.
    let slot = match client {
        ClientAddress::Peer(_) => Some(None),
        ClientAddress::Forwarded(address) => state.addresses.take(address),
        ClientAddress::Unattributed(proxy) => state.addresses.take_counted(proxy),
    };
    let is_head = parts.method == Method::HEAD;
    let page = parts.headers.get(ORIGIN).cloned();
    let promises_tls = state.options.tls.is_some() && hsts::is_due(&parts);
    let answering = answer(&state, &activity, parts, body, slot.is_none().then_some(client));
    let handled = AssertUnwindSafe(answering).catch_unwind().await;
    let mut handled = handled.unwrap_or_else(|_| panicked(&request_id));

    let duration = began.elapsed();
    let response = &mut handled.response;
    if handled.counted {
        let measured = response.extensions_mut().remove::<RequestLabels>();
        state.request_metrics.count(measured.unwrap_or_else(|| unnamed(response.status())), duration);
    }
    let caller = handled.identity.as_ref().map_or("-", |identity| identity.caller.id.as_str());
    log.write(response.status(), duration, caller, &request_id);
    response.headers_mut().insert(X_REQUEST_ID, request_id);
    if let (Origin::Allowed, Some(page)) = (&handled.origin, page) {
        cors::expose(page, response.headers_mut());
    }
    if !state.options.allowed_origins.is_empty() {
        cors::vary(response.headers_mut());
    }
    if promises_tls {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts::A_YEAR);
    }
    if activity.lingering_bytes().is_some() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let (mut parts, mut body) = handled.response.into_parts();
    if is_head {
        if let Some(length) = body.length() {
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        body = Body::empty();
    }
    Ok(Response::from_parts(parts, body.holding(in_flight, slot.flatten())))
}

async fn answer(
    state: &Arc<State>,
    activity: &Activity,
    mut parts: Parts,
    mut body: Incoming,
    over_limit: Option<ClientAddress>,
) -> HandledRequest {
    if parts.method == Method::HEAD {
        parts.method = Method::GET;
    }
    let endpoint = find(parts.uri.path(), &parts.method);
    let (identity, origin) = match admit(state, &parts, &endpoint, over_limit) {
        Ok((Some(identity), origin)) => (identity, origin),
        Ok((None, origin)) => {
            let response = cors::preflight(&parts.headers);
            return HandledRequest { response, identity: None, counted: false, origin };
        }
        Err(refused) => {
            let sent = request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            let (mut response, counted) = match &endpoint {
                Endpoint::A2a(route) => {
                    (bindings::reject(state, route, &parts.headers, sent.as_deref(), &refused.error), true)
                }
                _ => (json_response::refusal(&refused.error), false),
            };
            if let Some(challenge) = refused.challenge {
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            return HandledRequest { response, identity: None, counted, origin: refused.origin };
        }
    };
    let (mut response, counted) = match endpoint {
        Endpoint::A2a(route) => (dispatch_to_binding(state, activity, route, parts, body, &identity).await, true),
        // Boxed, so that its size is not carried along with every message.
        Endpoint::Api(api::Route::Callback(task)) => {
            (Box::pin(receive_callback(state, activity, &task, parts, body)).await, false)
        }
        other => {
            request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            (serve_own_endpoint(state, other, &parts, &identity).await, false)
        }
    };
    let challenge = match response.status() {
        // The key was good when the request came, or none was needed.
        StatusCode::UNAUTHORIZED => Some(AuthError::since(&identity).challenge()),
        StatusCode::FORBIDDEN => Some(INSUFFICIENT_SCOPE),
        _ => None,
    };
    if let Some(challenge) = challenge {
        // Where another token is wanted, the challenge is there already.
        response.headers_mut().entry(WWW_AUTHENTICATE).or_insert(challenge);
    }
    HandledRequest { response, identity: Some(identity), counted, origin }
}

/// A request that is refused before its body is read.
struct Refused {
    error: Error,
    origin: Origin,
    challenge: Option<HeaderValue>,
}

/// The guards, in order, and the caller; no caller if the request is a CORS preflight.
fn admit(
    state: &State,
    parts: &Parts,
    endpoint: &Endpoint,
    over_limit: Option<ClientAddress>,
) -> Result<(Option<Arc<CallerIdentity>>, Origin), Box<Refused>> {
    let origin = state.guard.check(&parts.uri, &parts.headers).map_err(|refusal| {
        let error = Error::with_message(ErrorKind::PermissionDenied, refusal);
        Box::new(Refused { error, origin: Origin::None, challenge: None })
    })?;
    let within_limits = header_limits::check(parts, &state.options).and_then(|()| match over_limit {
        Some(client) => Err(too_many_requests(client, state)),
        None => Ok(()),
    });
    if let Err(error) = within_limits {
        return Err(Box::new(Refused { error, origin, challenge: None }));
    }
    if cors::is_preflight(&parts.method, &parts.headers) {
        return Ok((None, origin));
    }
    match identify(state, &parts.headers) {
        Ok(identity) => Ok((Some(identity), origin)),
        Err(error) if !endpoint.is_public() || error == AuthError::Ambiguous => {
            Err(Box::new(Refused { error: error.error(), origin, challenge: Some(error.challenge()) }))
        }
        Err(_) => Ok((Some(Arc::clone(&state.anonymous)), origin)),
    }
}

fn find(path: &str, method: &Method) -> Endpoint {
    if let Some(check) = health::find(path) {
        return match *method {
            Method::GET => Endpoint::Health(check),
            _ => Endpoint::WrongMethod("GET, HEAD", Address::Root),
        };
    }
    match api::find(path) {
        Some((offered, route)) if offered == *method => return Endpoint::Api(route),
        Some((Method::GET, _)) => return Endpoint::WrongMethod("GET, HEAD", Address::Root),
        Some(_) => return Endpoint::WrongMethod("POST", Address::Root),
        None => {}
    }
    match routes::find(path, method) {
        Some(Ok(route)) => Endpoint::A2a(route),
        Some(Err(WrongMethod(allow, address))) => Endpoint::WrongMethod(allow, address),
        None => Endpoint::Nothing,
    }
}

impl Endpoint {
    /// Whether no key is needed. A callback has a token of its own.
    fn is_public(&self) -> bool {
        match self {
            Self::A2a(route) => matches!(route, Route::Card(_) | Route::OpenApi),
            Self::Health(check) => !matches!(check, HealthCheck::Metrics),
            Self::Api(route) => matches!(route, api::Route::Callback(_)),
            Self::WrongMethod(..) | Self::Nothing => true,
        }
    }
}

async fn dispatch_to_binding(
    state: &Arc<State>,
    activity: &Activity,
    route: Route,
    parts: Parts,
    body: Incoming,
    identity: &Arc<CallerIdentity>,
) -> Response<Body> {
    let bytes = match request_body::read(state, activity, &parts, body).await {
        Ok(bytes) => bytes,
        Err(rejected) => {
            let sent = rejected.sent.as_deref();
            let response = bindings::reject(state, &route, &parts.headers, sent, &rejected.error);
            return rejected.finish(&parts, response);
        }
    };
    let Parts { uri, headers, .. } = parts;
    let context = RequestContext { uri, headers, body: bytes, identity: Arc::clone(identity) };
    bindings::answer(state, route, context).await
}

/// A push notification of another server about a task of ours.
async fn receive_callback(
    state: &Arc<State>,
    activity: &Activity,
    task: &TaskId,
    parts: Parts,
    mut body: Incoming,
) -> Response<Body> {
    let admitted = match api::admit(state, task, &parts.headers).await {
        Ok(admitted) => admitted,
        Err(response) => {
            request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            return response;
        }
    };
    match request_body::read(state, activity, &parts, body).await {
        Ok(bytes) => api::receive(admitted, &parts.headers, &bytes).await,
        Err(rejected) => rejected.finish(&parts, json_response::refusal(&rejected.error)),
    }
}

/// Health checks, the operator API, the landing page, and what is not there.
async fn serve_own_endpoint(
    state: &State,
    endpoint: Endpoint,
    parts: &Parts,
    identity: &CallerIdentity,
) -> Response<Body> {
    let path = parts.uri.path();
    match endpoint {
        Endpoint::Health(check) => health::answer(state, check, identity).await,
        Endpoint::WrongMethod(allow, address) => {
            let no_agent = bindings::no_agent_at(state, &address, &identity.caller);
            // People open A2A addresses with a browser, but not those under /api.
            let is_for_people = landing_page::is_wanted(&parts.method, &parts.headers) && !path.starts_with("/api/");
            no_agent.unwrap_or_else(|| match is_for_people {
                true => landing_page::page(state, identity),
                false => json_response::wrong_method(path, &parts.method, allow),
            })
        }
        Endpoint::Api(api::Route::Webhooks(request)) => {
            let answer = api::answer(state, request, &parts.uri, identity).await;
            answer.unwrap_or_else(|problem| problem.response())
        }
        Endpoint::A2a(_) | Endpoint::Api(_) | Endpoint::Nothing => json_response::not_found(path),
    }
}

/// The refusal of a client that has too many requests under way, over connections of a trusted proxy.
fn too_many_requests(client: ClientAddress, state: &State) -> Error {
    let (address, limit) = (client.address(), state.options.connections_per_address);
    let reason = match client {
        ClientAddress::Unattributed(_) => {
            " (the forwarding headers of this proxy name no single client, so that all such requests count as one client's)"
        }
        _ => "",
    };
    let message = format!(
        "{address} has {limit} requests under way, as many as limits.connectionsPerAddress allows, wait for some \
         first{reason}"
    );
    Error::overloaded(message, OVERLOADED_RETRY_MS)
}

/// The panic hook has logged where; this ties it to the request.
fn panicked(request_id: &HeaderValue) -> HandledRequest {
    let request_id = request_id.to_str().unwrap_or_default();
    tracing::error!(request_id, "a request panicked, this is a bug");
    let response = json_response::error(StatusCode::INTERNAL_SERVER_ERROR, "internal error, the log says more");
    HandledRequest { response, identity: None, counted: true, origin: Origin::None }
}

/// The labels of a response that no binding has labelled.
fn unnamed(status: StatusCode) -> RequestLabels {
    RequestLabels { method: "unknown", agent: None, outcome: if status.is_success() { "ok" } else { "error" } }
}
