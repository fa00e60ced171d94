//! Agents without numbers that lose something while no client listens: it is told from how they have the task, in order and
//! once, or it is said that something is missing.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Role, StreamResponse};
use switchboard_client::{CallContext, Client, ClientError, GapReason, TaskStream, Update};

use super::script::{COMPLETED, Reply, WORKING, agent, chunk, error, event, events, result, status, task};
use super::streams::{story, usual, working};
use crate::world::{client, say};

/// A message of the agent's.
pub(super) fn message(id: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": id}]})
}

/// A status with a message.
fn says(id: &str) -> Value {
    let mut update = status(WORKING);
    update["statusUpdate"]["status"]["message"] = message(id);
    update
}

/// A task with messages that are over.
fn with_history(mut task: Value, ids: &[&str]) -> Value {
    task["history"] = ids.iter().map(|id| message(id)).collect();
    task
}

/// Everything that was said, in order.
pub(super) async fn words(client: &Client) -> Vec<String> {
    told(client.stream(&CallContext::default(), say("hello")).await.unwrap()).await
}

async fn told(mut followed: TaskStream) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(update) = followed.next().await.unwrap() {
        match update {
            Update::Lost { .. } => {}
            Update::Gap(gap) => words.push(format!("gap: {:?}", gap.missing)),
            Update::Event(event) => match *event {
                StreamResponse::Task(task) => {
                    let said = task.history.iter().filter(|message| message.role == Role::Agent);
                    words.extend(said.chain(&task.status.message).map(switchboard_a2a::Message::joined_text));
                }
                StreamResponse::StatusUpdate(update) => {
                    words.extend(update.status.message.map(|message| message.joined_text()));
                    words.extend(update.status.state.is_terminal().then(|| update.status.state.as_str().to_owned()));
                }
                StreamResponse::ArtifactUpdate(update) => {
                    words.push(update.artifact.parts.iter().filter_map(|part| part.as_text()).collect());
                }
                StreamResponse::Message(message) => words.push(message.joined_text()),
            },
        }
    }
    words
}

#[tokio::test]
async fn what_was_missed_is_told_before_what_is_heard_next() {
    let peer = usual(
        || events(&[working(""), event(says("m1")), event(chunk("one "))]),
        |_| events(&[event(says("m3")), event(chunk("three ")), event(chunk("four")), event(status(COMPLETED))]),
        |before| match before {
            // As it is when the subscription has said its first word.
            0 => with_history(task(WORKING, "one two three "), &["m1", "m2", "m3"]),
            _ => with_history(task(COMPLETED, "one two three four"), &["m1", "m2", "m3"]),
        },
    )
    .await;
    let expected = ["m1", "one ", "m2", "m3", "two three ", "four", COMPLETED];
    assert_eq!(words(&client(peer.url(), |_| {})).await, expected);
}

#[tokio::test]
async fn a_subscription_to_a_task_that_is_not_shown_begins_with_it() {
    let subscription = [event(chunk("two ")), event(chunk("three")), event(status(COMPLETED))];
    let peer = usual(
        || Reply::Closes,
        move |_| events(&subscription),
        |before| if before == 0 { task(WORKING, "one two ") } else { task(COMPLETED, "one two three") },
    )
    .await;
    let client = client(peer.url(), |_| {});
    let mut followed = client.subscribe(&CallContext::default(), "t".into()).await.unwrap();
    let Some(Update::Event(first)) = followed.next().await.unwrap() else { panic!("no event") };
    assert!(matches!(&*first, StreamResponse::Task(task) if task.artifacts.len() == 1), "{first:?}");
    assert_eq!(told(followed).await, ["three", COMPLETED]);
}

#[tokio::test]
async fn an_end_is_believed_after_a_loss_only_if_the_agent_has_it_too() {
    let lossy = || events(&[working(""), event(chunk("one "))]);
    let rest = |_| events(&[event(chunk("three")), event(status(COMPLETED))]);
    // It stores more slowly than it streams.
    let peer = usual(lossy, rest, |before| match before {
        0..3 => task(WORKING, "one "),
        _ => task(COMPLETED, "one two three"),
    })
    .await;
    let gap = format!("gap: {:?}", GapReason::Artifact("a".to_owned()));
    let expected = ["one ", "three", &gap, "one two three", COMPLETED];
    assert_eq!(words(&client(peer.url(), |_| {})).await, expected);
    // It never comes to an end there, or cannot be asked.
    let never: [fn() -> Reply; 3] =
        [|| result(task(WORKING, "one ")), || error(-32603, "the store is down"), || error(-32601, "no such method")];
    for get in never {
        let peer = agent(false, move |asked, _| match asked.what().as_str() {
            "SendStreamingMessage" => lossy(),
            "SubscribeToTask" => rest(0),
            _ => get(),
        })
        .await;
        let words = words(&client(peer.url(), |_| {})).await;
        assert_eq!((&words[..2], words[3].as_str()), (&["one ".to_owned(), "three".to_owned()][..], COMPLETED));
        assert!(words[2].starts_with("gap: Unknown"), "{words:?}");
    }
}

#[tokio::test]
async fn an_end_needs_no_confirmation_where_nothing_was_lost() {
    let peer = agent(false, |asked, _| match asked.what().as_str() {
        "SendStreamingMessage" => events(&[working(""), event(chunk("one")), event(status(COMPLETED))]),
        _ => error(-32603, "the store is down"),
    })
    .await;
    assert_eq!(words(&client(peer.url(), |_| {})).await, ["one", COMPLETED]);
    assert_eq!(peer.story(), ["SendStreamingMessage", "GetTask"]);
}

#[tokio::test]
async fn what_a_picture_leaves_out_is_not_told_again_by_the_next() {
    let mut bare = task(WORKING, "");
    bare["status"]["message"] = message("m2");
    let bare = json!({"task": bare});
    let peer = usual(
        || events(&[working(""), event(says("m1")), event(says("m2"))]),
        move |_| events(&[event(bare.clone()), event(says("m3")), event(status(COMPLETED))]),
        |_| with_history(task(COMPLETED, ""), &["m1", "m2", "m3"]),
    )
    .await;
    assert_eq!(words(&client(peer.url(), |_| {})).await, ["m1", "m2", "m3", COMPLETED]);
}

#[tokio::test]
async fn a_message_on_the_way_is_not_the_end_of_a_task() {
    let failed = "TASK_STATE_FAILED";
    let note = json!({"message": message("just a note")});
    let peer = usual(
        move || events(&[working(""), event(note.clone()), event(chunk("result")), event(status(failed))]),
        |_| error(-32601, "no such method"),
        move |_| task(failed, "result"),
    )
    .await;
    let client = client(peer.url(), |_| {});
    let expected = ["task TASK_STATE_WORKING", "message just a note", "result", failed];
    assert_eq!(story(&client).await.unwrap(), expected);
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    let response = followed.finish().await.unwrap();
    assert!(matches!(&response, switchboard_a2a::SendResponse::Task(task) if task.status.state.as_str() == failed));
}

#[tokio::test]
async fn an_artifact_that_was_replaced_between_two_looks_is_no_gap() {
    let peer = agent(false, |asked, before| match asked.what().as_str() {
        "SendMessage" => result(json!({"task": task(WORKING, "draft")})),
        "GetTask" if before == 0 => result(task(WORKING, "another draft")),
        "GetTask" => result(task(COMPLETED, "final")),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    assert_eq!(words(&client).await, ["another draft", "final", COMPLETED]);
}

#[tokio::test]
async fn another_tasks_end_is_not_the_end() {
    let mut other = status(COMPLETED);
    other["statusUpdate"]["taskId"] = json!("another");
    let peer = usual(
        move || events(&[working(""), event(other.clone()), event(chunk("result")), event(status(COMPLETED))]),
        |_| error(-32601, "no such method"),
        |_| task(COMPLETED, "result"),
    )
    .await;
    assert_eq!(words(&client(peer.url(), |_| {})).await, [COMPLETED, "result", COMPLETED]);
    assert_eq!(peer.story(), ["SendStreamingMessage", "GetTask"]);
}

#[tokio::test]
async fn what_another_task_says_was_not_told_of_this_one_and_begins_no_subscription() {
    let foreign = || {
        let mut other = says("m1");
        other["statusUpdate"]["taskId"] = json!("another");
        event(other)
    };
    let peer = usual(
        || events(&[working(""), event(chunk("one "))]),
        move |_| events(&[foreign(), event(chunk("three ")), event(chunk("four")), event(status(COMPLETED))]),
        |before| match before {
            0 => task(WORKING, "one two three "),
            _ => with_history(task(COMPLETED, "one two three four"), &["m1"]),
        },
    )
    .await;
    let expected = ["one ", "m1", "two three ", "four", "m1", COMPLETED];
    assert_eq!(words(&client(peer.url(), |_| {})).await, expected);
}

#[tokio::test]
async fn a_snapshot_without_the_message_of_its_state_does_not_take_it_back() {
    let peer = usual(
        || events(&[working(""), event(says("m1"))]),
        |_| error(-32601, "no such method"),
        |before| task(if before == 0 { WORKING } else { COMPLETED }, "one"),
    )
    .await;
    let polling = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    let expected = ["task TASK_STATE_WORKING", WORKING, "lost", "one", COMPLETED];
    assert_eq!(story(&polling).await.unwrap(), expected);
    // The same of the last state, which is confirmed with a snapshot.
    let mut end = says("the end");
    end["statusUpdate"]["status"]["state"] = json!(COMPLETED);
    let peer = usual(
        move || events(&[working(""), event(end.clone())]),
        |_| error(-32601, "no such method"),
        |_| task(COMPLETED, "one"),
    )
    .await;
    assert_eq!(words(&client(peer.url(), |_| {})).await, ["one", "the end", COMPLETED]);
}

#[tokio::test]
async fn a_task_that_is_forgotten_while_it_is_asked_after_leaves_a_gap() {
    let peer = agent(false, |asked, before| match asked.what().as_str() {
        "SendMessage" => result(json!({"task": task(WORKING, "")})),
        "GetTask" if before == 0 => result(task(WORKING, "one")),
        "GetTask" => error(-32001, "no such task"),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    let error = story(&client).await.unwrap_err();
    assert!(matches!(&error, ClientError::Gap(gap) if matches!(gap.missing, GapReason::TaskNotFound(_))), "{error}");
}

#[tokio::test]
async fn an_id_without_an_event_is_gone_on_after() {
    let peer = usual(
        || events(&[format!("id: first\n{}", working("")), "id: second\n\n".to_owned()]),
        |_| events(&[working("one"), event(status(COMPLETED))]),
        |_| task(COMPLETED, "one"),
    )
    .await;
    assert_eq!(words(&client(peer.url(), |_| {})).await, ["one", COMPLETED]);
    let last = peer.asked().iter().find_map(|asked| asked.header("last-event-id").map(str::to_owned));
    assert_eq!(last.as_deref(), Some("second"));
}

/// A chunk that replaces the artifact.
fn whole(text: &str, is_last: bool) -> Value {
    let mut whole = chunk(text);
    whole["artifactUpdate"]["append"] = json!(false);
    whole["artifactUpdate"]["lastChunk"] = json!(is_last);
    whole
}

#[tokio::test]
async fn a_first_chunk_that_was_overtaken_replaces_the_others() {
    let overtaken = || vec![working(""), event(chunk("two ")), event(whole("one ", false))];
    let rest = || vec![event(chunk("three")), event(status(COMPLETED))];
    let (with_task, without_task) = (working("one two "), event(chunk("two ")));
    // A connection that is lost right then hides the mistake: the artifact is what the agent had after its first chunk,
    // and the rest continues it.
    let continued = ["two ", "one ", "two ", "three", COMPLETED];
    // The next chunk does not continue it.
    let gap = format!("gap: {:?}", GapReason::Artifact("a".to_owned()));
    let unfit = ["two ", "one ", "three", &gap, "one two three", COMPLETED];
    let now = |state| task(state, if state == WORKING { "one two " } else { "one two three" });
    for (stream, subscription, first_look, expected) in [
        (overtaken(), [vec![with_task], rest()].concat(), COMPLETED, &continued[..]),
        (overtaken(), [vec![without_task], rest()].concat(), WORKING, &continued),
        ([overtaken(), rest()].concat(), vec![], COMPLETED, &unfit),
    ] {
        let peer = usual(
            move || events(&stream),
            move |_| events(&subscription),
            move |before| now(if before == 0 { first_look } else { COMPLETED }),
        )
        .await;
        assert_eq!(words(&client(peer.url(), |_| {})).await, expected, "{:?}", peer.story());
    }
}

#[tokio::test]
async fn a_task_that_was_overtaken_takes_its_artifact_back_to_what_it_was() {
    let overtaken = || vec![event(chunk("three ")), working("one two ")];
    let rest = || vec![event(chunk("four")), event(status(COMPLETED))];
    let gap = format!("gap: {:?}", GapReason::Artifact("a".to_owned()));
    let continued = ["one ", "two three ", "one two ", "three ", "four", COMPLETED];
    let unfit = ["one ", "two three ", "one two ", "four", &gap, "one two three four", COMPLETED];
    for (first, expected) in [(overtaken(), &continued[..]), ([overtaken(), rest()].concat(), &unfit)] {
        let second = [vec![working("one two three ")], rest()].concat();
        let peer = usual(
            || events(&[working(""), event(chunk("one "))]),
            move |before| events(if before == 0 { &first } else { &second }),
            |before| if before == 0 { task(WORKING, "one two three ") } else { task(COMPLETED, "one two three four") },
        )
        .await;
        assert_eq!(words(&client(peer.url(), |_| {})).await, expected, "{:?}", peer.story());
    }
}

#[tokio::test]
async fn that_a_chunk_was_the_last_is_told_once() {
    let whole = |is_last| event(whole("one", is_last));
    let peer = usual(
        move || events(&[working(""), whole(false), whole(true), whole(true), event(status(COMPLETED))]),
        |_| error(-32601, "no such method"),
        |_| task(COMPLETED, "one"),
    )
    .await;
    let client = client(peer.url(), |_| {});
    let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    let mut chunks = Vec::new();
    while let Some(update) = followed.next().await.unwrap() {
        if let Update::Event(event) = update
            && let StreamResponse::ArtifactUpdate(update) = *event
        {
            chunks.push(update.last_chunk);
        }
    }
    assert_eq!(chunks, [false, true]);
}
