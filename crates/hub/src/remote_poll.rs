//! The consumer `remote-poll`: tasks of remote agents that wait for an answer. The question may be settled at the remote
//! server, by another caller or by itself, and then the task here goes on too. Nothing is kept in memory per task: when
//! to look follows from when the question was asked.
//!
//! Agents are looked at side by side. One that is away costs few requests per round: the rest of its tasks wait for a
//! round in which it answers.

mod cursor;
mod pushed;
mod settings;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use switchboard_a2a::{ErrorKind, TaskId, Timestamp};
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::store::survey::WaitingQuery;
use switchboard_engine::store::{ListPosition, Store, StoreError, TaskRow};
use switchboard_engine::{AgentName, Engine, Error, Seq};
use tokio_util::sync::CancellationToken;

use self::cursor::PollCursor;
pub(crate) use self::pushed::PushedTasks;
pub use self::settings::PollSettings;
use crate::consumers::Consumers;
use crate::jobs::RemoteDirectory;
use crate::metric_definitions as metric;
use crate::registry::RequestOutcome;
use crate::remote::waiting_task;

/// Rows read at once.
const PAGE: usize = 256;
/// Tasks of one agent that are looked at at the same time.
const PER_AGENT: usize = 8;
/// Rounds until the first look at a task is due, so that looks are not bunched.
const ROUNDS: u32 = 3;
/// The wait before the row is taken again that could not be taken.
const RETRY: Duration = Duration::from_secs(1);

/// Looks at remote tasks whose question waits here.
pub struct RemotePoll {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub remotes: Arc<dyn RemoteDirectory>,
    pub settings: PollSettings,
}

/// Up to when tasks were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Those of all agents but the following.
    pub until: Timestamp,
    /// Agents that were away since.
    pub behind: HashMap<AgentName, Timestamp>,
}

/// How a look has gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Done,
    /// The agent has not answered.
    Away,
}

impl Looked {
    pub fn until(until: Timestamp) -> Self {
        Self { until, behind: HashMap::new() }
    }

    fn since(&self, agent: &AgentName) -> Timestamp {
        self.behind.get(agent).copied().unwrap_or(self.until)
    }
}

impl RemotePoll {
    /// Looks until it is stopped, or another process does. The agents are those that are remote now.
    pub(crate) async fn run(
        &self,
        store: Arc<dyn HubStore>,
        consumers: Arc<Consumers>,
        agents: impl Fn() -> Vec<AgentName>,
        stop: CancellationToken,
    ) {
        stop.run_until_cancelled(self.look_on(store, consumers, agents)).await;
    }

    async fn look_on(&self, store: Arc<dyn HubStore>, consumers: Arc<Consumers>, agents: impl Fn() -> Vec<AgentName>) {
        let clock = Arc::clone(self.engine.clock());
        let (cursor, until) = loop {
            match PollCursor::take(Arc::clone(&store), Arc::clone(&consumers)).await {
                Ok(taken) => break taken,
                Err(error) => tracing::warn!(%error, "waiting tasks of remote agents cannot be looked at"),
            }
            clock.sleep(RETRY).await;
        };
        let now = clock.now();
        let mut looked = Looked::until(until.map_or(now, |until| until.min(now)));
        loop {
            clock.sleep(self.settings.first / ROUNDS).await;
            if let Err(error) = self.look(agents(), &mut looked, clock.now()).await {
                tracing::warn!(%error, "waiting tasks of remote agents cannot be read");
            }
            match cursor.advance(&looked, clock.now()).await {
                Ok(()) => {}
                Err(error @ (StoreError::ConsumerTaken(_) | StoreError::Closed)) => {
                    return tracing::info!(%error, "waiting tasks of remote agents are looked at by another process");
                }
                Err(error) => tracing::warn!(%error, "it cannot be stored which waiting tasks were looked at"),
            }
        }
    }

    /// Looks at every task whose look has fallen due by now.
    pub async fn look(&self, agents: Vec<AgentName>, looked: &mut Looked, now: Timestamp) -> Result<(), Error> {
        let away = Mutex::new(HashSet::new());
        let mut after: Option<ListPosition> = None;
        while !agents.is_empty() {
            let query = WaitingQuery { agents: Some(agents.clone()), after, max: PAGE, ..WaitingQuery::default() };
            let rows = self.store.waiting(query).await?;
            self.look_at_page(&rows, looked, now, &away).await;
            match rows.last().filter(|_| rows.len() == PAGE) {
                Some(last) => after = Some((last.state.status_at, last.key)),
                None => break,
            }
        }
        let behind = away.into_inner().into_iter().map(|agent| (agent.clone(), looked.since(&agent))).collect();
        *looked = Looked { until: now, behind };
        Ok(())
    }

    /// Looks at what is due of a page, agents side by side.
    async fn look_at_page(&self, rows: &[TaskRow], looked: &Looked, now: Timestamp, away: &Mutex<HashSet<AgentName>>) {
        let mut due: HashMap<&AgentName, Vec<&TaskRow>> = HashMap::new();
        for row in rows {
            let (agent, asked) = (&row.task.agent, row.state.status_at);
            let settings = self.settings.spread_for(row.key);
            if settings.looks(asked, now) > settings.looks(asked, looked.since(agent)) {
                due.entry(agent).or_default().push(row);
            }
        }
        let agents: Vec<_> = due.into_values().map(|rows| self.look_at_all(rows, away)).collect();
        join_all(agents).await;
    }

    /// Looks at tasks of one agent, until it turns out to be away.
    async fn look_at_all(&self, rows: Vec<&TaskRow>, away: &Mutex<HashSet<AgentName>>) {
        let (mut rows, mut looking) = (rows.into_iter(), FuturesUnordered::new());
        loop {
            while looking.len() < PER_AGENT
                && let Some(row) = rows.next()
            {
                looking.push(self.look_at_row(row, away));
            }
            if looking.next().await.is_none() {
                return;
            }
        }
    }

    async fn look_at_row(&self, row: &TaskRow, away: &Mutex<HashSet<AgentName>>) {
        let (task, agent) = (&row.task.id, &row.task.agent);
        if away.lock().contains(agent) {
            return;
        }
        match self.look_at(task, agent, "poll").await {
            Ok(Look::Done) => {}
            Ok(Look::Away) => {
                away.lock().insert(agent.clone());
            }
            // Of this task alone: others are looked at all the same.
            Err(error) => tracing::warn!(%task, %error, "a waiting remote task cannot be looked at"),
        }
    }

    /// Looks at one task because of a push notification.
    pub async fn look_now(&self, task: &TaskId) -> Result<(), Error> {
        match self.store.row(task).await? {
            Some(row) if row.state.state.is_interrupted() => {
                self.look_at(task, &row.task.agent, "push").await.map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn look_at(&self, task: &TaskId, agent: &AgentName, why: &'static str) -> Result<Look, Error> {
        let Some(parts) = self.remotes.remote(agent) else { return Ok(Look::Done) };
        let Some(waiting) = waiting_task(&*self.store, task).await? else { return Ok(Look::Done) };
        let saved = waiting.saved.as_ref();
        let Some(remote) = saved.and_then(|saved| saved.remote_task()) else { return Ok(Look::Done) };
        // The turn ends the task, whose question nobody can answer any more.
        if parts.is_elsewhere(saved.and_then(|saved| saved.url())) {
            return self.settle(task, waiting.question).await;
        }
        let Ok(permit) = parts.breaker.allow() else { return Ok(Look::Away) };
        metrics::counter!(metric::REMOTE_LOOKS, "agent" => agent.to_string(), "why" => why).increment(1);
        match parts.recorded(&permit, task, parts.client.get(&parts.call_context(None), remote, Some(0)).await) {
            Ok(now) if now.status.state.is_interrupted() => return Ok(Look::Done),
            Ok(_) => {}
            // What it has told of the end may be known here.
            Err(error) if error.error_kind() == Some(ErrorKind::TaskNotFound) => {}
            Err(error) => {
                tracing::debug!(%task, %error, "a waiting remote task cannot be looked at");
                // What is wrong with the answer about one task says nothing of the others.
                let has_answered =
                    error.error_kind().is_some() || RequestOutcome::of_error(&error) == RequestOutcome::Answered;
                return Ok(if has_answered { Look::Done } else { Look::Away });
            }
        }
        self.settle(task, waiting.question).await
    }

    /// Lets the turn of a task go on whose question is open no more.
    async fn settle(&self, task: &TaskId, question: Seq) -> Result<Look, Error> {
        match self.engine.settled(task, question).await {
            // Something else has ended the wait.
            Err(Error::QuestionClosed { .. }) | Ok(()) => Ok(Look::Done),
            Err(error) => Err(error),
        }
    }
}
