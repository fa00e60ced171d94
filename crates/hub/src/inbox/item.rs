//! What the inbox shows of a question: what kind it is, whose turn it is to answer, and what becomes of it otherwise.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_a2a::{Message, TaskState, Timestamp};
use switchboard_engine::clock::later;
use switchboard_engine::event::Received;
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::{StoreError, TaskIdentity, TaskRow};
use switchboard_engine::{ExpiryAction, Reviewer};

use super::{Choices, ItemId, Question, verdict_name};
use crate::hub::HubState;
use crate::task_rows::CallerNames;

/// What is shown of a question in its title, in characters.
const TITLE: usize = 120;
/// A larger question stands in no list.
const LISTED: usize = 32 << 10;

/// What a question is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Question,
    /// Credentials are missing.
    Auth,
    /// A skill waits for an approval before it starts.
    Gate,
}

impl Kind {
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("question", Self::Question), ("auth", Self::Auth), ("gate", Self::Gate)];

    pub(crate) fn of(question: &Question) -> Self {
        match &question.review {
            Some(review) if review.mode.is_some() && review.checkpoint.is_none() => Self::Gate,
            None if question.update.status.state == TaskState::AuthRequired => Self::Auth,
            _ => Self::Question,
        }
    }
}

/// Whose turn it is to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The caller's: the question is new.
    Caller,
    Operator,
    /// Its own time is over, and it stays open.
    Escalated,
}

impl Stage {
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("caller", Self::Caller), ("operator", Self::Operator), ("escalated", Self::Escalated)];

    /// The stage of a question that is open at a time.
    pub(crate) fn of(question: &Question, task: &TaskIdentity, caller_first: Duration, now: Timestamp) -> Self {
        let review = question.review.as_ref();
        let has_escalated = review.is_some_and(|review| {
            review.then == ExpiryAction::Escalate && review.expires_at.is_some_and(|at| at <= now)
        });
        let begins_with_caller = review.is_none_or(|review| review.reviewer == Reviewer::Caller) && is_awaited(task);
        match begins_with_caller && now < later(question.asked_at(), caller_first) {
            _ if has_escalated => Self::Escalated,
            true => Self::Caller,
            false => Self::Operator,
        }
    }
}

/// Whether somebody waits for a task who could answer its questions. Nobody does where a schedule or a route has sent it.
fn is_awaited(task: &TaskIdentity) -> bool {
    !matches!(task.lineage.via, Via::Cron | Via::Route)
}

fn name<T: Copy + PartialEq>(words: &[(&'static str, T)], of: T) -> &'static str {
    words.iter().find(|(_, word)| *word == of).map_or("-", |(name, _)| name)
}

/// An item as it is shown. What it asks is no `serde_json::Value`, which cannot hold all that a message may have.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InboxItem {
    #[serde(flatten)]
    shown: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Message>,
    #[serde(skip)]
    pub(crate) bytes: usize,
}

impl InboxItem {
    /// The item of a question that is open.
    pub(crate) async fn open(
        hub: &HubState,
        names: &CallerNames,
        row: &TaskRow,
        question: Question,
    ) -> Result<Self, StoreError> {
        let caller_first = hub.parts.config.hub.inbox.caller_first.duration();
        let stage = Stage::of(&question, &row.task, caller_first, hub.parts.clock.now());
        let mut item = Self::of(hub, names, row, question).await?;
        item.shown["state"] = "open".into();
        item.shown["stage"] = name(&Stage::ALL, stage).into();
        if let Some(due) = row.state.expires_at {
            item.shown["dueAt"] = due.to_string().into();
        }
        Ok(item)
    }

    /// The item of a question that is closed, by its answer if there was one.
    pub(crate) async fn closed(
        hub: &HubState,
        names: &CallerNames,
        row: &TaskRow,
        question: Question,
        answer: Option<&Received>,
    ) -> Result<Self, StoreError> {
        let mut item = Self::of(hub, names, row, question).await?;
        item.shown["state"] = if answer.is_some() { "decided" } else { "closed" }.into();
        if let Some(answer) = answer {
            item.shown["decided"] = decided(names, &row.task, answer);
        }
        Ok(item)
    }

    async fn of(hub: &HubState, names: &CallerNames, row: &TaskRow, question: Question) -> Result<Self, StoreError> {
        let task = &row.task;
        let origin = hub.traces.origin(row.key, task, &question.events).await?;
        let bytes = question.events.line(question.seq).map_or(0, <[u8]>::len);
        let text = question.message().map(Message::joined_text).unwrap_or_default();
        let title: String =
            text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().chars().take(TITLE).collect();
        let review = question.review.as_ref();
        let mut shown = json!({
            "id": ItemId { task: task.id.clone(), question: question.seq }.to_string(),
            "taskId": task.id,
            "contextId": task.context,
            "agent": task.agent.as_str(),
            "kind": name(&Kind::ALL, Kind::of(&question)),
            "reviewer": review.map_or(Reviewer::Caller, |review| review.reviewer),
            "title": title,
            "openedAt": question.asked_at().to_string(),
            "onTimeout": review.map_or(ExpiryAction::Fail, |review| review.then),
        });
        names.put(&mut shown, "owner", &task.owner);
        let skill = review.and_then(|review| review.skill.clone());
        let origin_skill = origin.as_ref().and_then(|origin| origin.skill.clone());
        let members = [
            ("skill", skill.or(origin_skill)),
            ("mode", review.and_then(|review| review.mode.clone())),
            ("radius", review.and_then(|review| review.radius.clone())),
            ("correlationId", origin.map(|origin| origin.correlation.clone())),
        ];
        for (member, value) in members {
            if let Some(value) = value {
                shown[member] = value.into();
            }
        }
        if let Some(checkpoint) = review.and_then(|review| review.checkpoint) {
            shown["checkpoint"] = checkpoint.into();
        }
        let message = question.update.status.message;
        if let Some(choices) = message.as_ref().map(Choices::of).filter(|choices| !choices.offered.is_empty()) {
            shown["options"] = json!(choices.offered);
        }
        Ok(Self { shown, question: message, bytes })
    }

    /// The same for a list, which has no room for long questions.
    pub(crate) fn listed(mut self) -> Self {
        if self.bytes > LISTED {
            self.question = None;
            self.shown["questionBytes"] = self.bytes.into();
            if let Some(shown) = self.shown.as_object_mut() {
                shown.remove("options");
            }
            self.bytes = 0;
        }
        self
    }

    /// The same in a few members, as earlier hubs have it.
    pub(crate) fn short(&self) -> Value {
        let mut short = json!({
            "requestId": self.shown["id"],
            "correlationId": self.shown["correlationId"],
            "question": self.question.as_ref().map(Message::joined_text),
        });
        for member in ["taskId", "agent", "kind", "stage", "title", "options", "openedAt", "dueAt"] {
            if !self.shown[member].is_null() {
                short[member] = self.shown[member].clone();
            }
        }
        short
    }
}

/// Who has answered, when, and how: what a decision says in the log. What the time has decided names nobody.
pub(crate) fn decided(names: &CallerNames, task: &TaskIdentity, answer: &Received) -> Value {
    let verdict = answer.decision.as_ref().map(|decision| verdict_name(decision.verdict));
    let mut decided = json!({
        "at": answer.at.to_string(),
        "decision": verdict.unwrap_or("answer"),
        "text": answer.message.joined_text().chars().take(TITLE).collect::<String>(),
        "by": null,
    });
    if let Some(by) = answer.answered_by(&task.owner) {
        names.put(&mut decided, "by", &by);
    }
    decided
}
