//! Bugs on purpose: stores that do one thing wrong. The judge of the interleavings must find each of them, else it would
//! not find them in the real store either.

use std::sync::Arc;

use futures_util::FutureExt;
use switchboard_engine::Settings;
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::*;
use switchboard_store::SqliteStore;

use super::{Nodes, Problem};
use crate::faults::FaultyStore;

/// How many interleavings a bug may hide from. Most show in the first few; how many more it takes depends on how the
/// threads of the nodes happen to be scheduled, which a seed does not decide.
const ROUNDS: u64 = 2_000;
/// How many are played without a bug, which takes all of them.
const ROUNDS_WITHOUT_BUG: u64 = 200;

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
        bug => Arc::new(ForwardingStore { store, hooks: Planted { bug, inner } }),
    }
}

struct Planted {
    bug: Bug,
    inner: Arc<SqliteStore>,
}

fn guard_of(append: &mut Append) -> Option<&mut KnownVersion> {
    match &mut append.guard {
        AppendGuard::Create(_) => None,
        AppendGuard::Owner(known) | AppendGuard::Inbox(known) | AppendGuard::Claim(known) => Some(known),
    }
}

impl StoreHooks for Planted {
    fn append(&self, store: &Arc<dyn Store>, mut append: Append) -> StoreFuture<Appended> {
        let (bug, store, inner) = (self.bug, store.clone(), self.inner.clone());
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
}

fn play(bug: Bug, settings: &Settings, rounds: u64) -> Result<(), Problem> {
    let folder = tempfile::tempdir().unwrap();
    Nodes::open(folder.path(), settings, 5, bug).play_all(0..rounds)
}

/// Whether the judge finds the bug. None of them has to make a task hang, so one that hangs is not found by that.
fn is_found(bug: Bug) -> bool {
    let judged = |settings| matches!(play(bug, &settings, ROUNDS), Err(Problem::Judged(_)));
    super::variants().into_iter().rev().any(judged)
}

#[test]
fn a_store_without_a_bug_is_not_found() {
    for settings in super::variants() {
        play(Bug::OnlyLooks, &settings, ROUNDS_WITHOUT_BUG).unwrap();
    }
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
