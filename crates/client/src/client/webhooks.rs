//! The webhooks of a task: set, get, list and delete.

use std::collections::HashSet;

use switchboard_a2a::{Operation, PushConfig, PushRequest, Request, TaskId, decode};

use super::Client;
use crate::{CallContext, ClientError};

/// The longest list that is read.
const MOST_PAGES: usize = 1_000;
const MOST_WEBHOOKS: usize = 10_000;

impl Client {
    /// Sets a webhook of a task.
    pub async fn set_webhook(&self, context: &CallContext, config: PushConfig) -> Result<PushConfig, ClientError> {
        let request = Request::Push(PushRequest::Create(config));
        let json = self.call(context, Operation::CreatePushConfig, request).await?;
        self.read(&json, |json| serde_json::from_slice(json))
    }

    /// One webhook of a task.
    pub async fn webhook(
        &self,
        context: &CallContext,
        task_id: &TaskId,
        id: Option<&str>,
    ) -> Result<PushConfig, ClientError> {
        let id = id.map(str::to_owned);
        let request = Request::Push(PushRequest::Get { task_id: task_id.clone(), id, tenant: None });
        let json = self.call(context, Operation::GetPushConfig, request).await?;
        self.read(&json, |json| serde_json::from_slice(json))
    }

    /// All webhooks of a task, page after page.
    pub async fn webhooks(&self, context: &CallContext, task_id: &TaskId) -> Result<Vec<PushConfig>, ClientError> {
        let mut all = Vec::<PushConfig>::new();
        let mut tokens = HashSet::new();
        let mut page_token = None;
        for _ in 0..MOST_PAGES {
            let list = PushRequest::List { task_id: task_id.clone(), page_size: None, page_token, tenant: None };
            let json = self.call(context, Operation::ListPushConfigs, Request::Push(list)).await?;
            let (configs, next) = self.read(&json, decode::decode_push_list)?;
            // An empty page or a repeated token ends the list: some agents would go on for ever.
            if next.is_empty() || configs.is_empty() || !tokens.insert(next.clone()) {
                let known: HashSet<_> = all.iter().filter_map(|config| config.id.clone()).collect();
                let is_new = |config: &PushConfig| config.id.as_ref().is_none_or(|id| !known.contains(id));
                all.extend(configs.into_iter().filter(is_new));
                return Ok(all);
            }
            all.extend(configs);
            if all.len() > MOST_WEBHOOKS {
                break;
            }
            page_token = Some(next);
        }
        Err(ClientError::NotA2a {
            origin: self.redacted_url(),
            status: 200,
            what: format!("a list that does not end within {MOST_PAGES} pages and {MOST_WEBHOOKS} webhooks"),
            hint: String::new(),
        })
    }

    /// Deletes a webhook of a task.
    pub async fn delete_webhook(&self, context: &CallContext, task_id: &TaskId, id: &str) -> Result<(), ClientError> {
        let (task_id, id) = (task_id.clone(), id.to_owned());
        let request = Request::Push(PushRequest::Delete { task_id, id, tenant: None });
        self.call(context, Operation::DeletePushConfig, request).await.map(drop)
    }
}
