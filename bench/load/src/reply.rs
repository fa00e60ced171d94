//! What is read out of replies: only what is checked, borrowed from the buffer it arrived in.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

use crate::failure::Failure;

#[derive(Deserialize)]
struct Envelope<'a, T> {
    id: Option<u64>,
    result: Option<T>,
    #[serde(borrow)]
    error: Option<RpcError<'a>>,
}

#[derive(Deserialize)]
struct RpcError<'a> {
    code: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

/// The result of a reply with the expected id.
pub(crate) fn result<'a, T: Deserialize<'a>>(bytes: &'a [u8], expected: u64) -> Result<T, Failure> {
    let envelope: Envelope<'a, T> = serde_json::from_slice(bytes)?;
    if let Some(error) = envelope.error {
        return Err(Failure::Rpc { code: error.code, message: error.message.into_owned() });
    }
    if envelope.id != Some(expected) {
        return Err(Failure::Id { expected, found: envelope.id });
    }
    envelope.result.ok_or(Failure::Missing("result"))
}

/// The result of SendMessage, and one frame of a stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event<'a> {
    #[serde(borrow)]
    pub(crate) task: Option<Task<'a>>,
    #[serde(borrow)]
    pub(crate) status_update: Option<StatusUpdate<'a>>,
    #[serde(borrow)]
    pub(crate) artifact_update: Option<ArtifactUpdate<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Task<'a> {
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) status: Status<'a>,
    #[serde(default)]
    artifacts: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdate<'a> {
    #[serde(borrow)]
    pub(crate) task_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) status: Status<'a>,
}

#[derive(Deserialize)]
pub(crate) struct Status<'a> {
    #[serde(borrow)]
    pub(crate) state: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(crate) struct ArtifactUpdate<'a> {
    #[serde(borrow)]
    pub(crate) artifact: Artifact<'a>,
}

#[derive(Deserialize)]
pub(crate) struct Artifact<'a> {
    #[serde(borrow)]
    pub(crate) parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    pub(crate) tasks: Vec<IgnoredAny>,
    pub(crate) total_size: u64,
}

pub(crate) const COMPLETED: &str = "TASK_STATE_COMPLETED";

impl Task<'_> {
    /// Completed, with exactly one artifact.
    pub(crate) fn check_finished(&self) -> Result<(), Failure> {
        if self.status.state != COMPLETED {
            return Err(Failure::State(self.status.state.clone().into_owned()));
        }
        if self.artifacts.len() != 1 {
            return Err(Failure::Artifacts(self.artifacts.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str) -> Result<(), Failure> {
        let event: Event<'_> = result(reply.as_bytes(), 7)?;
        event.task.ok_or(Failure::Missing("task"))?.check_finished()
    }

    #[test]
    fn only_a_finished_task_with_one_artifact_and_the_right_id_passes() {
        let finished = r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{}]}}}"#;
        assert!(check(finished).is_ok());
        assert!(matches!(check(&finished.replace(":7,", ":8,")), Err(Failure::Id { found: Some(8), .. })));
        assert!(matches!(check(&finished.replace("COMPLETED", "WORKING")), Err(Failure::State(_))));
        assert!(matches!(check(&finished.replace("[{}]", "[{},{}]")), Err(Failure::Artifacts(2))));
        assert!(matches!(check(r#"{"id":7,"result":{"message":{}}}"#), Err(Failure::Missing("task"))));
        assert!(matches!(
            check(r#"{"id":7,"error":{"code":-32603,"message":"full"}}"#),
            Err(Failure::Rpc { code: -32603, .. })
        ));
    }
}
