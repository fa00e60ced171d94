//! The callback receiver: push notifications of other servers about work that a task has delegated to them.
//!
//! The callback of a task has an address and a token, both as long-lived as the task. An update is stored before it is
//! acknowledged and handed to the follower in order and once; a follower that starts later, say after a restart, finds it.
//!
//! The callback URL is one per server (`server.publicBaseUrl`).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use switchboard_a2a::sse::{Event, Frame};
use switchboard_a2a::{Dialect, StreamResponse, TaskId, TaskStatus, Timestamp};
use switchboard_engine::clock::Clock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::callbacks::{CallbackStore, UpdateAdded};
use switchboard_engine::{Cursor, sha256};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::metric_definitions as metric;

/// The path of a callback, before the task's id.
pub const CALLBACK_PATH: &str = "/api/a2a/callback/";
/// The most updates of one task that may wait; beyond it senders have to retry.
const MOST_WAITING: usize = 1_000;
const MOST_WAITING_BYTES: u64 = 64 << 20;
/// The longest id that is used for deduplication.
const ID_BYTES: usize = 256;
/// Updates read at once.
const STEP: usize = 64;

/// The callbacks of all tasks. Clones share them.
#[derive(Clone)]
pub struct CallbackReceiver {
    store: Arc<dyn CallbackStore>,
    clock: Arc<dyn Clock>,
    followers: Arc<Mutex<HashMap<TaskId, Weak<Notify>>>>,
}

/// What became of an update of an admitted sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    New,
    Duplicate,
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
    /// Too many updates wait for the follower.
    #[error("too many updates of this task wait to be taken, try again later")]
    Full,
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
            Self::Full | Self::Store(_) => "unavailable",
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

/// One update of a remote server.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteUpdate {
    /// The sender's id, or a generated one.
    pub id: String,
    pub update: StreamResponse,
}

impl CallbackReceiver {
    /// CallbackReceiver over a store.
    pub fn new(store: Arc<dyn CallbackStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, followers: Arc::default() }
    }

    /// Creates the token of a task's callback: 256 random bits, of which only a digest is stored. A second one replaces
    /// the first.
    pub async fn open(&self, task: &TaskId) -> Result<String, ReceiveError> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| StoreError::Failed(error.to_string()))?;
        let token = URL_SAFE_NO_PAD.encode(random);
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

    /// Stores an update.
    pub async fn receive(&self, by: AdmittedSender, id: Option<&str>, body: &[u8]) -> Result<Received, ReceiveError> {
        let received = self.take_in(by, id, body).await;
        count(match &received {
            Ok(Received::New) => "new",
            Ok(Received::Duplicate) => "known",
            Err(error) => error.label(),
        });
        received
    }

    async fn take_in(&self, by: AdmittedSender, id: Option<&str>, body: &[u8]) -> Result<Received, ReceiveError> {
        let AdmittedSender { task, key } = by;
        let update = read(body).map_err(ReceiveError::Body)?;
        let id = match (id.filter(|id| !id.is_empty() && id.len() <= ID_BYTES), status_of(&update)) {
            (Some(id), _) => id.to_owned(),
            // Equal status updates are duplicates; equal artifact chunks are not.
            (None, Some(_)) => URL_SAFE_NO_PAD.encode(sha256([body])),
            (None, None) => Uuid::now_v7().to_string(),
        };
        let body = Bytes::copy_from_slice(body);
        match self.store.add_update(key, &id, body, self.clock.now(), MOST_WAITING, MOST_WAITING_BYTES).await {
            Ok(UpdateAdded::New(_)) => {
                if let Some(woken) = self.followers.lock().get(&task).and_then(Weak::upgrade) {
                    woken.notify_one();
                }
                Ok(Received::New)
            }
            Ok(UpdateAdded::Known) => Ok(Received::Duplicate),
            Ok(UpdateAdded::Full) => Err(ReceiveError::Full),
            Err(StoreError::Missing) => Err(ReceiveError::Unknown(task)),
            Err(error) => Err(error.into()),
        }
    }

    /// Follows the updates of a task. There should be one follower at a time.
    pub async fn follow(&self, task: &TaskId) -> Result<CallbackFollower, ReceiveError> {
        let callback = self.store.callback(task).await?.ok_or_else(|| ReceiveError::Unknown(task.clone()))?;
        let woken = {
            let mut followers = self.followers.lock();
            followers.retain(|_, woken| woken.strong_count() > 0);
            followers.get(task).and_then(Weak::upgrade).unwrap_or_else(|| {
                let woken = Arc::new(Notify::new());
                followers.insert(task.clone(), Arc::downgrade(&woken));
                woken
            })
        };
        let store = Arc::clone(&self.store);
        Ok(CallbackFollower { store, key: callback.task_key, woken, after: 0, newest: Newest::default() })
    }
}

/// Reads the updates of one task.
pub struct CallbackFollower {
    store: Arc<dyn CallbackStore>,
    key: TaskKey,
    woken: Arc<Notify>,
    /// The number of the last update read.
    after: i64,
    newest: Newest,
}

/// The newest known state of the remote task.
#[derive(Default)]
struct Newest {
    cursor: Option<Cursor>,
    status_at: Option<Timestamp>,
    ended: bool,
}

impl CallbackFollower {
    /// Waits for the next update, leaving out those older than one that was returned; none after the end of the remote
    /// task. An update stays in the store until [`Self::taken`].
    pub async fn next(&mut self) -> Result<Option<RemoteUpdate>, StoreError> {
        loop {
            for waiting in self.store.updates(self.key, self.after, STEP).await? {
                self.after = waiting.number;
                let Ok(update) = read(&waiting.body) else { continue };
                if self.newest.moves_to(&waiting.id, &update) {
                    return Ok(Some(RemoteUpdate { id: waiting.id, update }));
                }
            }
            if self.newest.ended {
                return Ok(None);
            }
            self.woken.notified().await;
        }
    }

    /// Acknowledges the returned updates, so that they do not come again after a restart.
    pub async fn taken(&self) -> Result<(), StoreError> {
        self.store.take_updates(self.key, self.after).await
    }
}

impl Newest {
    /// Records an update; returns whether it is newer than all before it.
    fn moves_to(&mut self, id: &str, update: &StreamResponse) -> bool {
        if self.ended {
            return false;
        }
        let cursor = cursor_of(id, update);
        let status = status_of(update);
        let at = status.and_then(|status| status.timestamp);
        let place = |cursor: Cursor| (cursor.epoch.0, cursor.seq.0);
        // Sequence numbers only rise, whereas a remote clock may be set back.
        let is_older = match (self.cursor, cursor) {
            (Some(known), Some(found)) => place(found) < place(known),
            _ => matches!((self.status_at, at), (Some(known), Some(found)) if found < known),
        };
        self.ended = status.is_some_and(|status| status.state.is_terminal());
        // A terminal state is never older, whatever its time says; without it the follower would wait for ever.
        if is_older && !self.ended {
            return false;
        }
        self.cursor = cursor.or(self.cursor);
        self.status_at = at.or(self.status_at);
        true
    }
}

/// The cursor in the remote log, if the id has the form of our own deliveries, `TASK:NAME:NUMBER-TIME:EPOCH.SEQ`, with
/// the task of the update.
fn cursor_of(id: &str, update: &StreamResponse) -> Option<Cursor> {
    let task = match update {
        StreamResponse::Task(task) => &task.id,
        StreamResponse::StatusUpdate(update) => &update.task_id,
        StreamResponse::ArtifactUpdate(update) => &update.task_id,
        StreamResponse::Message(_) => return None,
    };
    let behind_task = id.strip_prefix(task.as_str())?.strip_prefix(':')?;
    let (before_cursor, cursor) = behind_task.rsplit_once(':')?;
    let (_name, webhook) = before_cursor.rsplit_once(':')?;
    let (number, time) = webhook.split_once('-')?;
    let is_ours = !number.is_empty()
        && !time.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && time.bytes().all(|byte| byte.is_ascii_hexdigit());
    Cursor::parse(cursor).filter(|parsed| is_ours && parsed.to_string() == cursor)
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
