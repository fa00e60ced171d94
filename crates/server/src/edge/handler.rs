//! The handler of one request, from its head to its response: guards, caller, body, binding or front; then metrics and
//! access log.

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
use switchboard_a2a::{Error, ErrorKind};
use switchboard_engine::Address;

use super::access_log::AccessLog;
use super::activity::Activity;
use super::authenticate::{AuthError, INSUFFICIENT_SCOPE, check_role, identify};
use super::client_address::ClientAddress;
use super::request_guard::Origin;
use super::request_id::X_REQUEST_ID;
use super::router::{Endpoint, refuse_path};
use super::{client_address, cors, header_limits, hsts, json_response, landing_page, request_body};
use crate::bindings::routes::Route;
use crate::front::{Access, Authorization, Exchange, Front};
use crate::metric_definitions as metric;
use crate::{Body, CallerIdentity, RequestContext, RequestLabels, State, bindings};

/// When a client that has too many requests under way may try again: most take less.
const OVERLOADED_RETRY_MS: u64 = 1_000;

/// A response and what metrics, access log and CORS need to know of its request.
struct HandledRequest {
    response: Response<Body>,
    /// Once the caller is authenticated.
    identity: Option<Arc<CallerIdentity>>,
    counted: Counted,
    origin: Origin,
}

/// The metrics that count a request.
#[derive(Clone, Copy)]
enum Counted {
    A2a,
    Front(&'static str),
    Nowhere,
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
    let answering = answer(&state, &activity, parts, body, slot.is_none().then_some(client), &request_id);
    let handled = AssertUnwindSafe(answering).catch_unwind().await;
    let mut handled = handled.unwrap_or_else(|_| panicked(&request_id));

    let duration = began.elapsed();
    let response = &mut handled.response;
    match handled.counted {
        Counted::A2a => {
            let measured = response.body_mut().take_labels();
            state.request_metrics.count(measured.unwrap_or_else(|| unnamed(response.status())), duration);
        }
        Counted::Front(front) => {
            let status = response.status().as_str().to_owned();
            metrics::counter!(metric::FRONT_REQUESTS, "front" => front, "status" => status).increment(1);
        }
        Counted::Nowhere => {}
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
    activity: &Arc<Activity>,
    mut parts: Parts,
    mut body: Incoming,
    over_limit: Option<ClientAddress>,
    request_id: &HeaderValue,
) -> HandledRequest {
    if parts.method == Method::HEAD {
        parts.method = Method::GET;
    }
    let (endpoint, access) = state.router.find(parts.uri.path(), &parts.method);
    let counted = match &endpoint {
        Endpoint::A2a(_) => Counted::A2a,
        Endpoint::Front(front) => Counted::Front(front.name()),
        Endpoint::WrongMethod(..) | Endpoint::WrongFrontMethod(..) | Endpoint::Nothing(_) => Counted::Nowhere,
    };
    let is_a2a = matches!(endpoint, Endpoint::A2a(_) | Endpoint::WrongMethod(..));
    let access = Access { task_tokens: is_a2a || access.task_tokens, ..access };
    let (identity, origin) = match admit(state, &parts, access, over_limit) {
        Ok((Some(identity), origin)) => (identity, origin),
        Ok((None, origin)) => {
            let response = cors::preflight(&parts.headers);
            return HandledRequest { response, identity: None, counted: Counted::Nowhere, origin };
        }
        Err(refused) => {
            let sent = request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            let mut response = match &endpoint {
                Endpoint::A2a(route) => bindings::reject(state, route, &parts.headers, sent.as_deref(), &refused.error),
                Endpoint::Front(front) | Endpoint::WrongFrontMethod(_, front) | Endpoint::Nothing(Some(front)) => {
                    front.refuse(parts.uri.path(), &refused.error)
                }
                Endpoint::WrongMethod(..) | Endpoint::Nothing(None) => json_response::refusal(&refused.error),
            };
            if let Some(challenge) = refused.challenge {
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            return HandledRequest { response, identity: refused.identity, counted, origin: refused.origin };
        }
    };
    let mut response = match endpoint {
        Endpoint::A2a(route) => dispatch_to_binding(state, activity, route, parts, body, &identity).await,
        // Boxed, so that its size is not carried along with every message.
        Endpoint::Front(front) => {
            // What a front journals of a request has the id that its response and the log have.
            parts.headers.insert(X_REQUEST_ID, request_id.clone());
            let mut exchange = Exchange::new(state, activity, &identity, access.body, parts, body);
            Box::pin(dispatch_to_front(front, access, &mut exchange)).await
        }
        Endpoint::WrongMethod(allow, address) => {
            request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            wrong_method(state, &parts, &identity, allow, &address)
        }
        Endpoint::WrongFrontMethod(allow, front) => {
            request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            json_response::wrong_method(parts.uri.path(), &parts.method, allow, |path, text| {
                front.refuse_method(path, text)
            })
        }
        Endpoint::Nothing(front) => {
            request_body::drain_refused(state, activity, &parts, Bytes::new(), &mut body).await;
            refuse_path(front, parts.uri.path())
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
    /// If it is known and its role is not enough.
    identity: Option<Arc<CallerIdentity>>,
}

/// The guards, in order, and the caller; no caller if the request is a CORS preflight.
fn admit(
    state: &State,
    parts: &Parts,
    access: Access,
    over_limit: Option<ClientAddress>,
) -> Result<(Option<Arc<CallerIdentity>>, Origin), Box<Refused>> {
    let origin = state.guard.check(&parts.uri, &parts.headers).map_err(|refusal| {
        let error = Error::with_message(ErrorKind::PermissionDenied, refusal);
        Box::new(Refused { error, origin: Origin::None, challenge: None, identity: None })
    })?;
    let within_limits = header_limits::check(parts, &state.options).and_then(|()| match over_limit {
        Some(client) => Err(too_many_requests(client, state)),
        None => Ok(()),
    });
    if let Err(error) = within_limits {
        return Err(Box::new(Refused { error, origin, challenge: None, identity: None }));
    }
    if cors::is_preflight(&parts.method, &parts.headers) {
        return Ok((None, origin));
    }
    let identity = match (identify(state, &parts.headers, access), access.authorization) {
        (Ok(identity), _) => identity,
        (Err(AuthError::Missing | AuthError::Unknown), Authorization::Public) => Arc::clone(&state.anonymous),
        (Err(error), _) => {
            let challenge = Some(error.challenge());
            return Err(Box::new(Refused { error: error.error(), origin, challenge, identity: None }));
        }
    };
    if let Authorization::Role(needed) = access.authorization
        && let Err(error) = check_role(&identity.caller, needed)
    {
        let challenge = Some(INSUFFICIENT_SCOPE);
        return Err(Box::new(Refused { error, origin, challenge, identity: Some(identity) }));
    }
    Ok((Some(identity), origin))
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

/// If the caller's key is revoked meanwhile, the front's work is dropped, as when the connection is lost. What the front has
/// begun in a task of its own goes on.
async fn dispatch_to_front(front: &dyn Front, access: Access, exchange: &mut Exchange) -> Response<Body> {
    let identity = Arc::clone(&exchange.identity);
    let path = exchange.parts.uri.path().to_owned();
    let answering = async {
        if access.stream {
            exchange.take_stream_slot()?;
        }
        Ok::<_, Error>(front.answer(exchange).await)
    };
    let response = tokio::select! {
        biased;
        () = identity.revoked.cancelled() => front.refuse(&path, &AuthError::since(&identity).error()),
        answered = answering => answered.unwrap_or_else(|error| front.refuse(&path, &error)),
    };
    exchange.discard_body().await;
    response
}

/// 405. People open A2A addresses with a browser, and get a page that tells what is there.
fn wrong_method(
    state: &State,
    parts: &Parts,
    identity: &CallerIdentity,
    allow: &'static str,
    address: &Address,
) -> Response<Body> {
    let no_agent = bindings::no_agent_at(state, address, &identity.caller);
    no_agent.unwrap_or_else(|| match landing_page::is_wanted(&parts.method, &parts.headers) {
        true => landing_page::page(state, identity),
        false => json_response::wrong_method(parts.uri.path(), &parts.method, allow, |_, text| {
            json_response::error(StatusCode::METHOD_NOT_ALLOWED, text)
        }),
    })
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
    HandledRequest { response, identity: None, counted: Counted::A2a, origin: Origin::None }
}

/// The labels of a response that no binding has labelled.
fn unnamed(status: StatusCode) -> RequestLabels {
    RequestLabels { method: "unknown", agent: None, outcome: if status.is_success() { "ok" } else { "error" } }
}
