//! Catch-up: derives the missed events from the emitted task and a snapshot of the task as the agent has it now.

use switchboard_a2a::{
    Artifact, Part, PartContent, Role, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatus,
    TaskStatusUpdate,
};

use super::GapReason;
use super::seen_messages::SeenMessages;

#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) events: Vec<StreamResponse>,
    /// What cannot be derived.
    pub(super) missing: Option<GapReason>,
}

/// The events between the emitted task and the snapshot. An artifact that does not continue the emitted one was
/// replaced if that came from a snapshot; if it came in chunks, some of them are missing.
pub(super) fn difference(emitted: &Task, messages: &SeenMessages, now: &Task, is_snapshot: bool) -> Difference {
    let mut difference = Difference::default();
    // Some agents have the status message in the history already.
    let is_current = |id: &str| now.status.message.as_ref().is_some_and(|current| current.message_id.as_str() == id);
    let messages = now.history.iter().filter(|message| {
        let id = message.message_id.as_str();
        message.role == Role::Agent && !messages.contains(message) && (id.is_empty() || !is_current(id))
    });
    // A message in the history belongs to an earlier status.
    let passed = messages.map(|message| TaskStatus {
        state: TaskState::Working,
        message: Some(message.clone()),
        timestamp: None,
    });
    difference.events.extend(passed.map(|status| status_update(now, status)));
    for artifact in &now.artifacts {
        let known = emitted.artifacts.iter().find(|known| known.artifact_id == artifact.artifact_id);
        match known.map(|known| remainder(&known.parts, &artifact.parts)) {
            None => difference.events.push(artifact_update(now, artifact.clone(), false)),
            Some(Some(parts)) if parts.is_empty() => {}
            Some(Some(parts)) => {
                difference.events.push(artifact_update(now, Artifact { parts, ..artifact.clone() }, true));
            }
            Some(None) => {
                if !is_snapshot {
                    difference.missing = Some(GapReason::Artifact(artifact.artifact_id.to_string()));
                }
                difference.events.push(artifact_update(now, artifact.clone(), false));
            }
        }
    }
    let is_there = |known: &&Artifact| now.artifacts.iter().any(|artifact| artifact.artifact_id == known.artifact_id);
    if let Some(lost) = emitted.artifacts.iter().find(|known| !is_there(known)) {
        difference.missing = Some(GapReason::Forgotten(lost.artifact_id.to_string()));
    }
    if emitted.status.state.is_terminal() && !now.status.state.is_terminal() {
        difference.missing = Some(GapReason::Forgotten("its end".to_owned()));
    }
    if is_other(&emitted.status, &now.status) {
        difference.events.push(status_update(now, now.status.clone()));
    }
    difference
}

/// Whether two statuses differ. Some agents have other times in streams than in snapshots, so times do not count.
pub(super) fn is_other(emitted: &TaskStatus, now: &TaskStatus) -> bool {
    let message_of = |status: &TaskStatus| {
        status.message.as_ref().map(|message| (message.message_id.clone(), message.joined_text()))
    };
    emitted.state != now.state || message_of(emitted) != message_of(now)
}

/// The parts after the known ones; none if those are not a prefix. Adjacent texts count as one: agents join them as
/// they like.
pub(super) fn remainder(known: &[Part], now: &[Part]) -> Option<Vec<Part>> {
    let mut rest: Vec<Part> = joined(now);
    rest.reverse();
    for part in joined(known) {
        let next = rest.pop()?;
        match (part.as_text(), next.as_text()) {
            (Some(known), Some(text)) => {
                let more = text.strip_prefix(known)?;
                if !more.is_empty() {
                    rest.push(Part { content: PartContent::Text(more.to_owned()), ..next });
                }
            }
            _ if part == next => {}
            _ => return None,
        }
    }
    rest.reverse();
    Some(rest)
}

fn joined(parts: &[Part]) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(text) = part.as_text()
            && let Some(Part { content: PartContent::Text(last), .. }) = joined.last_mut()
        {
            last.push_str(text);
        } else {
            joined.push(part.clone());
        }
    }
    joined
}

fn status_update(task: &Task, status: TaskStatus) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        status,
        metadata: None,
    })
}

fn artifact_update(task: &Task, artifact: Artifact, append: bool) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifact,
        append,
        last_chunk: false,
        metadata: None,
    })
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{ArtifactId, ContextId, Message, MessageId, TaskId};

    use super::*;

    /// Ids and texts.
    type Artifacts<'a> = &'a [(&'a str, &'a [&'a str])];

    fn task(state: TaskState, artifacts: Artifacts<'_>) -> Task {
        let artifact = |(id, texts): &(&str, &[&str])| Artifact {
            artifact_id: ArtifactId::from(*id),
            ..Artifact::new(texts.iter().map(|text| Part::text(*text)).collect())
        };
        Task {
            id: TaskId::from("t"),
            context_id: ContextId::from("c"),
            status: TaskStatus { state, message: None, timestamp: None },
            artifacts: artifacts.iter().map(artifact).collect(),
            history: Vec::new(),
            metadata: None,
        }
    }

    fn working(artifacts: Artifacts<'_>) -> Task {
        task(TaskState::Working, artifacts)
    }

    fn message_of(role: Role, id: &str, text: &str) -> Message {
        Message { message_id: MessageId::from(id), ..Message::text(role, text) }
    }

    /// Of what was told in chunks.
    fn difference(emitted: &Task, now: &Task) -> Difference {
        super::difference(emitted, &SeenMessages::of(emitted), now, false)
    }

    /// The events in short, and what is missing.
    fn emitted(emitted: &Task, now: &Task) -> (Vec<String>, Option<GapReason>) {
        let difference = difference(emitted, now);
        let short = |event: &StreamResponse| match event {
            StreamResponse::ArtifactUpdate(update) => {
                let texts: Vec<&str> = update.artifact.parts.iter().filter_map(Part::as_text).collect();
                let sign = if update.append { "+" } else { "=" };
                format!("{}{sign}{}", update.artifact.artifact_id, texts.join("|"))
            }
            StreamResponse::StatusUpdate(update) => {
                let text = update.status.message.as_ref().map(Message::joined_text);
                format!("{} {}", update.status.state.as_str(), text.unwrap_or_default()).trim_end().to_owned()
            }
            other => format!("{other:?}"),
        };
        let mut applied = emitted.clone();
        for event in &difference.events {
            assert!(applied.apply(event), "{event:?}");
        }
        let joined = |task: &Task| -> Vec<Vec<Part>> { task.artifacts.iter().map(|of| joined(&of.parts)).collect() };
        if difference.missing.is_none() {
            assert_eq!(joined(&applied), joined(now), "the events lead to what is");
        }
        assert_eq!(applied.status.state, now.status.state);
        (difference.events.iter().map(short).collect(), difference.missing)
    }

    #[test]
    fn what_goes_on_from_what_was_told_is_told() {
        let cases: [(Artifacts<'_>, Artifacts<'_>, &[&str]); 7] = [
            (&[], &[("a", &["one"])], &["a=one"]),
            (&[("a", &["one"])], &[("a", &["one"])], &[]),
            (&[("a", &["one "])], &[("a", &["one two"])], &["a+two"]),
            (&[("a", &["one ", "two"])], &[("a", &["one two", " three"])], &["a+ three"]),
            (&[("a", &["one two"])], &[("a", &["one ", "two"])], &[]),
            (&[("a", &["one"])], &[("a", &["one"]), ("b", &["other"])], &["b=other"]),
            (&[("a", &[])], &[("a", &["one"])], &["a+one"]),
        ];
        for (before, now, expected) in cases {
            assert_eq!(
                emitted(&working(before), &working(now)),
                (expected.iter().map(|of| (*of).to_owned()).collect(), None)
            );
        }
    }

    #[test]
    fn what_does_not_go_on_is_a_gap_and_told_whole() {
        let gap = Some(GapReason::Artifact("a".to_owned()));
        for before in [&["one three"][..], &["two one"], &["one two three"], &["one ", "one "]] {
            let (events, missing) = emitted(&working(&[("a", before)]), &working(&[("a", &["one two"])]));
            assert_eq!((events, missing), (vec!["a=one two".to_owned()], gap.clone()), "{before:?}");
        }
    }

    #[test]
    fn what_was_only_ever_a_picture_may_be_replaced() {
        let (before, now) = (working(&[("a", &["draft"])]), working(&[("a", &["final"])]));
        let difference = super::difference(&before, &SeenMessages::of(&before), &now, true);
        assert!(difference.missing.is_none(), "{difference:?}");
        assert!(matches!(&difference.events[..], [StreamResponse::ArtifactUpdate(update)] if !update.append));
    }

    #[test]
    fn what_is_said_now_and_in_the_history_is_told_once() {
        let (before, mut now) = (working(&[]), working(&[]));
        now.history = vec![message_of(Role::Agent, "1", "first")];
        now.status.message = Some(message_of(Role::Agent, "1", "first"));
        assert_eq!(emitted(&before, &now), (vec!["TASK_STATE_WORKING first".to_owned()], None));
    }

    #[test]
    fn other_parts_count_as_they_are() {
        let file = |byte: u8| Part::new(PartContent::Raw(vec![byte]));
        let of = |parts: Vec<Part>| {
            let mut task = working(&[("a", &[])]);
            task.artifacts[0].parts = parts;
            task
        };
        let before = of(vec![Part::text("see"), file(1)]);
        let more = difference(&before, &of(vec![Part::text("see"), file(1), file(2)]));
        assert!(more.missing.is_none() && more.events.len() == 1, "{more:?}");
        let other = difference(&before, &of(vec![Part::text("see"), file(3)]));
        assert_eq!(other.missing, Some(GapReason::Artifact("a".to_owned())));
        let text = difference(&before, &of(vec![Part::text("seen"), file(1)]));
        assert_eq!(text.missing, Some(GapReason::Artifact("a".to_owned())));
    }

    #[test]
    fn what_the_agent_has_forgotten_is_a_gap() {
        let (_, missing) = emitted(&working(&[("a", &["one"]), ("b", &["other"])]), &working(&[("a", &["one"])]));
        assert_eq!(missing, Some(GapReason::Forgotten("b".to_owned())));
        let ended = difference(&task(TaskState::Completed, &[]), &working(&[]));
        assert_eq!(ended.missing, Some(GapReason::Forgotten("its end".to_owned())));
    }

    #[test]
    fn what_was_said_in_between_is_told_once_and_before_what_is_now() {
        let mut before = working(&[]);
        before.history = vec![message_of(Role::User, "u", "go"), message_of(Role::Agent, "1", "first")];
        before.status.message = Some(message_of(Role::Agent, "2", "second"));
        let mut now = task(TaskState::Completed, &[("a", &["all"])]);
        now.history = before.history.clone();
        now.history.push(message_of(Role::Agent, "2", "second"));
        now.history.push(message_of(Role::Agent, "3", "third"));
        now.history.push(message_of(Role::User, "v", "and?"));
        now.status.message = Some(message_of(Role::Agent, "4", "fourth"));
        let expected = ["TASK_STATE_WORKING third", "a=all", "TASK_STATE_COMPLETED fourth"];
        assert_eq!(emitted(&before, &now), (expected.map(str::to_owned).to_vec(), None));
        assert_eq!(emitted(&now, &now), (Vec::new(), None));
    }

    #[test]
    fn times_alone_are_no_news() {
        let (before, mut now) = (working(&[]), working(&[]));
        now.status.timestamp = switchboard_a2a::Timestamp::parse("2026-01-02T03:04:05Z");
        assert!(now.status.timestamp.is_some());
        assert_eq!(emitted(&before, &now), (Vec::new(), None));
    }
}
