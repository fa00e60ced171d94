//! Finds the task of a message that was answered with an error or not at all, by listing tasks.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{ListRequest, Operation, Request};

use super::TestedInterface;
use crate::reply::ReplyContent;
use crate::wire::entries;

/// How many pages are read: some agents list the oldest tasks first.
const PAGES: usize = 10;

impl TestedInterface {
    /// The task of the first message, or why there is none.
    pub(crate) async fn unanswered_task(&self) -> Result<&Value, &'static str> {
        let found = self.unanswered_task.get(|| self.find_unanswered_task()).await;
        found.as_ref().map_err(|why| *why)
    }

    async fn find_unanswered_task(&self) -> Result<Value, &'static str> {
        let first = self.first().await;
        let is_refused = matches!(first.reply.content, ReplyContent::Error(_));
        if !is_refused && !first.reply.is_late(self.agent.patience) {
            return Err("no message was answered with an error");
        }
        if !self.is_v1() {
            return Err("version 0.3 cannot list the task that is left");
        }
        if is_refused {
            // The agent may be about to end it.
            tokio::time::sleep(Duration::from_secs(1).min(self.agent.patience)).await;
        }
        self.task_of(&first.message_id).await
    }

    /// The task one of our messages has started.
    pub(crate) async fn task_of(&self, message_id: &str) -> Result<Value, &'static str> {
        let mut page_token = None;
        for _ in 0..PAGES {
            let list = ListRequest {
                history_length: Some(10),
                page_size: Some(100),
                page_token: page_token.take(),
                tenant: self.tenant(),
                ..ListRequest::default()
            };
            let reply = self.call(Operation::ListTasks, Request::List(list)).await;
            let result = reply.result().ok_or("the agent lists no tasks")?;
            let mut tasks = entries(&result["tasks"]);
            let is_ours = |task: &&Value| {
                let mut history = entries(&task["history"]);
                history.any(|message| message["messageId"] == message_id)
            };
            if let Some(task) = tasks.find(is_ours) {
                return Ok(task.clone());
            }
            page_token = result["nextPageToken"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
            if page_token.is_none() {
                break;
            }
        }
        Err("no task is left of it")
    }
}
