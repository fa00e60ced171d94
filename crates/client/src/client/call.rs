//! One call of an operation: version negotiation, the alternate REST form, and the retry policy, which repeats only
//! what cannot take effect twice.
//!
//! A version is negotiated once the agent has sent what only an agent of that version sends: a response, or an error
//! such as an unknown task. An error about an optional operation proves nothing.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Dialect, ErrorKind, Operation, PushRequest, Request, Version, VisitParts, rest_files};

use super::{Client, Inner};
use crate::event_stream::EventStream;
use crate::exchange::{Answer, Exchange, Failure, IDEMPOTENCY_KEY, LAST_EVENT_ID, PreparedRequest};
use crate::route::{Route, Routes};
use crate::wire_format::WireFormat;
use crate::{CallContext, ClientError, interface};

/// An operation with its request and the headers for deduplication and resumption.
pub(crate) struct OperationCall<'a> {
    pub(crate) operation: Operation,
    pub(crate) request: Request,
    pub(crate) key: Option<&'a str>,
    pub(crate) last_event_id: Option<&'a str>,
}

impl OperationCall<'_> {
    pub(crate) fn new(operation: Operation, request: Request) -> Self {
        Self { operation, request, key: None, last_event_id: None }
    }
}

impl Client {
    /// Calls a streaming operation.
    pub(crate) async fn connect(
        &self,
        context: &CallContext,
        call: OperationCall<'_>,
    ) -> Result<EventStream, ClientError> {
        self.call_negotiated(context, &call).await.map(|(_, stream)| stream)
    }

    /// Whether the agent's card declares an extension.
    pub(crate) async fn declares(&self, context: &CallContext, uri: &str) -> bool {
        let found = self.card(context).await;
        found.is_ok_and(|found| found.card.capabilities.extensions.iter().any(|extension| extension.uri == uri))
    }

    /// Calls an operation whose response is one JSON value.
    pub(super) async fn call(
        &self,
        context: &CallContext,
        operation: Operation,
        request: Request,
    ) -> Result<Bytes, ClientError> {
        let call = OperationCall::new(operation, request);
        self.call_negotiated(context, &call).await.map(|(_, json)| json)
    }

    /// The same, decoded.
    pub(super) async fn call_decoded<T: VisitParts>(
        &self,
        context: &CallContext,
        call: OperationCall<'_>,
        decode: impl FnOnce(Dialect, &[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<T, ClientError> {
        let (format, json) = self.call_negotiated::<Bytes>(context, &call).await?;
        self.read(&json, |json| format.read(decode, json))
    }

    /// The routes to the agent: from its card or, if it has none, from the peer's settings.
    pub(super) async fn routes(&self, context: &CallContext) -> Result<Arc<Routes>, ClientError> {
        let Inner { peer, address, card_caches, .. } = &*self.inner;
        let cache = card_caches.of(context);
        let (card, absent) = match cache.card(&self.exchange(context)).await {
            Ok(found) => (Some(found), None),
            Err(error @ ClientError::NoCard(_)) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        cache.routes(card, |card| match (card, absent) {
            (Some(found), _) => interface::negotiate(found, peer, address),
            (None, absent) => match (interface::named(peer, address), absent) {
                (None, Some(absent)) => Err(absent),
                (named, _) => Ok(named.into_iter().collect()),
            },
        })
    }

    /// Negotiation: calls in the chosen version, and once in the other one if the agent does not know the first. The
    /// version that works stays chosen.
    async fn call_negotiated<A: Answer>(
        &self,
        context: &CallContext,
        call: &OperationCall<'_>,
    ) -> Result<(WireFormat, A), ClientError> {
        let routes = self.routes(context).await?;
        let is_open = self.inner.peer.version.is_none();
        let mut route = routes.chosen();
        // Version 0.3 has no such operation, and the agent may speak both versions.
        if call.operation == Operation::ListTasks && is_open && route.interface.version == Version::V03 {
            route = routes.offered(Version::V1, &route).unwrap_or(route);
        }
        let refusal = match self.call_with_retry(context, &route, call).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_open && is_unknown_method(&error) => error,
            Err(error) => return Err(error),
        };
        let other = routes.in_other_version(&route);
        tracing::debug!(version = other.interface.version.as_str(), %refusal, "asking in the other version");
        let answer = self.call_with_retry(context, &other, call).await;
        let is_explicit = refusal.error_kind() == Some(ErrorKind::VersionNotSupported);
        match answer {
            Ok(answer) => {
                if is_explicit || is_mandatory(call.operation) || is_sending(call.operation) {
                    routes.choose(other);
                }
                Ok(answer)
            }
            // It understood the request, so this is its version; unless the operation is one it may lack.
            Err(error) if proves_version(&error) => {
                if is_explicit || is_mandatory(call.operation) {
                    routes.choose(other);
                }
                Err(error)
            }
            Err(_) => Err(refusal),
        }
    }

    /// Retries with backoff where the request cannot take effect twice.
    async fn call_with_retry<A: Answer>(
        &self,
        context: &CallContext,
        route: &Route,
        call: &OperationCall<'_>,
    ) -> Result<(WireFormat, A), ClientError> {
        let format = self.wire_format_of(context, &route.interface).await;
        let mut request = route.interface.adapt(&call.request);
        if format.files_twice
            && let Request::Send(request) = request.to_mut()
        {
            rest_files::add_layer(&mut request.message);
        }
        let (mut attempt, mut perhaps_taken) = (0, None);
        loop {
            let Failure { error, retry_after } = match self
                .call_in_either_form(context, route, call, self.prepare(route, format, call, &request)?)
                .await
            {
                Ok(answer) => return Ok((format, answer)),
                Err(failure) => failure,
            };
            attempt += 1;
            let may_repeat = error.is_transient()
                && (error.is_without_effect()
                    || is_idempotent(call.operation, &request)
                    || is_sending(call.operation) && self.declares(context, IDEMPOTENCY).await);
            let wait = if may_repeat { self.inner.peer.retries.backoff(attempt, retry_after) } else { None };
            let Some(wait) = wait else {
                // That the last attempt has not arrived says nothing of the ones before it.
                let is_without_effect = error.is_without_effect();
                return Err(perhaps_taken.filter(|_| is_without_effect).unwrap_or(error));
            };
            if is_sending(call.operation) && !error.is_without_effect() {
                perhaps_taken = Some(error.clone());
            }
            tracing::debug!(%error, attempt, wait_ms = wait.as_millis(), "asking again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a request that has two REST forms in the one this agent takes.
    async fn call_in_either_form<A: Answer>(
        &self,
        context: &CallContext,
        route: &Route,
        call: &OperationCall<'_>,
        mut prepared: PreparedRequest,
    ) -> Result<A, Failure> {
        if route.uses_alternate(call.operation) {
            prepared.switch_form();
        }
        match self.call_once(context, call.operation, &prepared).await {
            Err(failure) if is_wrong_form(&failure.error) && prepared.switch_form() => {
                let Ok(answer) = self.call_once(context, call.operation, &prepared).await else { return Err(failure) };
                route.remember_alternate(call.operation);
                Ok(answer)
            }
            answer => answer,
        }
    }

    async fn call_once<A: Answer>(
        &self,
        context: &CallContext,
        operation: Operation,
        prepared: &PreparedRequest,
    ) -> Result<A, Failure> {
        let limits = &self.inner.peer.limits;
        let timeout = if is_sending(operation) { limits.answer } else { limits.head };
        A::receive(self.exchange(context), prepared, timeout).await
    }

    fn prepare(
        &self,
        route: &Route,
        format: WireFormat,
        call: &OperationCall<'_>,
        request: &Request,
    ) -> Result<PreparedRequest, ClientError> {
        let mut prepared = PreparedRequest::new(route, format, call.operation, request)?;
        for (name, value) in [(IDEMPOTENCY_KEY, call.key), (LAST_EVENT_ID, call.last_event_id)] {
            if let Some(value) = value {
                prepared = prepared.with(name, value)?;
            }
        }
        Ok(prepared)
    }

    pub(super) fn exchange<'a>(&'a self, context: &'a CallContext) -> Exchange<'a> {
        let Inner { egress, peer, address, .. } = &*self.inner;
        Exchange { egress, peer, address, context }
    }

    pub(super) fn read<T>(
        &self,
        json: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<T, ClientError> {
        read(json).map_err(|error| ClientError::NotA2a {
            origin: self.inner.address.origin(),
            status: 200,
            what: format!("an answer that cannot be read ({error})"),
            hint: crate::not_a2a::excerpt(&String::from_utf8_lossy(&json[..json.len().min(4 << 10)])),
        })
    }
}

/// The agent does not know the method or the version.
fn is_unknown_method(error: &ClientError) -> bool {
    matches!(error.error_kind(), Some(ErrorKind::MethodNotFound | ErrorKind::VersionNotSupported))
        || matches!(error, ClientError::NotA2a { status: 404, .. })
}

/// The form was probably not accepted: the agent wants another HTTP method or another body.
fn is_wrong_form(error: &ClientError) -> bool {
    let kinds = [ErrorKind::TaskNotFound, ErrorKind::InvalidParams, ErrorKind::InvalidRequest, ErrorKind::Internal];
    is_unknown_method(error)
        || matches!(error, ClientError::NotA2a { status: 400 | 405 | 500, .. })
        || error.error_kind().is_some_and(|kind| kinds.contains(&kind))
}

/// The error is one that only an agent that knows the method returns, so it speaks this version.
fn proves_version(error: &ClientError) -> bool {
    let kinds = [
        ErrorKind::ContentTypeNotSupported,
        ErrorKind::ExtendedCardNotConfigured,
        ErrorKind::ExtensionRequired,
        ErrorKind::InvalidAgentResponse,
        ErrorKind::PushNotSupported,
        ErrorKind::TaskNotCancelable,
        ErrorKind::TaskNotFound,
        ErrorKind::UnsupportedOperation,
    ];
    error.error_kind().is_some_and(|kind| kinds.contains(&kind))
}

/// Every agent has these operations, so an unknown method means another version.
fn is_mandatory(operation: Operation) -> bool {
    matches!(operation, Operation::SendMessage | Operation::GetTask | Operation::CancelTask)
}

fn is_sending(operation: Operation) -> bool {
    matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage)
}

fn is_idempotent(operation: Operation, request: &Request) -> bool {
    match request {
        Request::Push(PushRequest::Create(config)) => config.id.is_some(),
        _ => !is_sending(operation),
    }
}
