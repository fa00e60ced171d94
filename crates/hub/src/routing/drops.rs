//! Messages that routing has refused. They are counted in memory and journaled together every while, once per reason and
//! key, so that a storm of refusals costs no commits of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::Clock;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::{CallerId, Callers, RefusalKind, RefusalListener};
use switchboard_host::redact;
use tokio_util::sync::CancellationToken;

use crate::metric_definitions as metric;

/// How often the counts are journaled.
const EVERY: Duration = Duration::from_secs(10);
/// As many keys are told apart; further ones are counted together.
const KEYS: usize = 1_000;
/// The key of those.
const OTHER: &str = "other";
/// The longest key and message that are kept, in bytes. One line that is too long would be refused together with all the
/// others, and their counts would be lost.
const LONGEST: usize = 1_024;

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No agent has the skill, or not the one that was named.
    NoSkill,
    /// The agent that was named is not here, or not for this caller.
    TargetUnresolved,
    /// The same work was asked for a short while ago.
    Cooldown,
    /// Agents call each other in a loop, or too deep.
    Hops,
}

impl DropReason {
    /// Its name in topics and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSkill => "no_skill",
            Self::TargetUnresolved => "target_unresolved",
            Self::Cooldown => "cooldown",
            Self::Hops => "hops",
        }
    }
}

/// Counts of refused messages.
pub struct Drops {
    clock: Arc<dyn Clock>,
    /// Knows the names of callers' keys.
    callers: Option<Arc<dyn Callers>>,
    counted: Mutex<HashMap<(DropReason, String), Dropped>>,
}

/// Those of one reason and key.
struct Dropped {
    count: u64,
    last_at: Timestamp,
    /// The caller, as long as it was one and the same.
    caller: Option<CallerId>,
    /// What the last one was told.
    message: String,
}

impl Drops {
    /// Nothing counted yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, callers: None, counted: Mutex::default() }
    }

    /// The same, naming the keys of callers in its lines.
    #[must_use]
    pub fn with_callers(self, callers: Arc<dyn Callers>) -> Self {
        Self { callers: Some(callers), ..self }
    }

    /// Counts one.
    pub fn record(&self, reason: DropReason, key: &str, caller: &CallerId, message: &str) {
        metrics::counter!(metric::DISPATCH_DROPPED, "reason" => reason.name()).increment(1);
        let (key, message) = (shortened(key), shortened(message));
        let now = self.clock.now();
        let mut counted = self.counted.lock();
        let known = (reason, key.to_owned());
        let entry = match counted.len() < KEYS || counted.contains_key(&known) {
            true => known,
            false => (reason, OTHER.to_owned()),
        };
        let first = || Dropped { count: 0, last_at: now, caller: Some(caller.clone()), message: String::new() };
        let dropped = counted.entry(entry).or_insert_with(first);
        dropped.count += 1;
        dropped.last_at = now;
        dropped.caller = dropped.caller.take().filter(|known| known == caller);
        message.clone_into(&mut dropped.message);
    }

    /// Takes what was counted since the last time, as lines of the journal.
    pub fn take(&self) -> Vec<JournalLine> {
        let counted = std::mem::take(&mut *self.counted.lock());
        let mut lines: Vec<JournalLine> = counted.into_iter().map(|counted| self.line(counted)).collect();
        lines.sort_by(|one, other| (one.at, &one.topic, &one.payload).cmp(&(other.at, &other.topic, &other.payload)));
        lines
    }

    /// What was asked for is the caller's own text, so it may hold what it should not.
    fn line(&self, ((reason, key), dropped): ((DropReason, String), Dropped)) -> JournalLine {
        let Dropped { count, last_at, caller, message } = dropped;
        let mut payload = json!({
            "reason": reason.name(),
            "key": redact::text(&key),
            "count": count,
            "message": redact::text(&message),
            "caller": caller.as_ref().map(|caller| caller.as_str()),
        });
        let name = caller.as_ref().zip(self.callers.as_ref()).and_then(|(caller, callers)| callers.name(caller));
        if let Some(name) = name {
            payload["callerName"] = name.into();
        }
        JournalLine {
            at: last_at,
            owner: caller,
            task: None,
            topic: format!("dispatch.dropped.{}", reason.name()),
            payload: Bytes::from(payload.to_string()),
        }
    }

    /// Journals the counts until it is stopped, and then once more.
    pub async fn run(self: Arc<Self>, store: Arc<dyn HubStore>, stop: CancellationToken) {
        loop {
            let is_last = tokio::select! {
                () = self.clock.sleep(EVERY) => false,
                () = stop.cancelled() => true,
            };
            let lines = self.take();
            if !lines.is_empty()
                && let Err(error) = store.journal(lines).await
            {
                tracing::warn!(%error, "refused messages could not be journaled");
            }
            if is_last {
                return;
            }
        }
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// The listener for calls and messages that the guard of delegation refuses.
pub fn of_refusals(drops: Arc<Drops>) -> RefusalListener {
    Box::new(move |refused, caller| match refused.kind {
        RefusalKind::Loop | RefusalKind::Depth => {
            drops.record(DropReason::Hops, &refused.to, caller, &refused.problem);
        }
        RefusalKind::Breadth | RefusalKind::NotAllowed | RefusalKind::Deadlock => {}
    })
}
