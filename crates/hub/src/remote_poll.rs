//! The consumer `remote-poll`: tasks of remote agents that wait for an answer. The question may be settled at the remote
//! server, by another caller or by itself, and then the task here goes on too. Nothing is kept in memory per task: when
//! to look follows from when the question was asked.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{TaskId, Timestamp};
use switchboard_client::CallContext;
use switchboard_engine::store::survey::WaitingQuery;
use switchboard_engine::store::{ListPosition, Store, TaskRow};
use switchboard_engine::{AgentName, Engine, Error};
use tokio_util::sync::CancellationToken;

use crate::jobs::RemoteDirectory;
use crate::metric_definitions as metric;
use crate::registry::{RequestOutcome, RequestSource};
use crate::remote::saved_state;

/// Rows read at once.
const PAGE: usize = 256;

/// When waiting tasks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSettings {
    /// After the question was asked; each next look waits twice as long.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

impl Default for PollSettings {
    fn default() -> Self {
        Self { first: Duration::from_secs(30), most: Duration::from_secs(600) }
    }
}

/// Looks at remote tasks whose question waits here.
pub struct RemotePoll {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub remotes: Arc<dyn RemoteDirectory>,
    pub settings: PollSettings,
}

impl RemotePoll {
    /// Looks until it is stopped. The agents are those that are remote now.
    pub async fn run(&self, agents: impl Fn() -> Vec<AgentName>, stop: CancellationToken) {
        let clock = Arc::clone(self.engine.clock());
        let mut last = clock.now();
        while stop.run_until_cancelled(clock.sleep(self.settings.first)).await.is_some() {
            let now = clock.now();
            match stop.run_until_cancelled(self.look(agents(), last, now)).await {
                None => return,
                Some(Ok(())) => last = now,
                Some(Err(error)) => tracing::warn!(%error, "waiting tasks of remote agents cannot be read"),
            }
        }
    }

    /// Looks at every task whose look has fallen due between two times.
    pub async fn look(&self, agents: Vec<AgentName>, since: Timestamp, now: Timestamp) -> Result<(), Error> {
        if agents.is_empty() {
            return Ok(());
        }
        let mut after: Option<ListPosition> = None;
        loop {
            let query = WaitingQuery { owner: None, agents: Some(agents.clone()), after, max: PAGE };
            let rows = self.store.waiting(query).await?;
            for row in &rows {
                let asked = row.state.status_at;
                if self.settings.looks(asked, now) > self.settings.looks(asked, since) {
                    self.look_at(row, "poll").await?;
                }
            }
            match rows.last().filter(|_| rows.len() == PAGE) {
                Some(last) => after = Some((last.state.status_at, last.key)),
                None => return Ok(()),
            }
        }
    }

    /// Looks at one task because of a push notification.
    pub async fn look_now(&self, task: &TaskId) -> Result<(), Error> {
        match self.store.row(task).await? {
            Some(row) if row.state.state.is_interrupted() => self.look_at(&row, "push").await,
            _ => Ok(()),
        }
    }

    async fn look_at(&self, row: &TaskRow, why: &'static str) -> Result<(), Error> {
        let (task, agent) = (&row.task.id, &row.task.agent);
        let (Some(saved), Some(question)) = saved_state(&self.engine, task, row.key).await? else { return Ok(()) };
        let (Some(remote), Some(parts)) = (saved.remote_task(), self.remotes.remote(agent)) else { return Ok(()) };
        metrics::counter!(metric::REMOTE_LOOKS, "agent" => agent.to_string(), "why" => why).increment(1);
        let now = parts.client.get(&CallContext::default(), remote, Some(0)).await;
        parts.breaker.record(RequestSource::Task(task), RequestOutcome::of(&now));
        let still_waits = match now {
            Ok(now) => now.status.state.is_interrupted(),
            Err(error) if error.error_kind().is_some() => false,
            Err(error) => {
                tracing::debug!(%task, %error, "a waiting remote task cannot be looked at");
                true
            }
        };
        if still_waits {
            return Ok(());
        }
        match self.engine.settled(task, question).await {
            // Something else has ended the wait.
            Err(Error::QuestionClosed { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl PollSettings {
    /// How many looks are due between a question and a time.
    fn looks(&self, asked: Timestamp, now: Timestamp) -> u64 {
        let elapsed = u64::try_from(now.0.saturating_sub(asked.0)).unwrap_or(0);
        let (mut wait, mut at, mut looks) = (self.first.as_millis().max(1), self.first.as_millis().max(1), 0);
        let most = self.most.max(self.first).as_millis().max(1);
        while wait < most && at <= u128::from(elapsed) {
            looks += 1;
            wait = (wait * 2).min(most);
            at += wait;
        }
        if at > u128::from(elapsed) {
            return looks;
        }
        looks + u64::try_from((u128::from(elapsed) - at) / most).unwrap_or(u64::MAX) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_due_ever_more_rarely_and_never_end() {
        let settings = PollSettings { first: Duration::from_secs(30), most: Duration::from_secs(600) };
        let after = |seconds: i64| settings.looks(Timestamp(1_000), Timestamp(1_000 + seconds * 1_000));
        // 30, 60, 120, 240, 480, 600, 600 … apart.
        for (seconds, looks) in [(0, 0), (29, 0), (30, 1), (89, 1), (90, 2), (210, 3), (450, 4), (930, 5), (1_529, 5)] {
            assert_eq!(after(seconds), looks, "{seconds}");
        }
        assert_eq!((after(1_530), after(2_130), after(86_400)), (6, 7, 147));
        assert_eq!(settings.looks(Timestamp(5_000), Timestamp(0)), 0, "a clock that was set back");
    }
}
