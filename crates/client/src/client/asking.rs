//! How a question comes to its answer: in the version, the form and the place that the agent takes it in, and again where
//! that cannot do anything twice.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{ErrorKind, Operation, PushRequest, Request, Version, rest_files};

use super::{Client, Inner};
use crate::connection::Connection;
use crate::exchange::{Exchange, Failure, IDEMPOTENCY_KEY, LAST_EVENT_ID, Question};
use crate::route::{Route, Ways};
use crate::said::said_to;
use crate::wire_format::WireFormat;
use crate::{ClientError, Context, interface};

/// What is asked, and where it is gone on with.
pub(crate) struct Call<'a> {
    pub(crate) operation: Operation,
    pub(crate) request: Request,
    pub(crate) key: Option<&'a str>,
    pub(crate) last_event_id: Option<&'a str>,
}

impl Call<'_> {
    pub(crate) fn new(operation: Operation, request: Request) -> Self {
        Self { operation, request, key: None, last_event_id: None }
    }
}

/// How an answer comes: all of it, or event after event.
enum Answer {
    Whole(Bytes),
    Events(Box<Connection>),
}

impl Client {
    /// Opens one connection that carries events.
    pub(crate) async fn connect(&self, context: &Context, call: Call<'_>) -> Result<Connection, ClientError> {
        match self.in_either_version(context, &call).await?.1 {
            Answer::Events(connection) => Ok(*connection),
            Answer::Whole(_) => {
                Err(ClientError::Invalid { field: "operation", problem: "it has no events".to_owned() })
            }
        }
    }

    /// Whether the agent's card declares an extension.
    pub(crate) async fn declares(&self, context: &Context, uri: &str) -> bool {
        let found = self.card(context).await;
        found.is_ok_and(|found| found.card.capabilities.extensions.iter().any(|extension| extension.uri == uri))
    }

    /// Asks for an answer that comes at once.
    pub(super) async fn whole(&self, context: &Context, call: Call<'_>) -> Result<(WireFormat, Bytes), ClientError> {
        match self.in_either_version(context, &call).await? {
            (format, Answer::Whole(json)) => Ok((format, json)),
            (_, Answer::Events(_)) => {
                Err(ClientError::Invalid { field: "operation", problem: "it is answered with events".to_owned() })
            }
        }
    }

    /// The ways to the agent, as its card says or, where it has none, as the caller does.
    pub(super) async fn ways(&self, context: &Context) -> Result<Arc<Ways>, ClientError> {
        let Inner { peer, place, memory, .. } = &*self.inner;
        let known = memory.of(context);
        let (card, absent) = match known.card(&self.exchange(context)).await {
            Ok(found) => (Some(found), None),
            Err(error @ ClientError::NoCard(_)) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        known.ways(card, |card| match (card, absent) {
            (Some(found), _) => interface::usable(found, peer, place),
            (None, absent) => match (interface::named(peer, place), absent) {
                (None, Some(absent)) => Err(absent),
                (named, _) => Ok(named.into_iter().collect()),
            },
        })
    }

    /// Asks in the version that is believed to be right, and once in the other if the agent does not know it. What has
    /// proved right stays.
    async fn in_either_version(&self, context: &Context, call: &Call<'_>) -> Result<(WireFormat, Answer), ClientError> {
        let ways = self.ways(context).await?;
        let is_open = self.inner.peer.version.is_none();
        let mut route = ways.chosen();
        // Version 0.3 has no words for it, and the agent may speak both.
        if call.operation == Operation::ListTasks && is_open && route.interface.version == Version::V03 {
            route = ways.offered(Version::V1, &route).unwrap_or(route);
        }
        let refusal = match self.persist(context, &route, call).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_open && is_unknown(&error) => error,
            Err(error) => return Err(error),
        };
        let other = ways.in_other_version(&route);
        tracing::debug!(version = other.interface.version.as_str(), %refusal, "asking in the other version");
        let answer = self.persist(context, &other, call).await;
        let is_explicit = refusal.refusal() == Some(ErrorKind::VersionNotSupported);
        match answer {
            Ok(answer) => {
                if is_explicit || is_needed(call.operation) || is_sending(call.operation) {
                    ways.choose(other);
                }
                Ok(answer)
            }
            // It understood the question, so this is its version; unless it may just not have what was asked for.
            Err(error) if is_understood(&error) => {
                if is_explicit || is_needed(call.operation) {
                    ways.choose(other);
                }
                Err(error)
            }
            Err(_) => Err(refusal),
        }
    }

    /// Asks again where that cannot do anything twice.
    async fn persist(
        &self,
        context: &Context,
        route: &Route,
        call: &Call<'_>,
    ) -> Result<(WireFormat, Answer), ClientError> {
        let format = self.wire_format_of(context, &route.interface).await;
        let mut request = said_to(&call.request, &route.interface);
        if format.files_twice
            && let Request::Send(request) = request.to_mut()
        {
            rest_files::add_layer(&mut request.message);
        }
        let mut attempt = 0;
        loop {
            let Failure { error, retry_after } =
                match self.in_either_form(context, route, call, self.question(route, format, call, &request)?).await {
                    Ok(answer) => return Ok((format, answer)),
                    Err(failure) => failure,
                };
            attempt += 1;
            let may_repeat = error.is_passing()
                && (error.is_without_effect()
                    || is_repeatable(call.operation, &request)
                    || is_sending(call.operation) && self.declares(context, IDEMPOTENCY).await);
            let wait = if may_repeat { self.inner.peer.retries.wait(attempt, retry_after) } else { None };
            let Some(wait) = wait else { return Err(error) };
            tracing::debug!(%error, attempt, wait_ms = wait.as_millis(), "asking again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Asks a question that has two forms in the one that is taken here.
    async fn in_either_form(
        &self,
        context: &Context,
        route: &Route,
        call: &Call<'_>,
        question: Question,
    ) -> Result<Answer, Failure> {
        if route.takes_other_form(call.operation) && question.has_other_form() {
            return match question.otherwise() {
                Some(other) => self.ask(context, call.operation, &other).await,
                None => Err(ClientError::Invalid { field: "request", problem: "it has one form".to_owned() }.into()),
            };
        }
        match self.ask(context, call.operation, &question).await {
            Err(failure) if is_wrong_form(&failure.error) => {
                let Some(other) = question.otherwise() else { return Err(failure) };
                let Ok(answer) = self.ask(context, call.operation, &other).await else { return Err(failure) };
                route.learn_other_form(call.operation);
                Ok(answer)
            }
            answer => answer,
        }
    }

    async fn ask(&self, context: &Context, operation: Operation, question: &Question) -> Result<Answer, Failure> {
        let exchange = self.exchange(context);
        let limits = &self.inner.peer.limits;
        let patience = if is_sending(operation) { limits.answer } else { limits.head };
        match operation.is_streaming() {
            true => {
                let connection = Connection::open(exchange, question, patience).await?;
                Ok(Answer::Events(Box::new(connection)))
            }
            false => exchange.ask(question, patience).await.map(Answer::Whole),
        }
    }

    fn question(
        &self,
        route: &Route,
        format: WireFormat,
        call: &Call<'_>,
        request: &Request,
    ) -> Result<Question, ClientError> {
        let mut question = Question::new(route, format, call.operation, request)?;
        for (name, value) in [(IDEMPOTENCY_KEY, call.key), (LAST_EVENT_ID, call.last_event_id)] {
            if let Some(value) = value {
                question = question.with(name, value)?;
            }
        }
        Ok(question)
    }

    pub(super) fn exchange<'a>(&'a self, context: &'a Context) -> Exchange<'a> {
        let Inner { egress, peer, place, .. } = &*self.inner;
        Exchange { egress, peer, place, context }
    }

    pub(super) fn read<T>(
        &self,
        json: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<T, ClientError> {
        read(json).map_err(|error| ClientError::NotA2a {
            origin: self.inner.place.origin(),
            status: 200,
            what: format!("an answer that cannot be read ({error})"),
            hint: crate::foreign::words(&String::from_utf8_lossy(&json[..json.len().min(4 << 10)])),
        })
    }
}

/// The agent does not know the method, or says that it speaks another version.
fn is_unknown(error: &ClientError) -> bool {
    matches!(error.refusal(), Some(ErrorKind::MethodNotFound | ErrorKind::VersionNotSupported))
        || matches!(error, ClientError::NotA2a { status: 404, .. })
}

/// The question was not taken in this form, as far as one can tell: another method is wanted, or another body.
fn is_wrong_form(error: &ClientError) -> bool {
    let kinds = [ErrorKind::TaskNotFound, ErrorKind::InvalidParams, ErrorKind::InvalidRequest, ErrorKind::Internal];
    is_unknown(error)
        || matches!(error, ClientError::NotA2a { status: 400 | 405 | 500, .. })
        || error.refusal().is_some_and(|kind| kinds.contains(&kind))
}

/// The agent refused in words of the protocol that only whoever knows the method has a use for.
fn is_understood(error: &ClientError) -> bool {
    use ErrorKind::{
        ContentTypeNotSupported, ExtendedCardNotConfigured, ExtensionRequired, InvalidAgentResponse, PushNotSupported,
        TaskNotCancelable, TaskNotFound, UnsupportedOperation,
    };
    matches!(
        error.refusal(),
        Some(
            ContentTypeNotSupported
                | ExtendedCardNotConfigured
                | ExtensionRequired
                | InvalidAgentResponse
                | PushNotSupported
                | TaskNotCancelable
                | TaskNotFound
                | UnsupportedOperation
        )
    )
}

/// Every agent has it, so that whoever does not know its name has another name for it.
fn is_needed(operation: Operation) -> bool {
    matches!(operation, Operation::SendMessage | Operation::GetTask | Operation::CancelTask)
}

fn is_sending(operation: Operation) -> bool {
    matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage)
}

/// Whether doing it twice comes to the same as doing it once.
fn is_repeatable(operation: Operation, request: &Request) -> bool {
    match request {
        Request::Push(PushRequest::Create(config)) => config.id.is_some(),
        _ => !is_sending(operation),
    }
}
