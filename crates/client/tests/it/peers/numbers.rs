//! Agents that number their events: what is left out on purpose, and what was lost on the way.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use switchboard_a2a::StreamResponse;
use switchboard_a2a::extension::RESUMPTION;
use switchboard_client::{CallContext, Client, TaskStream, Update};

use super::script::{
    Asked, COMPLETED, Peer, Reply, WORKING, card, chunk, error, event, events, events_then_silence, json as answer,
    result, status, task,
};
use crate::world::{client, say};

const ASKS: &str = "TASK_STATE_INPUT_REQUIRED";
const WAITS: &str = "TASK_STATE_AUTH_REQUIRED";

/// A peer with numbers: its stream, and its subscriptions by the last event seen.
async fn numbered(
    stream: impl Fn() -> Reply + Send + Sync + 'static,
    subscribe: impl Fn(Option<&str>) -> Reply + Send + Sync + 'static,
) -> Peer {
    numbered_with(stream, subscribe, |_| error(-32601, "no such method")).await
}

/// The same with a task, by how often it was asked for.
async fn numbered_with(
    stream: impl Fn() -> Reply + Send + Sync + 'static,
    subscribe: impl Fn(Option<&str>) -> Reply + Send + Sync + 'static,
    get: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Peer {
    Peer::start(move |asked: &Asked, before| {
        if asked.line().contains("/.well-known/") {
            let mut card = card(true);
            card["capabilities"]["extensions"].as_array_mut().unwrap().push(json!({"uri": RESUMPTION}));
            return answer(200, &card);
        }
        match asked.what().as_str() {
            "SendStreamingMessage" => stream(),
            "SubscribeToTask" => subscribe(asked.header("last-event-id")),
            "GetTask" => get(before),
            _ => error(-32601, "no such method"),
        }
    })
    .await
}

/// An event with its number, and the one before it if some are left out.
fn at(number: u64, after: Option<u64>, frame: Value) -> String {
    with_id(&format!("1.{number}"), after, frame)
}

fn with_id(id: &str, after: Option<u64>, frame: Value) -> String {
    let after = after.map_or_else(String::new, |after| format!("after: {after}\n"));
    format!("{after}id: {id}\n{}", event(frame))
}

fn first() -> String {
    at(1, None, json!({"task": task(WORKING, "")}))
}

async fn told(mut followed: TaskStream) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(update) = followed.next().await.unwrap() {
        told.push(match update {
            Update::Event(event) => match *event {
                StreamResponse::Task(task) => format!("task {}", task.status.state.as_str()),
                StreamResponse::StatusUpdate(update) => update.status.state.as_str().to_owned(),
                StreamResponse::ArtifactUpdate(update) => update.artifact.parts[0].as_text().unwrap().to_owned(),
                StreamResponse::Message(message) => message.joined_text(),
            },
            other => format!("{other:?}"),
        });
    }
    told
}

async fn sent(client: &Client) -> Vec<String> {
    told(client.stream(&CallContext::default(), say("hello")).await.unwrap()).await
}

#[tokio::test]
async fn what_is_left_out_on_purpose_is_neither_waited_for_nor_asked_for() {
    let frames = [first(), at(4, Some(1), chunk("one ")), at(5, None, chunk("two")), at(9, Some(5), status(COMPLETED))];
    let peer = numbered(move || events_then_silence(&frames), |_| Reply::Closes).await;
    let told = sent(&client(peer.url(), |_| {})).await;
    assert_eq!(told, ["task TASK_STATE_WORKING", "one ", "two", COMPLETED]);
    assert_eq!(peer.story(), ["SendStreamingMessage"]);
}

#[tokio::test]
async fn what_was_lost_is_asked_for() {
    let cases = [
        // Nothing says that 2 is left out.
        [first(), at(3, None, chunk("two")), at(6, Some(3), status(COMPLETED))],
        // 4 and 5 are left out, and 3 is lost as well.
        [first(), at(2, None, chunk("one ")), at(6, Some(3), status(COMPLETED))],
    ];
    for lossy in cases {
        let whole = [at(2, None, chunk("one ")), at(3, None, chunk("two")), at(6, Some(3), status(COMPLETED))];
        let peer = numbered(
            move || events(&lossy),
            move |last| match last {
                Some("1.1") => events(&whole),
                Some("1.2") => events(&whole[1..]),
                other => panic!("{other:?}"),
            },
        )
        .await;
        let told = sent(&client(peer.url(), |_| {})).await;
        assert_eq!(told, ["task TASK_STATE_WORKING", "one ", "two", COMPLETED]);
        assert_eq!(peer.story(), ["SendStreamingMessage", "SubscribeToTask"]);
    }
}

#[tokio::test]
async fn an_id_says_whether_its_event_is_next_known_or_behind_a_hole() {
    let (next, known, hole) = (&["x", COMPLETED][..], &[COMPLETED][..], &[][..]);
    for (id, after, told_after_the_task) in [
        ("1.5", None, next),
        // A restart that has lost nothing, and one that has.
        ("2.5", None, next),
        ("2.3", None, hole),
        ("1.4", None, known),
        ("1.3", None, known),
        ("1.6", None, hole),
        // 5 and 6 are left out on purpose; or 5 was lost.
        ("1.7", Some(4), next),
        ("2.7", Some(4), next),
        ("1.7", Some(5), hole),
        // A snapshot may be of an event that is left out.
        ("1.7", Some(3), next),
        ("1.4", Some(2), known),
        ("2.4", Some(2), hole),
        // What is no number counts as a lost event.
        ("7", None, hole),
        ("a.b", None, hole),
        ("1.", None, hole),
        (".1", None, hole),
        ("1.-2", None, hole),
        ("1.2.3", None, hole),
        ("99999999999999999999.1", None, hole),
    ] {
        let mut frames = vec![at(4, None, json!({"task": task(WORKING, "")})), with_id(id, after, chunk("x"))];
        // It would lead past the hole.
        frames.extend((told_after_the_task != hole).then(|| with_id("2.99", Some(4), status(COMPLETED))));
        let peer = numbered(move || events_then_silence(&frames), |_| Reply::Closes).await;
        let client = client(peer.url(), |peer| peer.retries.max_retries = 1);
        let mut followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        let mut told = Vec::new();
        // A lost event is asked for, and the connection for that is lost.
        while let Ok(Some(Update::Event(event))) = followed.next().await {
            told.push(match *event {
                StreamResponse::ArtifactUpdate(_) => "x",
                StreamResponse::StatusUpdate(_) => COMPLETED,
                _ => WORKING,
            });
        }
        assert_eq!(told.first(), Some(&WORKING), "{id}");
        assert_eq!(told[1..], *told_after_the_task, "{id} {after:?}");
        assert!(told_after_the_task == hole || peer.story().len() == 1, "{id} {after:?}: {:?}", peer.story());
    }
}

#[tokio::test]
async fn an_event_that_was_overtaken_lets_the_others_pass_in_order() {
    let frames = [first(), at(3, None, chunk("two ")), at(2, None, chunk("one ")), at(4, None, status(COMPLETED))];
    let peer = numbered(move || events_then_silence(&frames), |_| Reply::Closes).await;
    let told = sent(&client(peer.url(), |_| {})).await;
    assert_eq!(told, ["task TASK_STATE_WORKING", "one ", "two ", COMPLETED]);
    assert_eq!(peer.story(), ["SendStreamingMessage"]);
}

#[tokio::test]
async fn an_agent_with_another_hole_every_time_is_not_asked_for_ever() {
    let asked = AtomicU64::new(5);
    let peer = numbered(
        || events_then_silence(&[first(), at(5, None, chunk("x"))]),
        move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            events(&[at(number, None, chunk("x")), at(number + 1, None, status(COMPLETED))])
        },
    )
    .await;
    let told = sent(&client(peer.url(), |_| {})).await;
    assert!(told.iter().any(|told| told.contains("nothing came between 1.1 and 1.8")), "{told:?}");
    assert_eq!(told.last().unwrap(), COMPLETED);
    assert_eq!(peer.story().iter().filter(|what| *what == "SubscribeToTask").count(), 3);
}

/// An agent that has lost 3 itself, and says the rest whenever it is asked.
fn holed() -> [String; 4] {
    [first(), at(2, None, chunk("one ")), at(4, None, chunk("three")), at(5, None, status(COMPLETED))]
}

#[tokio::test]
async fn what_cannot_be_had_by_its_number_is_told_from_the_task() {
    let get = |_| result(task(COMPLETED, "one two three"));
    let peer = numbered_with(|| events(&holed()), |_| events(&holed()[2..]), get).await;
    let told = sent(&client(peer.url(), |_| {})).await;
    assert_eq!(told, ["task TASK_STATE_WORKING", "one ", "two three", COMPLETED]);
    assert_eq!(peer.story(), ["SendStreamingMessage", "SubscribeToTask", "GetTask"]);
}

#[tokio::test]
async fn what_cannot_be_had_at_all_is_a_gap_and_the_end_is_compared() {
    // It never says how the task is, or says it only at the end.
    let never: fn(usize) -> Reply = |_| error(-32601, "no such method");
    let late: fn(usize) -> Reply = |before| match before {
        0 => result(task(WORKING, "one two three")),
        _ => result(task(COMPLETED, "one two three")),
    };
    let lost = |told: &String| told.contains("nothing came between 1.2 and 1.4");
    for (get, is_late) in [(never, false), (late, true)] {
        let peer = numbered_with(|| events(&holed()), |_| events(&holed()[2..]), get).await;
        let told = sent(&client(peer.url(), |_| {})).await;
        assert_eq!((&told[..2], &told[3]), (&["task TASK_STATE_WORKING".into(), "one ".into()][..], &"three".into()));
        assert!(lost(&told[2]), "{told:?}");
        assert_eq!(told.last().unwrap(), COMPLETED);
        assert!(told[4].contains("Gap"), "{told:?}");
        assert_eq!(told.contains(&"one two three".to_owned()), is_late, "{told:?}");
    }
}

#[tokio::test]
async fn every_one_of_many_losses_is_owned_up_to() {
    let mut frames = vec![first()];
    frames.extend((1..=8).map(|number| at(number * 2 + 1, None, chunk("x"))));
    frames.push(at(18, None, status(COMPLETED)));
    let again = frames.clone();
    let peer = numbered(move || events(&frames), move |_| events(&again)).await;
    let told = sent(&client(peer.url(), |peer| peer.retries.max_retries = 20)).await;
    let lost = told.iter().filter(|told| told.contains("nothing came between")).count();
    assert_eq!(lost, 8, "{told:?}");
}

#[tokio::test]
async fn a_number_whose_event_was_cut_off_is_not_gone_on_after() {
    let whole = [at(2, None, chunk("one ")), at(3, None, chunk("two")), at(4, None, status(COMPLETED))];
    let cut = [first(), at(2, None, chunk("one ")), "id: 1.3\n".to_owned()];
    let peer = numbered(
        move || events(&cut),
        move |last| match last {
            Some("1.2") => events(&whole[1..]),
            other => panic!("{other:?}"),
        },
    )
    .await;
    let told = sent(&client(peer.url(), |_| {})).await;
    assert_eq!(told.iter().filter(|told| !told.starts_with("Lost")).count(), 4, "{told:?}");
}

#[tokio::test]
async fn a_number_without_an_event_counts() {
    let silent = "after: 1\nid: 1.6\n\n".to_owned();
    let frames = [first(), silent, at(7, None, status(COMPLETED))];
    let peer = numbered(move || events_then_silence(&frames), |_| Reply::Closes).await;
    assert_eq!(sent(&client(peer.url(), |_| {})).await, ["task TASK_STATE_WORKING", COMPLETED]);
}

#[tokio::test]
async fn a_task_that_begins_to_wait_is_not_waited_for() {
    for state in [ASKS, WAITS] {
        let frames = [first(), at(2, None, status(state))];
        let again = frames.clone();
        let peer = numbered(move || events_then_silence(&frames), move |_| events_then_silence(&again)).await;
        let client = client(peer.url(), |_| {});
        assert_eq!(sent(&client).await, ["task TASK_STATE_WORKING", state]);
        let followed = client.subscribe(&CallContext::default(), "t".into()).await.unwrap();
        assert_eq!(told(followed).await, ["task TASK_STATE_WORKING", state]);
    }
}

#[tokio::test]
async fn a_task_that_asks_already_is_told_to_a_subscriber_and_goes_on_with_an_answer() {
    let asking = at(4, None, json!({"task": task(ASKS, "")}));
    let answered = [asking.clone(), at(5, None, status(WORKING)), at(6, None, status(COMPLETED))];
    let peer = numbered(move || events(&answered), move |_| events_then_silence(std::slice::from_ref(&asking))).await;
    let client = client(peer.url(), |_| {});
    assert_eq!(sent(&client).await, [&format!("task {ASKS}"), WORKING, COMPLETED]);
    let followed = client.subscribe(&CallContext::default(), "t".into()).await.unwrap();
    assert_eq!(told(followed).await, [format!("task {ASKS}")]);
}
