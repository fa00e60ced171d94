//! An agent that relays a task of another server: what is said there is said here, as it is.

use switchboard_a2a::{Artifact, Json, Message, Metadata, Part, Role, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

fn metadata(key: &str, value: &str) -> Metadata {
    let mut metadata = Metadata::default();
    metadata.insert(key, Json::from_serialize(value).unwrap());
    metadata
}

fn state_of(word: &str) -> TaskState {
    match word {
        "completed" => TaskState::Completed,
        "canceled" => TaskState::Canceled,
        "rejected" => TaskState::Rejected,
        _ => TaskState::Failed,
    }
}

/// Tells how the task elsewhere ends, `after a cancel` or by itself.
fn relay() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let text = turn.text();
        let (end, waits) = text.split_once(' ').map_or((text.as_str(), false), |(end, _)| (end, true));
        assert_eq!(task.say(TaskState::Submitted, None, None).await, Err(Stopped::IllegalState(TaskState::Submitted)));
        let working = Message::text(Role::User, "at it");
        task.say(TaskState::Working, Some(working), Some(metadata("there", "7"))).await?;
        let piece = Artifact::text("a piece");
        task.chunk(piece, false, true, Some(metadata("usage", "3 tokens"))).await?;
        if waits {
            task.canceled().await;
            assert_eq!(task.complete().await, Err(Stopped::Canceled), "completing is another thing than relaying");
            assert_eq!(task.say(TaskState::InputRequired, None, None).await, Err(Stopped::Canceled));
            task.say(TaskState::Working, Some(Message::text(Role::Agent, "stopping there")), None).await?;
        }
        let parts = vec![Part::text("the end"), Part::data(Json::from_serialize(&[1]).unwrap())];
        let last = Message { parts, ..turn.message.clone() };
        Ok(task.say(state_of(end), Some(last), Some(metadata("there", "9"))).await?)
    })
}

#[test]
fn a_relayed_end_is_told_as_it_was_after_a_cancel_too() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), relay());
    kernel.run(async {
        for word in ["completed", "canceled", "rejected", "failed"] {
            for waits in [false, true] {
                let sent = kernel.send(&if waits { format!("{word} after a cancel") } else { word.to_owned() }).await;
                if waits {
                    kernel.reach(sent.id(), TaskState::Working).await;
                    match (kernel.cancel(sent.id()).await, state_of(word)) {
                        (Ok(task), TaskState::Canceled) => assert_eq!(task.status.state, TaskState::Canceled),
                        (Err(Error::NotCancelable { state, .. }), expected) => assert_eq!(state, expected),
                        (other, _) => panic!("{word}: {other:?}"),
                    }
                }
                let task = answer_task(&sent).await;
                let message = task.status.message.as_ref().unwrap();
                assert_eq!((task.status.state, message.role), (state_of(word), Role::Agent));
                assert_eq!(message.parts[1].as_data().unwrap().as_str(), "[1]");
                let all = task.metadata.as_ref().unwrap();
                assert_eq!(all.get("there").unwrap().as_text().unwrap(), "9");
                let said = all.get(reason::REASON_KEY).and_then(Json::as_text);
                let expected = match (word, waits) {
                    ("completed", _) => None,
                    ("canceled", true) => Some("canceled_by_caller"),
                    ("canceled", false) => Some("canceled_by_agent"),
                    ("rejected", _) => Some("rejected"),
                    _ => Some("agent_error"),
                };
                assert_eq!(said.as_deref(), expected);
                let is_told = task.history.iter().any(|message| message.joined_text() == "stopping there");
                assert_eq!(is_told, waits);
                let log = kernel.log(sent.id()).await;
                let piece = log.iter().find(|event| event.kind == EventKind::Artifact).unwrap();
                let frame: serde_json::Value = serde_json::from_slice(&piece.line).unwrap();
                assert_eq!(frame["artifactUpdate"]["metadata"]["usage"], "3 tokens");
            }
        }
    });
}
