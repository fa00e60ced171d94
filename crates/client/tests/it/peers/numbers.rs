//! Agents that number their events: what is left out on purpose, and what was lost on the way.

use serde_json::{Value, json};
use switchboard_a2a::StreamResponse;
use switchboard_a2a::extension::RESUMPTION;
use switchboard_client::{Client, Context, Followed, Update};

use super::script::{
    Asked, COMPLETED, Peer, Reply, WORKING, card, chunk, error, event, events, events_then_silence, json as answer,
    status, task,
};
use crate::world::{client, say};

const ASKS: &str = "TASK_STATE_INPUT_REQUIRED";
const WAITS: &str = "TASK_STATE_AUTH_REQUIRED";

/// A peer with numbers: its stream, and its subscriptions by the last event seen.
async fn numbered(
    stream: impl Fn() -> Reply + Send + Sync + 'static,
    subscribe: impl Fn(Option<&str>) -> Reply + Send + Sync + 'static,
) -> Peer {
    Peer::start(move |asked: &Asked, _| {
        if asked.line().contains("/.well-known/") {
            let mut card = card(true);
            card["capabilities"]["extensions"].as_array_mut().unwrap().push(json!({"uri": RESUMPTION}));
            return answer(200, &card);
        }
        match asked.what().as_str() {
            "SendStreamingMessage" => stream(),
            "SubscribeToTask" => subscribe(asked.header("last-event-id")),
            _ => error(-32601, "no such method"),
        }
    })
    .await
}

/// An event with its number, and the one before it if some are left out.
fn at(number: u64, after: Option<u64>, frame: Value) -> String {
    let after = after.map_or_else(String::new, |after| format!("after: {after}\n"));
    format!("{after}id: 1.{number}\n{}", event(frame))
}

fn first() -> String {
    at(1, None, json!({"task": task(WORKING, "")}))
}

async fn told(mut followed: Followed) -> Vec<String> {
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
    told(client.stream(&Context::default(), say("hello")).await.unwrap()).await
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
async fn a_task_that_begins_to_wait_is_not_waited_for() {
    for state in [ASKS, WAITS] {
        let frames = [first(), at(2, None, status(state))];
        let again = frames.clone();
        let peer = numbered(move || events_then_silence(&frames), move |_| events_then_silence(&again)).await;
        let client = client(peer.url(), |_| {});
        assert_eq!(sent(&client).await, ["task TASK_STATE_WORKING", state]);
        let followed = client.subscribe(&Context::default(), "t".into()).await.unwrap();
        assert_eq!(told(followed).await, ["task TASK_STATE_WORKING", state]);
    }
}

#[tokio::test]
async fn a_task_that_asks_already_is_told_to_whoever_subscribes_and_gone_on_with_by_whoever_answers() {
    let asking = at(4, None, json!({"task": task(ASKS, "")}));
    let answered = [asking.clone(), at(5, None, status(WORKING)), at(6, None, status(COMPLETED))];
    let peer = numbered(move || events(&answered), move |_| events_then_silence(std::slice::from_ref(&asking))).await;
    let client = client(peer.url(), |_| {});
    assert_eq!(sent(&client).await, [&format!("task {ASKS}"), WORKING, COMPLETED]);
    let followed = client.subscribe(&Context::default(), "t".into()).await.unwrap();
    assert_eq!(told(followed).await, [format!("task {ASKS}")]);
}
