//! What the agent of a hub and the agent that it stands for have to do with each other, seen from both: what another client
//! does there is told here, and what is canceled here is canceled there.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use switchboard_a2a::{ContextId, Message, Role, SendResponse, Task, TaskId, TaskState};
use switchboard_client::response_text;

use crate::caller::{Caller, completed, request};
use crate::run::{Answer, Checked, Run, equal};

/// Where a task of the hub names the one that it follows.
const REMOTE: &str = "switchboard/remote";

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// An agent, called through the hub and itself.
pub(crate) struct Behind {
    pub(crate) here: Caller,
    pub(crate) there: Caller,
}

pub(crate) async fn run(run: &mut Run<'_>, behind: &Behind) {
    run.check("answered-there", behind.answered_there()).await;
    run.check("canceled-here", behind.canceled_here()).await;
    run.check("canceled-while-it-waits", behind.canceled_while_it_waits()).await;
}

impl Behind {
    /// The hub does not look at a task that waits before long, so that this has come by webhook.
    async fn answered_there(&self) -> Checked {
        let asked = self.asked().await?;
        let (task, context) = remote(&asked).context("the task does not name the one that it follows")?;
        let mut answer = Message::text(Role::User, "Ada");
        (answer.task_id, answer.context_id) = (Some(task), Some(context));
        completed(self.there.client.send(&self.there.context, request(answer)).await?)?;
        let told = self.until(&asked.id, |task| task.status.state.is_terminal()).await?;
        let outcome = SendResponse::Task(told);
        equal(response_text(&outcome).as_str(), "hello Ada")?;
        completed(outcome)?;
        Ok(Answer::Given)
    }

    async fn canceled_here(&self) -> Checked {
        let begun = self.here.begin_wait().await?;
        let begun = self.until(&begun.id, |task| remote(task).is_some()).await?;
        self.is_canceled_there(&begun).await
    }

    /// No turn follows the task, so that the hub owes its cancellation.
    async fn canceled_while_it_waits(&self) -> Checked {
        let asked = self.asked().await?;
        self.is_canceled_there(&asked).await
    }

    async fn is_canceled_there(&self, task: &Task) -> Checked {
        let (remote, _) = remote(task).context("the task does not name the one that it follows")?;
        let canceled = self.here.client.cancel(&self.here.context, &task.id, None).await?;
        equal(canceled.status.state, TaskState::Canceled)?;
        loop {
            let there = self.there.client.get(&self.there.context, &remote, None).await?;
            if there.status.state.is_terminal() {
                equal(there.status.state, TaskState::Canceled)?;
                return Ok(Answer::Given);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn asked(&self) -> anyhow::Result<Task> {
        match self.here.send("ask").await? {
            SendResponse::Task(task) if task.status.state == TaskState::InputRequired => Ok(task),
            outcome => anyhow::bail!("expected a question, got {outcome:?}"),
        }
    }

    /// The task of the hub as soon as it is so.
    async fn until(&self, task: &TaskId, is_so: impl Fn(&Task) -> bool) -> anyhow::Result<Task> {
        loop {
            let now = self.here.client.get(&self.here.context, task, None).await?;
            if is_so(&now) {
                return Ok(now);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn remote(task: &Task) -> Option<(TaskId, ContextId)> {
    let remote: Value = task.metadata.as_ref()?.get(REMOTE)?.read().ok()?;
    Some((remote["taskId"].as_str()?.into(), remote["contextId"].as_str()?.into()))
}
