//! What the events of a task say of its work: when it began, what it has used and cost, how sure its agent is.
//!
//! What an agent reports of its own (`cost-v1`, `confidence-v1`) may stand on any artifact, long before the end, and counts
//! only if its card declares it. What the kernel has counted stands on the terminal event.

use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::{Metadata, TaskStatusUpdate, Timestamp};
use switchboard_engine::event::Event;
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{EventRow, StoreError, TaskIdentity};
use switchboard_engine::{AgentName, Seq, Served, Usage};

use crate::feed::is_own;
use crate::hub::HubState;
use crate::remote::REMOTE_KEY;

/// What is read of a log at a time; where nothing is declared only so much is read, for the time when work began.
const LOG_BYTES: usize = 64 << 10;

/// What the events of a task say of the work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) tokens: Option<(u64, u64)>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model: Option<String>,
    pub(crate) confidence: Option<f64>,
    pub(crate) success: Option<bool>,
    /// The time of the first status, unless that is the end.
    pub(crate) began_at: Option<Timestamp>,
}

/// What an agent's card declares that it reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    cost: bool,
    confidence: bool,
}

impl Declared {
    /// Of an agent that is gone nothing is known, so what it has said counts. The hub's own agents pass on what others
    /// report, which is counted there.
    pub(crate) fn by(hub: &HubState, agent: &AgentName) -> Self {
        Self::of(agent, hub.engine.directory().find(agent).map(|hosted| hosted.served()).as_deref())
    }

    /// The same of an agent as it is served, if it is.
    pub(crate) fn of(agent: &AgentName, served: Option<&Served>) -> Self {
        if is_own(agent) {
            return Self { cost: false, confidence: false };
        }
        let Some(served) = served else { return Self { cost: true, confidence: true } };
        let declares = |uri: &str| served.manifest.extensions.iter().any(|extension| extension.uri == uri);
        Self { cost: declares(Cost::URI), confidence: declares(Confidence::URI) }
    }

    pub(crate) fn any(self) -> bool {
        self.cost || self.confidence
    }
}

impl Reported {
    /// Reads a task whose terminal event is in a row.
    pub(crate) async fn read(
        hub: &HubState,
        key: TaskKey,
        task: &TaskIdentity,
        row: &EventRow,
        end: &TaskStatusUpdate,
    ) -> Result<Self, StoreError> {
        let has_rows_before = row.first_seq > Seq(1);
        if has_rows_before && let Some(known) = hub.traces.reported(key) {
            return Ok(known);
        }
        let declared = Declared::by(hub, &task.agent);
        let mut reported = Self::default();
        if has_rows_before {
            reported.take_rows_before(hub, key, row.first_seq, declared).await?;
        }
        reported.take_row(row, declared);
        reported.take_end(end, declared);
        if has_rows_before {
            hub.traces.keep_reported(key, reported.clone());
        }
        Ok(reported)
    }

    /// The same without the time when work began, of a task whose agent declares nothing: its end says it all.
    pub(crate) fn at_end(end: &TaskStatusUpdate) -> Self {
        let mut reported = Self::default();
        reported.usage(end.metadata.as_ref());
        reported
    }

    async fn take_rows_before(
        &mut self,
        hub: &HubState,
        key: TaskKey,
        terminal: Seq,
        declared: Declared,
    ) -> Result<(), StoreError> {
        let mut after = Seq(0);
        loop {
            let rows = hub.parts.store.read(key, after, LOG_BYTES).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.first_seq.plus(u64::from(last.count).saturating_sub(1));
            for row in rows.iter().filter(|row| row.first_seq < terminal) {
                self.take_row(row, declared);
            }
            if !declared.any() || after.plus(1) >= terminal {
                return Ok(());
            }
        }
    }

    fn take_row(&mut self, row: &EventRow, declared: Declared) {
        for (seq, line) in row.lines() {
            if line.starts_with(br#"{"artifactUpdate""#) && declared.any() && carries_extension(line) {
                if let Ok(Event::ArtifactUpdate(update)) = Event::decode(line) {
                    self.cost(Cost::in_artifact(&update.artifact).pop(), declared);
                    self.confidence(Confidence::in_artifact(&update.artifact).pop(), declared);
                }
            } else if self.began_at.is_none()
                && seq > Seq(1)
                && line.starts_with(br#"{"statusUpdate""#)
                && let Ok(Event::StatusUpdate(update)) = Event::decode(line)
                // An end without a word before it does not say when the work has begun.
                && !update.status.state.is_terminal()
            {
                self.began_at = update.status.timestamp;
            }
        }
    }

    fn take_end(&mut self, end: &TaskStatusUpdate, declared: Declared) {
        let metadata = end.metadata.as_ref();
        if let Some(message) = &end.status.message {
            self.cost(Cost::in_message(message).pop(), declared);
            self.confidence(Confidence::in_message(message).pop(), declared);
        }
        self.cost(Cost::in_metadata(metadata), declared);
        self.confidence(Confidence::in_metadata(metadata), declared);
        self.usage(metadata);
    }

    fn cost(&mut self, cost: Option<Cost>, declared: Declared) {
        let Some(cost) = cost.filter(|_| declared.cost) else { return };
        self.tokens = cost.usage.map(|usage| (usage.input_tokens, usage.output_tokens)).or(self.tokens);
        self.cost_usd = cost.cost_usd.or(self.cost_usd);
        self.model = cost.model.or_else(|| self.model.take());
        self.said_success(cost.success);
    }

    fn confidence(&mut self, confidence: Option<Confidence>, declared: Declared) {
        let Some(confidence) = confidence.filter(|_| declared.confidence) else { return };
        self.confidence = Some(confidence.confidence);
        self.said_success(confidence.success);
    }

    /// One that says it failed outweighs one that says it did not.
    fn said_success(&mut self, success: Option<bool>) {
        if self.success != Some(false) {
            self.success = success.or(self.success);
        }
    }

    /// What the kernel has counted, where the agent's own report says nothing. Of a remote task it is the total of all that
    /// was done there, so it comes first. A cost of nothing for tokens is a cost that was not reported; one that has used
    /// nothing has only called others, which count on their own.
    fn usage(&mut self, metadata: Option<&Metadata>) {
        let Some(usage) = metadata.and_then(|all| all.get(USAGE_KEY)?.read::<Usage>().ok()) else { return };
        if usage == Usage::default() {
            return;
        }
        let is_remote = metadata.is_some_and(|all| all.get(REMOTE_KEY).is_some());
        if is_remote || self.tokens.is_none() {
            self.tokens = Some((usage.input_tokens, usage.output_tokens));
        }
        if usage.cost_usd > 0.0 && (is_remote || self.cost_usd.is_none()) {
            self.cost_usd = Some(usage.cost_usd);
        }
    }
}

/// Whether it is worth decoding for what it says of cost or confidence.
fn carries_extension(line: &[u8]) -> bool {
    [&b"cost-v1"[..], b"confidence-v1"].iter().any(|mark| line.windows(mark.len()).any(|window| window == *mark))
}
