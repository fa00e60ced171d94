//! Bugs on purpose: stores that do one thing wrong. The judge of the interleavings must find each of them, else it would
//! not find them in the real store either.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedPage, FeedStart, JournalRetention, Located, Position};
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::*;
use switchboard_engine::{AgentName, Bus, CallerId, Seq};
use switchboard_store::SqliteStore;
use tokio::sync::watch;

use super::Nodes;
use crate::faults::FaultyStore;

/// How many interleavings a bug may hide from. Most show in the first few; how many more it takes depends on how the
/// threads of the nodes happen to be scheduled, which a seed does not decide.
const ROUNDS: u64 = 2_000;
/// How many are played without a bug, which takes all of them.
const ROUNDS_WITHOUT_BUG: u64 = 200;
/// A round that takes longer hangs, which is found too.
const HANGS_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    None,
    /// None either, but the store looks up what the others do: not that is found.
    OnlyLooks,
    /// Whether a turn was claimed since is not looked at.
    GuardWithoutFence,
    /// The running turn writes whatever it has not read.
    OwnerWithoutVersion,
    /// Success is reported before it is so.
    ReplyBeforeCommit,
    /// A retry repeats what was written already.
    WritesTwice,
}

pub(super) fn wrap(bug: Bug, store: Arc<FaultyStore>, inner: Arc<SqliteStore>) -> Arc<dyn Store> {
    match bug {
        Bug::None => store,
        bug => Arc::new(PlantedStore { bug, store, inner }),
    }
}

struct PlantedStore {
    bug: Bug,
    store: Arc<FaultyStore>,
    inner: Arc<SqliteStore>,
}

fn guard_of(append: &mut Append) -> Option<&mut KnownVersion> {
    match &mut append.guard {
        AppendGuard::Create(_) => None,
        AppendGuard::Owner(known) | AppendGuard::Inbox(known) | AppendGuard::Claim(known) => Some(known),
    }
}

impl Store for PlantedStore {
    fn append(&self, mut append: Append) -> StoreFuture<Appended> {
        let (bug, store, inner) = (self.bug, self.store.clone(), self.inner.clone());
        async move {
            let is_owner = matches!(append.guard, AppendGuard::Owner(_));
            let Some(known) = guard_of(&mut append) else { return store.append(append).await };
            let stored = inner.load_some(vec![known.key], 1).await?.pop().ok_or(StoreError::Missing)?.row;
            match bug {
                Bug::GuardWithoutFence => {
                    let known = KnownVersion { fence: stored.state.fence, ..*known };
                    // Nor is looked at who holds the turn.
                    append.guard = if is_owner { AppendGuard::Owner(known) } else { AppendGuard::Inbox(known) };
                }
                Bug::OwnerWithoutVersion if is_owner => known.version = stored.last_seq,
                Bug::ReplyBeforeCommit => {
                    let epoch = inner.epoch();
                    let appended = Appended { key: known.key, first_seq: known.version.plus(1), row: 0, epoch };
                    tokio::spawn(async move { store.append(append).await });
                    return Ok(appended);
                }
                Bug::WritesTwice if append.count > 0 => {
                    let first = store.append(append.clone()).await?;
                    let row = append.row.onto(&stored.state);
                    let count = u64::from(append.count);
                    if let Some(known) = guard_of(&mut append) {
                        (known.version, known.fence) = (known.version.plus(count), row.fence);
                    }
                    // The second one may be refused, as a repeated ending is.
                    let _: Result<Appended, StoreError> = store.append(append).await;
                    return Ok(first);
                }
                _ => {}
            }
            store.append(append).await
        }
        .boxed()
    }
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.store.row(id)
    }
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.store.load(id)
    }
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        self.store.load_within(id, max_bytes)
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.store.read(key, after, max_bytes)
    }
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.store.list(query)
    }
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.store.load_some(keys, max_bytes)
    }
    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        self.store.find_send(scope)
    }
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.unfinished(after, max)
    }
    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.live(after, max)
    }
    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.expired(now, max)
    }
    fn heads(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>> {
        self.store.heads(keys)
    }
    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.context(conversation, max)
    }
    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>> {
        self.store.noted(conversation)
    }
    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>> {
        self.store.last_agent(owner, context)
    }
    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.children(parent, after, max)
    }
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>> {
        self.store.waiting(query)
    }
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage> {
        self.store.survey(query)
    }
    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage> {
        self.store.read_all(after, max_rows, max_bytes)
    }
    fn locate(&self, start: FeedStart) -> StoreFuture<Located> {
        self.store.locate(start)
    }
    fn committed(&self) -> watch::Receiver<i64> {
        self.store.committed()
    }
    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize> {
        self.store.evict_journal(retention, max)
    }
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.store.evict(retention, max)
    }
    fn census(&self) -> StoreFuture<TaskCounts> {
        self.store.census()
    }
    fn bus(&self) -> Option<Arc<dyn Bus>> {
        self.store.bus()
    }
    fn secret(&self) -> [u8; 32] {
        self.store.secret()
    }
    fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
    fn close(&self) -> StoreFuture<()> {
        self.store.close()
    }
}

fn is_found(bug: Bug) -> bool {
    let rounds = if bug == Bug::OnlyLooks { ROUNDS_WITHOUT_BUG } else { ROUNDS };
    super::variants().into_iter().rev().any(|settings| {
        let folder = tempfile::tempdir().unwrap();
        let nodes = Nodes::open(folder.path(), &settings, 5, bug);
        nodes.play_all(0..rounds, HANGS_AFTER).is_err()
    })
}

#[test]
fn a_store_without_a_bug_is_not_found() {
    assert!(!is_found(Bug::OnlyLooks));
}

#[test]
fn a_guard_without_the_fence_is_found() {
    assert!(is_found(Bug::GuardWithoutFence));
}

#[test]
fn an_owner_that_writes_without_the_version_is_found() {
    assert!(is_found(Bug::OwnerWithoutVersion));
}

#[test]
fn a_reply_before_the_commit_is_found() {
    assert!(is_found(Bug::ReplyBeforeCommit));
}

#[test]
fn a_retry_that_writes_twice_is_found() {
    assert!(is_found(Bug::WritesTwice));
}
