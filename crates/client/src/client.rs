//! One agent, called: every operation of the protocol, in whichever version and binding it speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{
    Dialect, ErrorKind, ListRequest, ListResponse, Metadata, Operation, PushConfig, PushRequest, Request, SendRequest,
    SendResponse, Task, TaskId, TaskState, Version, decode,
};
use switchboard_egress::Egress;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::discovery::{self, FoundCard};
use crate::exchange::{Exchange, Failure, IDEMPOTENCY_KEY, LAST_EVENT_ID, Question};
use crate::follow::Followed;
use crate::interface::{self, Interface};
use crate::places::Place;
use crate::route::Route;
use crate::said::said_to;
use crate::{Binding, ClientError, Context, Peer};

/// An agent that can be called. Clones share what is known of it.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    egress: Egress,
    peer: Peer,
    place: Place,
    card: tokio::sync::Mutex<Option<Arc<FoundCard>>>,
    /// What has proved right.
    chosen: Mutex<Option<Arc<Route>>>,
    /// Questions that have two forms are taken in the other one here, which one learns by trying.
    takes_other_form: [AtomicBool; 2],
}

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
    /// Nothing is called before it is needed.
    ///
    /// # Errors
    /// When the address cannot be one.
    pub fn new(egress: Egress, peer: Peer) -> Result<Self, ClientError> {
        let place = Place::parse(&peer.url)?;
        let (card, chosen) = (tokio::sync::Mutex::new(None), Mutex::new(None));
        let takes_other_form = Default::default();
        Ok(Self { inner: Arc::new(Inner { egress, peer, place, card, chosen, takes_other_form }) })
    }

    /// The same for an agent whose card is at hand and is not fetched.
    ///
    /// # Errors
    /// When the address cannot be one.
    pub fn with_card(egress: Egress, peer: Peer, card: FoundCard) -> Result<Self, ClientError> {
        let place = Place::parse(&peer.url)?;
        let (card, chosen) = (tokio::sync::Mutex::new(Some(Arc::new(card))), Mutex::new(None));
        let takes_other_form = Default::default();
        Ok(Self { inner: Arc::new(Inner { egress, peer, place, card, chosen, takes_other_form }) })
    }

    /// How the agent is called.
    pub fn peer(&self) -> &Peer {
        &self.inner.peer
    }

    /// The agent's card, from the agent or as it was a moment ago.
    ///
    /// # Errors
    /// When there is none, with every place that was looked at.
    pub async fn card(&self, context: &Context) -> Result<Arc<FoundCard>, ClientError> {
        let mut known = self.inner.card.lock().await;
        if let Some(card) = known.as_ref().filter(|card| card.is_fresh(Instant::now())) {
            return Ok(Arc::clone(card));
        }
        let exchange = self.exchange(context);
        let card = match known.as_ref() {
            Some(card) => discovery::renew(&exchange, card).await,
            None => discovery::find(&exchange, &self.inner.place).await?,
        };
        let card = Arc::new(card);
        *known = Some(Arc::clone(&card));
        Ok(card)
    }

    /// The interface that is used.
    ///
    /// # Errors
    /// When the card cannot be found or offers nothing that is spoken here.
    pub async fn interface(&self, context: &Context) -> Result<Interface, ClientError> {
        self.route(context).await.map(|route| route.interface.clone())
    }

    /// The way to the interface that is used.
    async fn route(&self, context: &Context) -> Result<Arc<Route>, ClientError> {
        let chosen = self.inner.chosen.lock().clone();
        if let Some(route) = chosen {
            return Ok(route);
        }
        let Inner { peer, place, .. } = &*self.inner;
        let interface = match self.card(context).await {
            Ok(found) => interface::usable(&found.card, peer, place)?.swap_remove(0),
            // Whoever names both, or where to call it, needs no card to be understood.
            Err(ClientError::NoCard(tried)) => {
                let (binding, version) = (peer.binding.or(peer.preferred.first().copied()), peer.version);
                let (binding, version) = match (binding, version, &peer.endpoint) {
                    (Some(binding), Some(version), _) => (binding, version),
                    (binding, version, Some(_)) => {
                        (binding.unwrap_or(Binding::JsonRpc), version.unwrap_or(Version::V1))
                    }
                    _ => return Err(ClientError::NoCard(tried)),
                };
                let url = peer.endpoint.clone().unwrap_or_else(|| place.endpoint());
                Interface { url, binding, version, tenant: peer.tenant.clone() }
            }
            Err(error) => return Err(error),
        };
        let Interface { url, binding, version, .. } = &interface;
        tracing::debug!(url, binding = binding.as_str(), version = version.as_str(), "this interface is used");
        let route = Arc::new(Route::new(interface)?);
        *self.inner.chosen.lock() = Some(Arc::clone(&route));
        Ok(route)
    }

    /// Sends a message and waits for the answer, or for the task if the message says so.
    ///
    /// # Errors
    /// See [`ClientError`]. After [`ClientError::Lost`] and [`ClientError::Timeout`] the agent may be at work on it.
    pub async fn send(&self, context: &Context, mut request: SendRequest) -> Result<SendResponse, ClientError> {
        let key = context.key();
        context.mark(&mut request);
        let call = Call { key: Some(&key), ..Call::new(Operation::SendMessage, Request::Send(request)) };
        let (dialect, json) = self.whole(context, call).await?;
        self.read(&json, |json| decode::decode_send(dialect, json))
    }

    /// Sends a message and follows what comes of it to the end.
    ///
    /// # Errors
    /// When not even the first answer comes.
    pub async fn stream(&self, context: &Context, request: SendRequest) -> Result<Followed, ClientError> {
        Followed::sent(self.clone(), context.clone(), request).await
    }

    /// Follows a task to its end, or until it waits for somebody. One that has ended, or asks already, is told as it is.
    ///
    /// # Errors
    /// When there is no such task, or it cannot be reached.
    pub async fn subscribe(&self, context: &Context, task: TaskId) -> Result<Followed, ClientError> {
        Followed::subscribed(self.clone(), context.clone(), task).await
    }

    /// A task as it is.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(&self, context: &Context, id: &TaskId, history_length: Option<u32>) -> Result<Task, ClientError> {
        let request = Request::Get { id: id.clone(), history_length, tenant: None };
        let (dialect, json) = self.whole(context, Call::new(Operation::GetTask, request)).await?;
        let mut task = self.read(&json, |json| decode::decode_task(dialect, json))?;
        // Version 0.3 takes no history for all of it.
        if history_length == Some(0) {
            task.history.clear();
        }
        Ok(task)
    }

    /// A page of tasks.
    ///
    /// # Errors
    /// See [`ClientError`]. Version 0.3 has no such operation.
    pub async fn list(&self, context: &Context, request: ListRequest) -> Result<ListResponse, ClientError> {
        let (dialect, json) = self.whole(context, Call::new(Operation::ListTasks, Request::List(request))).await?;
        self.read(&json, |json| decode::decode_list(dialect, json))
    }

    /// Stops a task.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn cancel(
        &self,
        context: &Context,
        id: &TaskId,
        metadata: Option<Metadata>,
    ) -> Result<Task, ClientError> {
        let request = Request::Cancel { id: id.clone(), metadata, tenant: None };
        let canceled = self.whole(context, Call::new(Operation::CancelTask, request)).await;
        match canceled {
            Ok((dialect, json)) => self.read(&json, |json| decode::decode_task(dialect, json)),
            // An attempt whose answer was lost may have done it already.
            Err(error) if error.refusal() == Some(ErrorKind::TaskNotCancelable) => {
                match self.get(context, id, None).await {
                    Ok(task) if task.status.state == TaskState::Canceled => Ok(task),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Sets a webhook of a task.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_webhook(&self, context: &Context, config: PushConfig) -> Result<PushConfig, ClientError> {
        let request = Request::Push(PushRequest::Create(config));
        let (_, json) = self.whole(context, Call::new(Operation::CreatePushConfig, request)).await?;
        self.read(&json, |json| serde_json::from_slice(json))
    }

    /// One webhook of a task.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn webhook(
        &self,
        context: &Context,
        task_id: &TaskId,
        id: Option<&str>,
    ) -> Result<PushConfig, ClientError> {
        let id = id.map(str::to_owned);
        let request = Request::Push(PushRequest::Get { task_id: task_id.clone(), id, tenant: None });
        let (_, json) = self.whole(context, Call::new(Operation::GetPushConfig, request)).await?;
        self.read(&json, |json| serde_json::from_slice(json))
    }

    /// All webhooks of a task, page after page.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn webhooks(&self, context: &Context, task_id: &TaskId) -> Result<Vec<PushConfig>, ClientError> {
        let mut all = Vec::new();
        let mut page_token = None;
        loop {
            let list = PushRequest::List { task_id: task_id.clone(), page_size: None, page_token, tenant: None };
            let (_, json) = self.whole(context, Call::new(Operation::ListPushConfigs, Request::Push(list))).await?;
            let (configs, next) = self.read(&json, decode::decode_push_list)?;
            // A peer that gives pages without anything on them would never come to an end.
            if next.is_empty() || configs.is_empty() {
                all.extend(configs);
                return Ok(all);
            }
            all.extend(configs);
            page_token = Some(next);
        }
    }

    /// Deletes a webhook of a task.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_webhook(&self, context: &Context, task_id: &TaskId, id: &str) -> Result<(), ClientError> {
        let (task_id, id) = (task_id.clone(), id.to_owned());
        let request = Request::Push(PushRequest::Delete { task_id, id, tenant: None });
        self.whole(context, Call::new(Operation::DeletePushConfig, request)).await.map(drop)
    }

    /// The card for known callers.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn extended_card(&self, context: &Context) -> Result<(AgentCard, Bytes), ClientError> {
        let request = Request::ExtendedCard { tenant: None };
        let (_, json) = self.whole(context, Call::new(Operation::GetExtendedCard, request)).await?;
        Ok((self.read(&json, AgentCard::decode)?, json))
    }

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
    async fn whole(&self, context: &Context, call: Call<'_>) -> Result<(Dialect, Bytes), ClientError> {
        match self.in_either_version(context, &call).await? {
            (dialect, Answer::Whole(json)) => Ok((dialect, json)),
            (_, Answer::Events(_)) => {
                Err(ClientError::Invalid { field: "operation", problem: "it is answered with events".to_owned() })
            }
        }
    }

    /// Asks in the version that is believed to be right, and once in the other if the agent does not know it. What has
    /// proved right stays.
    async fn in_either_version(&self, context: &Context, call: &Call<'_>) -> Result<(Dialect, Answer), ClientError> {
        let route = self.route(context).await?;
        let first = self.persist(context, &route, call).await;
        let refusal = match first {
            Ok(answer) => return Ok((route.interface.dialect(), answer)),
            Err(error) if self.inner.peer.version.is_none() && is_unknown(&error) => error,
            Err(error) => return Err(error),
        };
        let other = Arc::new(route.in_other_version());
        tracing::debug!(version = other.interface.version.as_str(), %refusal, "asking in the other version");
        match self.persist(context, &other, call).await {
            Ok(answer) => {
                let dialect = other.interface.dialect();
                *self.inner.chosen.lock() = Some(other);
                Ok((dialect, answer))
            }
            // It understood the question, so this is its version.
            Err(error @ ClientError::Agent(_)) if !is_unknown(&error) => {
                *self.inner.chosen.lock() = Some(other);
                Err(error)
            }
            Err(_) => Err(refusal),
        }
    }

    /// Asks again where that cannot do anything twice.
    async fn persist(&self, context: &Context, route: &Route, call: &Call<'_>) -> Result<Answer, ClientError> {
        let request = said_to(&call.request, &route.interface);
        let mut attempt = 0;
        loop {
            let Failure { error, retry_after } =
                match self.in_either_form(context, call, self.question(route, call, &request)?).await {
                    Ok(answer) => return Ok(answer),
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
    async fn in_either_form(&self, context: &Context, call: &Call<'_>, question: Question) -> Result<Answer, Failure> {
        let learned = &self.inner.takes_other_form[usize::from(call.operation == Operation::SubscribeToTask)];
        if learned.load(Ordering::Relaxed) && question.has_other_form() {
            return match question.otherwise() {
                Some(other) => self.ask(context, call.operation, &other).await,
                None => Err(ClientError::Invalid { field: "request", problem: "it has one form".to_owned() }.into()),
            };
        }
        match self.ask(context, call.operation, &question).await {
            Err(failure) if is_wrong_form(&failure.error) => {
                let Some(other) = question.otherwise() else { return Err(failure) };
                let Ok(answer) = self.ask(context, call.operation, &other).await else { return Err(failure) };
                learned.store(true, Ordering::Relaxed);
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

    fn question(&self, route: &Route, call: &Call<'_>, request: &Request) -> Result<Question, ClientError> {
        let mut question = Question::new(route, call.operation, request)?;
        for (name, value) in [(IDEMPOTENCY_KEY, call.key), (LAST_EVENT_ID, call.last_event_id)] {
            if let Some(value) = value {
                question = question.with(name, value)?;
            }
        }
        Ok(question)
    }

    fn exchange<'a>(&'a self, context: &'a Context) -> Exchange<'a> {
        Exchange { egress: &self.inner.egress, peer: &self.inner.peer, context }
    }

    fn read<T>(&self, json: &[u8], read: impl FnOnce(&[u8]) -> Result<T, serde_json::Error>) -> Result<T, ClientError> {
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
