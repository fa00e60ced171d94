//! The HTTP client behind the SSRF guard.
//!
//! An address policy and the connection pool made under it are replaced together by [`Egress::reload`], so a
//! kept-alive connection never outlasts the permission it was made with.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Method, Request, Response, Version, header};
use http_body_util::Full;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::allowlist::Allowlist;
use crate::connector::Connector;
use crate::error::{SendError, SetupError, TimeoutPhase, TlsError};
use crate::options::Options;
use crate::policy::{Policy, PolicyDecision};
use crate::receive_budget::{MAX_RESPONSE_HEAD, ReceiveBudget};
use crate::resolver::Resolver;
use crate::response_body::ResponseBody;
use crate::stream::CertificateRejected;
use crate::target::Target;
use crate::tls::{Tls, is_certificate_rejection};
use crate::url_refusal::UrlRefusal;

/// The HTTP/2 flow-control window: how much of an unread body may be in flight.
const WINDOW: u32 = 32 * 1024;

/// The HTTP client behind the SSRF guard. Clones share everything.
#[derive(Clone)]
pub struct Egress {
    shared: Arc<Shared>,
}

struct Shared {
    /// The allowlist and nameservers in here are those of the start; the current ones are in `pool`.
    options: Options,
    tls: Tls,
    /// Limits the open connections of all pools together.
    connection_slots: Arc<Semaphore>,
    pool: RwLock<Arc<PolicyPool>>,
}

/// An address policy and the pooled connections that were made under it.
struct PolicyPool {
    policy: Arc<Policy>,
    client: Client<Connector, Full<Bytes>>,
}

impl Egress {
    /// Sets the client up; the system's root certificates are read here. Fails if an extra one cannot be used.
    pub fn new(options: Options) -> Result<Self, SetupError> {
        let tls = Tls::new(&options.extra_roots, options.identity.as_ref(), options.unverified)?;
        let connection_slots = Arc::new(Semaphore::new(options.connections.clamp(1, Semaphore::MAX_PERMITS)));
        let pool = build_pool(&options, &tls, &connection_slots, options.allowlist.clone(), &options.nameservers);
        Ok(Self { shared: Arc::new(Shared { options, tls, connection_slots, pool: RwLock::new(Arc::new(pool)) }) })
    }

    /// Replaces the allowlist and the nameservers. Calls in flight finish under the old policy; new ones use neither the
    /// old connections nor the cached DNS answers.
    pub fn reload(&self, allowlist: Allowlist, nameservers: &[SocketAddr]) {
        let Shared { options, tls, connection_slots, .. } = &*self.shared;
        let pool = build_pool(options, tls, connection_slots, allowlist, nameservers);
        *self.shared.pool.write() = Arc::new(pool);
    }

    /// All of [`Egress::check`] but the lookup.
    pub fn check_text(&self, url: &str) -> Result<Target, UrlRefusal> {
        let target = Target::parse(url)?;
        self.pool().policy.decide(&target)?;
        Ok(target)
    }

    /// Checks a URL when it is registered; the call itself is checked again. A host that the allowlist has by name is
    /// not looked up.
    pub async fn check(&self, url: &str) -> Result<Target, UrlRefusal> {
        let target = Target::parse(url)?;
        let pool = self.pool();
        if let PolicyDecision::Lookup { is_trusted: false } = pool.policy.decide(&target)? {
            pool.policy.addresses(&target).await.inspect_err(|refusal| {
                tracing::debug!(host = target.host(), why = %refusal.detail(), "refused an address");
            })?;
        }
        Ok(target)
    }

    /// Sends a request and reads at most `maximum_body` bytes of the response, all within `total`.
    ///
    /// Redirects are responses like any other. Once the head is there the call has succeeded; how its body ended is a
    /// [`crate::BodyEnd`] in the extensions. The `Host` header always follows from the URL.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        total: Duration,
        maximum_body: usize,
    ) -> Result<Response<Bytes>, SendError> {
        let start = Instant::now();
        let (mut parts, body) = self.open(request, total).await?.into_parts();
        let (bytes, end) = body.collect(maximum_body, total.saturating_sub(start.elapsed())).await;
        parts.extensions.insert(end);
        Ok(Response::from_parts(parts, bytes))
    }

    /// Sends a request and waits at most `head` for the head of its response, connecting included; the caller reads the
    /// body as it arrives. [`Egress::reload`] does not end it: a call in flight finishes under the old policy.
    pub async fn open(&self, request: Request<Bytes>, head: Duration) -> Result<Response<ResponseBody>, SendError> {
        let target = Target::parse(&request.uri().to_string())?;
        self.open_to(&target, request, head).await
    }

    /// The same for a target that is parsed once and called again and again: the request goes there, whatever its own
    /// URI says.
    pub async fn open_to(
        &self,
        target: &Target,
        request: Request<Bytes>,
        head: Duration,
    ) -> Result<Response<ResponseBody>, SendError> {
        let pool = self.pool();
        // A pooled connection does not go through the connector, so the policy is asked here too.
        pool.policy.decide(target)?;
        let mut request = request.map(Full::new);
        if request.method() == Method::CONNECT {
            return Err(SendError::Method(Method::CONNECT));
        }
        *request.uri_mut() = target.uri().clone();
        *request.version_mut() = Version::HTTP_11;
        request.headers_mut().remove(header::HOST);
        // While more than half of the slots are taken, connections are not kept alive: another call may need the slot.
        if self.shared.connection_slots.available_permits() * 2 < self.shared.options.connections {
            request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let connection = capture_connection(&mut request);
        let answer = match timeout(head, pool.client.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(connection_failure(&connection).unwrap_or_else(|| from_client_error(&error))),
            Err(_) => {
                let connected = connection.connection_metadata().is_some();
                return Err(SendError::Timeout {
                    phase: if connected { TimeoutPhase::Response } else { TimeoutPhase::Connect },
                });
            }
        };
        let (mut parts, body) = answer.into_parts();
        let budget = parts.extensions.get().map(ReceiveBudget::start_body);
        parts.extensions.clear();
        Ok(Response::from_parts(parts, ResponseBody::new(body, budget)))
    }

    fn pool(&self) -> Arc<PolicyPool> {
        Arc::clone(&self.shared.pool.read())
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Egress").field("allowlist", &self.pool().policy.allowlist).finish_non_exhaustive()
    }
}

fn build_pool(
    options: &Options,
    tls: &Tls,
    connection_slots: &Arc<Semaphore>,
    allowlist: Allowlist,
    nameservers: &[SocketAddr],
) -> PolicyPool {
    let resolver = Resolver::new(nameservers, options.dns_timeout);
    let policy = Arc::new(Policy { allowlist, anywhere: options.anywhere, resolver });
    let connector = Connector {
        policy: Arc::clone(&policy),
        tls: tls.clone(),
        connection_slots: Arc::clone(connection_slots),
        connect_timeout: options.connect_timeout,
        idle_timeout: options.idle_timeout,
    };
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        // The pool also checks at this interval, so a connection may idle for twice as long.
        .pool_idle_timeout(options.idle_timeout / 2)
        .pool_max_idle_per_host(options.idle_per_host)
        .http1_max_buf_size(MAX_RESPONSE_HEAD)
        .http2_initial_stream_window_size(WINDOW)
        .build(connector);
    PolicyPool { policy, client }
}

/// Why the connection ended, where it knows better than the client: the receive budget was exceeded, or the server
/// rejected the client certificate.
fn connection_failure(connection: &CaptureConnection) -> Option<SendError> {
    let mut extras = Extensions::new();
    connection.connection_metadata().as_ref()?.get_extras(&mut extras);
    if extras.get().is_some_and(ReceiveBudget::is_exceeded) {
        return Some(SendError::NotHttp);
    }
    extras.get().is_some_and(CertificateRejected::is_set).then_some(SendError::Tls(TlsError::NotAccepted))
}

/// Finds the cause in the client's chain of boxed errors.
fn from_client_error(error: &ClientError) -> SendError {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(ours) = cause.downcast_ref::<SendError>() {
            return ours.clone();
        }
        // The rejection may come before the connection counts as made.
        if cause.downcast_ref().is_some_and(is_certificate_rejection) {
            return SendError::Tls(TlsError::NotAccepted);
        }
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return SendError::NotHttp;
        }
        source = cause.source();
    }
    SendError::Broken
}
