//! The callback receiver: push notifications of other servers about work that a task has delegated to them.
//!
//! The callback of a task has an address and a token, both as long-lived as the task. The token follows from the store's
//! secret and the task's id, so that a message that is sent again says the same. An update only wakes what watches the
//! task, which then looks for itself. Only the end of a remote task is stored: the remote server may forget the task.
//!
//! The callback URL is one per server (`server.publicBaseUrl`).

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_a2a::sse::{Event, Frame};
use switchboard_a2a::{Dialect, StreamResponse, TaskId, TaskStatus};
use switchboard_engine::clock::Clock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::sha256;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::callbacks::{CallbackStore, UpdateAdded};
use tokio::sync::Notify;

use crate::{metric_definitions as metric, signature};

/// The path of a callback, before the task's id.
pub const CALLBACK_PATH: &str = "/api/a2a/callback/";
/// The most ends of one task that are kept: a turn has few remote tasks, and looks for the end of its last one.
const MOST_KEPT: usize = 64;
const MOST_KEPT_BYTES: u64 = 16 << 20;
/// The longest id that is used for deduplication.
const ID_BYTES: usize = 256;
/// How deep an update may be nested: as deep as what a look at its task may answer.
const MAX_DEPTH: usize = 67;
/// What a token is derived from, before the task's id.
const TOKEN_PURPOSE: &[u8] = b"callback:";

/// The callbacks of all tasks. Clones share them.
#[derive(Clone)]
pub struct CallbackReceiver {
    store: Arc<dyn CallbackStore>,
    /// Tokens are derived from it.
    secret: [u8; 32],
    clock: Arc<dyn Clock>,
    watches: Arc<Mutex<HashMap<TaskId, Weak<Notify>>>>,
    listener: Arc<OnceLock<Listener>>,
}

/// Called with each task that an admitted sender has news of.
type Listener = Box<dyn Fn(&TaskId) + Send + Sync>;

/// What became of an update of an admitted sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The end of the remote task, which is stored.
    New,
    /// The same end once more.
    Duplicate,
    /// Anything else: what watches the task was woken.
    Noticed,
}

/// Why an update was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The task has no callback.
    #[error("no callback is expected for task {0}")]
    Unknown(TaskId),
    /// The token is missing or another one.
    #[error(
        "the token is missing or wrong, send it as Authorization: Bearer TOKEN or as X-A2A-Notification-Token: TOKEN"
    )]
    Token,
    /// The body is no update of a task.
    #[error("the body must be a task, a status update, an artifact update or a message in JSON: {0}")]
    Body(String),
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReceiveError {
    /// As a metric label.
    fn label(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_task",
            Self::Token => "wrong_token",
            Self::Body(_) => "bad_body",
            Self::Store(_) => "unavailable",
        }
    }
}

fn count(outcome: &'static str) {
    metrics::counter!(metric::CALLBACKS, "outcome" => outcome).increment(1);
}

/// A sender whose token is right.
#[derive(Clone, Debug)]
pub struct AdmittedSender {
    task: TaskId,
    key: TaskKey,
}

impl CallbackReceiver {
    /// A receiver that keeps what it is told in a store.
    pub fn new(store: Arc<dyn CallbackStore>, secret: [u8; 32], clock: Arc<dyn Clock>) -> Self {
        Self { store, secret, clock, watches: Arc::default(), listener: Arc::default() }
    }

    /// Calls this with each task that an admitted sender has news of. Only the first one counts.
    pub fn listen(&self, listener: impl Fn(&TaskId) + Send + Sync + 'static) {
        if self.listener.set(Box::new(listener)).is_err() {
            tracing::debug!("callbacks have a listener already");
        }
    }

    /// Opens the callback of a task and returns its token, the same each time: 256 bits, of which only a digest is
    /// stored.
    pub async fn open(&self, task: &TaskId) -> Result<String, ReceiveError> {
        let token = URL_SAFE_NO_PAD.encode(signature::tag(&self.secret, &[TOKEN_PURPOSE, task.as_str().as_bytes()]));
        match self.store.open_callback(task, sha256([token.as_bytes()])).await? {
            true => Ok(token),
            false => Err(ReceiveError::Unknown(task.clone())),
        }
    }

    /// The URL for a remote server. The caller knows the base URL at which that server reaches this one.
    pub fn address(base: &str, task: &TaskId) -> String {
        format!("{}{CALLBACK_PATH}{task}", base.trim_end_matches('/'))
    }

    /// Authenticates a sender, before its body is read.
    pub async fn admit(&self, task: &TaskId, token: Option<&str>) -> Result<AdmittedSender, ReceiveError> {
        let callback = self.store.callback(task).await;
        let admitted = callback.map_err(ReceiveError::from).and_then(|callback| {
            let callback = callback.ok_or_else(|| ReceiveError::Unknown(task.clone()))?;
            let digest = sha256([token.ok_or(ReceiveError::Token)?.as_bytes()]);
            let is_right = bool::from(digest.ct_eq(&callback.digest));
            is_right.then(|| AdmittedSender { task: task.clone(), key: callback.task_key }).ok_or(ReceiveError::Token)
        });
        admitted.inspect_err(|error| count(error.label()))
    }

    /// Takes an update in: the end of a remote task is stored, anything else only wakes.
    pub async fn receive(&self, by: AdmittedSender, id: Option<&str>, body: &[u8]) -> Result<Received, ReceiveError> {
        let received = self.take_in(by, id, body).await;
        count(match &received {
            Ok(Received::New) => "new",
            Ok(Received::Duplicate) => "known",
            Ok(Received::Noticed) => "noticed",
            Err(error) => error.label(),
        });
        received
    }

    async fn take_in(&self, by: AdmittedSender, id: Option<&str>, body: &[u8]) -> Result<Received, ReceiveError> {
        let AdmittedSender { task, key } = by;
        let update = read(body).map_err(ReceiveError::Body)?;
        if !is_end(&update) {
            self.wake(&task);
            return Ok(Received::Noticed);
        }
        let id = id.filter(|id| !id.is_empty() && id.len() <= ID_BYTES);
        let id = id.map_or_else(|| URL_SAFE_NO_PAD.encode(sha256([body])), str::to_owned);
        let body = Bytes::copy_from_slice(body);
        match self.store.add_update(key, &id, body, self.clock.now(), MOST_KEPT, MOST_KEPT_BYTES).await {
            Ok(UpdateAdded::New(_)) => {
                self.wake(&task);
                Ok(Received::New)
            }
            Ok(UpdateAdded::Known) => Ok(Received::Duplicate),
            Err(StoreError::Missing) => Err(ReceiveError::Unknown(task)),
            Err(error) => Err(error.into()),
        }
    }

    fn wake(&self, task: &TaskId) {
        if let Some(woken) = self.watches.lock().get(task).and_then(Weak::upgrade) {
            woken.notify_one();
        }
        if let Some(listener) = self.listener.get() {
            listener(task);
        }
    }

    /// Watches the callback of a task. There should be one watch at a time.
    pub fn watch(&self, task: &TaskId) -> CallbackWatch {
        let mut watches = self.watches.lock();
        watches.retain(|_, woken| woken.strong_count() > 0);
        let known = watches.get(task).and_then(Weak::upgrade);
        let woken = known.unwrap_or_else(|| {
            let woken = Arc::new(Notify::new());
            watches.insert(task.clone(), Arc::downgrade(&woken));
            woken
        });
        CallbackWatch { woken }
    }

    /// The ends of remote tasks that were told, the newest first: a task here may have had several, one after the other.
    pub async fn ends(&self, task: &TaskId) -> Result<Vec<StreamResponse>, StoreError> {
        let Some(callback) = self.store.callback(task).await? else { return Ok(Vec::new()) };
        let stored = self.store.newest_updates(callback.task_key, MOST_KEPT).await?;
        Ok(stored.iter().filter_map(|stored| read(&stored.body).ok()).collect())
    }
}

/// Waits for news of one task.
pub struct CallbackWatch {
    woken: Arc<Notify>,
}

impl CallbackWatch {
    /// Resolves when news has come since the last time.
    pub async fn notified(&self) {
        self.woken.notified().await;
    }
}

fn is_end(update: &StreamResponse) -> bool {
    status_of(update).is_some_and(|status| status.state.is_terminal())
}

fn status_of(update: &StreamResponse) -> Option<&TaskStatus> {
    match update {
        StreamResponse::Task(task) => Some(&task.status),
        StreamResponse::StatusUpdate(update) => Some(&update.status),
        StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => None,
    }
}

/// Parses a body of any version, with or without an envelope.
fn read(body: &[u8]) -> Result<StreamResponse, String> {
    if depth_exceeds(body, MAX_DEPTH) {
        return Err(format!("it is nested deeper than the limit of {MAX_DEPTH} levels"));
    }
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let event = Event { data: text.to_owned(), ..Event::default() };
    let mut problem = String::new();
    for dialect in Dialect::ALL {
        match event.decode(dialect) {
            Ok(Frame::Response(update)) => return Ok(*update),
            Ok(Frame::Error(error)) => return Err(format!("it is an error: {error}")),
            Ok(Frame::Done | Frame::Ignored) => return Err("it is empty".to_owned()),
            Err(error) if problem.is_empty() => problem = error.to_string(),
            Err(_) => {}
        }
    }
    Err(problem)
}
