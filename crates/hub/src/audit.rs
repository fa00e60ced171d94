//! The audit: who has had the hub do what, and with which request, as lines of the journal that are kept longer than others.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::Caller;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;

use crate::journal_text::shortened;

/// Who asks for something.
#[derive(Clone, Debug)]
pub struct Actor {
    pub caller: Caller,
    /// The name of its key, if it has one.
    pub name: Option<String>,
    /// As in the response and the log.
    pub request_id: Option<String>,
}

/// Something that was done.
pub(crate) struct Act<'a> {
    /// Words with dots between, such as `agents.add`.
    pub(crate) name: &'a str,
    /// What it was done to.
    pub(crate) subject: &'a str,
    /// The agent that it concerns: keys for other agents do not see the line.
    pub(crate) agent: Option<&'a str>,
    pub(crate) task: Option<TaskId>,
    pub(crate) before: Value,
    pub(crate) after: Value,
}

impl Actor {
    /// The line that says what it has done.
    pub(crate) fn did(&self, at: Timestamp, act: Act<'_>) -> JournalLine {
        let mut payload = json!({
            "caller": self.caller.id.as_str(),
            "subject": shortened(act.subject),
            "before": act.before,
            "after": act.after,
            "requestId": self.request_id,
        });
        for (member, value) in [("callerName", self.name.as_deref()), ("agent", act.agent)] {
            if let Some(value) = value {
                payload[member] = value.into();
            }
        }
        redact::json(&mut payload);
        JournalLine {
            at,
            owner: None,
            task: act.task,
            topic: format!("audit.{}", act.name),
            payload: Bytes::from(payload.to_string()),
        }
    }
}
