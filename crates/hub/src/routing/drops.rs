//! Messages that routing has refused. They are counted in memory and journaled together every while, once per reason and
//! key, so that a storm of refusals costs no commits of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

use crate::journal_text::shortened;
use crate::metric_definitions as metric;

/// How often the counts are journaled.
const EVERY: Duration = Duration::from_secs(10);
/// As many keys are told apart; further ones are counted together.
const KEYS: usize = 1_000;
/// The key of those.
const OTHER: &str = "other";

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
    counted: Mutex<Counted>,
}

/// By reason and key.
type Counted = HashMap<(DropReason, String), Dropped>;

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
        // One line that is too long would be refused together with all the others, and their counts would be lost.
        let (key, message) = (shortened(key), shortened(message));
        let now = self.clock.now();
        let one = Dropped { count: 1, last_at: now, caller: Some(caller.clone()), message: message.to_owned() };
        add(&mut self.counted.lock(), (reason, key.to_owned()), one);
    }

    /// Takes what was counted since the last time, as lines of the journal.
    pub fn take(&self) -> Vec<JournalLine> {
        let counted = std::mem::take(&mut *self.counted.lock());
        self.lines(&counted)
    }

    fn lines(&self, counted: &Counted) -> Vec<JournalLine> {
        let mut lines: Vec<JournalLine> = counted.iter().map(|counted| self.line(counted)).collect();
        lines.sort_by(|one, other| (one.at, &one.topic, &one.payload).cmp(&(other.at, &other.topic, &other.payload)));
        lines
    }

    /// What was asked for is the caller's own text, so it may hold what it should not.
    fn line(&self, ((reason, key), dropped): (&(DropReason, String), &Dropped)) -> JournalLine {
        let Dropped { count, last_at, caller, message } = dropped;
        let mut payload = json!({
            "reason": reason.name(),
            "key": redact::text(key),
            "count": count,
            "message": redact::text(message),
            "caller": caller.as_ref().map(|caller| caller.as_str()),
        });
        let name = caller.as_ref().zip(self.callers.as_ref()).and_then(|(caller, callers)| callers.name(caller));
        if let Some(name) = name {
            payload["callerName"] = name.into();
        }
        JournalLine {
            at: *last_at,
            owner: caller.clone(),
            task: None,
            topic: format!("dispatch.dropped.{}", reason.name()),
            payload: Bytes::from(payload.to_string()),
        }
    }

    /// Journals the counts until it is stopped, and then once more. Those that could not be journaled count next time.
    pub async fn run(self: Arc<Self>, store: Arc<dyn HubStore>, stop: CancellationToken) {
        loop {
            let is_last = tokio::select! {
                () = self.clock.sleep(EVERY) => false,
                () = stop.cancelled() => true,
            };
            let counted = std::mem::take(&mut *self.counted.lock());
            if !counted.is_empty()
                && let Err(error) = store.journal(self.lines(&counted)).await
            {
                tracing::warn!(%error, "refused messages could not be journaled");
                self.put_back(counted);
            }
            if is_last {
                return;
            }
        }
    }

    /// Counts again what could not be journaled, before what was counted meanwhile.
    fn put_back(&self, mut earlier: Counted) {
        let mut counted = self.counted.lock();
        for (key, later) in std::mem::take(&mut *counted) {
            add(&mut earlier, key, later);
        }
        *counted = earlier;
    }
}

/// Adds to what was counted of a reason and a key, or of all further keys.
fn add(counted: &mut Counted, (reason, key): (DropReason, String), later: Dropped) {
    let known = (reason, key);
    let entry = match counted.len() < KEYS || counted.contains_key(&known) {
        true => known,
        false => (reason, OTHER.to_owned()),
    };
    match counted.entry(entry) {
        Entry::Vacant(vacant) => {
            vacant.insert(later);
        }
        Entry::Occupied(mut occupied) => {
            let dropped = occupied.get_mut();
            dropped.count += later.count;
            dropped.last_at = later.last_at;
            dropped.caller = dropped.caller.take().filter(|known| later.caller.as_ref() == Some(known));
            dropped.message = later.message;
        }
    }
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
