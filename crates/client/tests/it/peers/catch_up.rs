//! What was missed is derived from how the agent has the task, and what a subscription repeats of that is passed over.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{StreamResponse, TaskState};
use switchboard_client::{CallContext, Client, GapReason, Update};

use super::losses::{message, words};
use super::script::{COMPLETED, WORKING, agent, chunk, error, event, events, result, status, task};
use super::streams::{usual, working};
use crate::world::{client, say};

/// Ids and parts of artifacts.
type Artifacts = Vec<(&'static str, Vec<Value>)>;

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({"text": text})).collect()
}

fn with_artifacts(state: &str, artifacts: &Artifacts) -> Value {
    let mut task = task(state, "");
    let artifacts = artifacts.iter().map(|(id, parts)| json!({"artifactId": id, "parts": parts}));
    task["artifacts"] = artifacts.collect();
    task
}

/// What is told of a task after chunks of its artifacts were, by how the agent has it at its end.
async fn told_after(chunks: Artifacts, now: Artifacts) -> Vec<String> {
    let peer = usual(
        move || {
            let chunks = chunks.iter().flat_map(|(id, parts)| parts.iter().map(move |part| (id, part)));
            let chunks = chunks.map(|(id, part)| {
                let mut update = chunk("");
                update["artifactUpdate"]["artifact"] = json!({"artifactId": id, "parts": [part]});
                event(update)
            });
            events(&[working("")].into_iter().chain(chunks).collect::<Vec<_>>())
        },
        |_| error(-32004, "it has ended"),
        move |_| with_artifacts(COMPLETED, &now),
    )
    .await;
    let mut told = words(&client(peer.url(), |_| {})).await;
    assert_eq!(told.pop().as_deref(), Some(COMPLETED));
    told
}

#[tokio::test]
async fn what_continues_the_chunks_is_told_and_anything_else_is_a_gap() {
    let gap = format!("gap: {:?}", GapReason::Artifact("a".to_owned()));
    let file = |bytes: &str| json!({"raw": bytes, "filename": "f"});
    let see = |files: &[&str]| [texts(&["see"]), files.iter().map(|bytes| file(bytes)).collect()].concat();
    for (before, now, news) in [
        (texts(&[]), texts(&["one"]), &["one"][..]),
        (texts(&["one"]), texts(&["one"]), &[]),
        (texts(&["one "]), texts(&["one two"]), &["two"]),
        (texts(&["one ", "two"]), texts(&["one two", " three"]), &[" three"]),
        (texts(&["one two"]), texts(&["one ", "two"]), &[]),
        (texts(&["one three"]), texts(&["one two"]), &[&gap, "one two"]),
        (texts(&["two one"]), texts(&["one two"]), &[&gap, "one two"]),
        (texts(&["one two three"]), texts(&["one two"]), &[&gap, "one two"]),
        (texts(&["one ", "one "]), texts(&["one two"]), &[&gap, "one two"]),
        // Other parts count as they are.
        (see(&["AQ=="]), see(&["AQ==", "Ag=="]), &[""]),
        (see(&["AQ=="]), see(&["Aw=="]), &[&gap, "see"]),
        (see(&["AQ=="]), [texts(&["seen"]), vec![file("AQ==")]].concat(), &[&gap, "seen"]),
    ] {
        let artifacts = |parts: &Vec<Value>| if parts.is_empty() { vec![] } else { vec![("a", parts.clone())] };
        let told = told_after(artifacts(&before), artifacts(&now)).await;
        assert_eq!(told[before.len()..], *news, "{before:?} {now:?}");
    }
    let (one, other) = (("a", texts(&["one"])), ("b", texts(&["other"])));
    assert_eq!(told_after(vec![one.clone()], vec![one.clone(), other.clone()]).await, ["one", "other"]);
    let forgotten = format!("gap: {:?}", GapReason::Forgotten("b".to_owned()));
    assert_eq!(told_after(vec![one.clone(), other], vec![one]).await, ["one", "other", &forgotten]);
}

#[tokio::test]
async fn a_status_is_news_by_its_message_and_not_by_its_time() {
    let with_status = |state: &str, said: Option<&str>, history: &[&str]| {
        let mut task = task(state, "");
        task["status"]["timestamp"] = json!("2026-01-02T03:04:05Z");
        task["status"]["message"] = said.map_or(Value::Null, message);
        task["history"] = history.iter().map(|id| message(id)).collect();
        task
    };
    let peer = agent(false, move |asked, before| match (asked.what().as_str(), before) {
        ("SendMessage", _) => result(json!({"task": task(WORKING, "")})),
        ("GetTask", 0) => result(with_status(WORKING, None, &[])),
        // Some agents have the status message in the history already.
        ("GetTask", 1) => result(with_status(WORKING, Some("m1"), &["m1"])),
        ("GetTask", 2) => result(with_status(WORKING, Some("m3"), &["m1", "m2"])),
        ("GetTask", _) => result(with_status(COMPLETED, Some("m4"), &["m1", "m2", "m3"])),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    assert_eq!(words(&client).await, ["m1", "m2", "m3", "m4", COMPLETED]);
    assert_eq!(peer.story().iter().filter(|what| *what == "GetTask").count(), 4);
}

/// The metadata of each status that is told, by its state.
async fn metadata_told(client: &Client) -> Vec<(TaskState, Value)> {
    let mut told = Vec::new();
    let mut stream = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    while let Some(update) = stream.next().await.unwrap() {
        if let Update::Event(event) = update
            && let StreamResponse::StatusUpdate(update) = *event
        {
            told.push((update.status.state, serde_json::to_value(&update.metadata).unwrap()));
        }
    }
    told
}

#[tokio::test]
async fn the_metadata_of_a_task_that_is_polled_come_with_its_status() {
    let with = |state: &str, said: Option<&str>, metadata: Value| {
        let mut task = task(state, "");
        task["status"]["message"] = said.map_or(Value::Null, message);
        task["metadata"] = metadata;
        task
    };
    let peer = agent(false, move |asked, before| match (asked.what().as_str(), before) {
        ("SendMessage", _) => result(json!({"task": with(WORKING, None, json!({"queue": 1}))})),
        ("GetTask", 0) => result(with(WORKING, Some("m1"), json!({"queue": 1}))),
        ("GetTask", 1) => result(with(WORKING, Some("m2"), json!({"queue": 0, "step": "test"}))),
        ("GetTask", _) => result(with(COMPLETED, Some("m3"), json!({"queue": 0, "usage": {"costUsd": 0.5}}))),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |peer| peer.limits.poll = Some(Duration::from_millis(1)));
    let expected = [
        // What has been told before is not told with every status.
        (TaskState::Working, Value::Null),
        (TaskState::Working, json!({"queue": 0, "step": "test"})),
        (TaskState::Completed, json!({"queue": 0, "usage": {"costUsd": 0.5}})),
    ];
    assert_eq!(metadata_told(&client).await, expected);
}

#[tokio::test]
async fn a_confirmed_end_has_the_metadata_of_its_event_and_of_its_task() {
    let peer = usual(
        || {
            let mut end = status(COMPLETED);
            end["statusUpdate"]["metadata"] = json!({"of": "the event", "reason": "done"});
            events(&[working("one"), event(end)])
        },
        |_| error(-32004, "it has ended"),
        |_| {
            let mut task = task(COMPLETED, "one");
            task["metadata"] = json!({"of": "the task", "usage": {"costUsd": 0.5}});
            task
        },
    )
    .await;
    let told = metadata_told(&client(peer.url(), |_| {})).await;
    let metadata = json!({"of": "the event", "reason": "done", "usage": {"costUsd": 0.5}});
    assert_eq!(told, [(TaskState::Completed, metadata)]);
}

/// What is told of the chunks of a subscription, the first of which may be whole, after a snapshot has come. At its end
/// the agent has `end`.
async fn told_of(before: &'static str, snapshot: &'static str, chunks: &[&str], is_whole: bool, end: String) -> String {
    let mut frames: Vec<Value> = chunks.iter().map(|text| chunk(text)).collect();
    frames[0]["artifactUpdate"]["append"] = json!(!is_whole);
    let frames: Vec<String> = frames.into_iter().chain([status(COMPLETED)]).map(event).collect();
    let peer = usual(
        move || match before {
            "" => events(&[working("")]),
            before => events(&[working(""), event(chunk(before))]),
        },
        move |_| events(&frames),
        move |asked| if asked == 0 { task(WORKING, snapshot) } else { task(COMPLETED, &end) },
    )
    .await;
    let mut told = words(&client(peer.url(), |_| {})).await;
    assert_eq!(told.pop().as_deref(), Some(COMPLETED), "{told:?}");
    let told = told.concat();
    told.strip_prefix(snapshot).unwrap_or_else(|| panic!("{told:?} after {snapshot:?}")).to_owned()
}

#[tokio::test]
async fn what_leads_up_to_the_end_of_a_snapshot_is_passed_over() {
    for (before, snapshot, chunks, told) in [
        ("A", "ABCD", &["C", "D", "E", "C"][..], "EC"),
        ("A", "ABCD", &["B", "C", "D"], ""),
        ("A", "ABCD", &["E", "B"], "EB"),
        // The snapshot has added nothing.
        ("A", "A", &["A", "B"], "AB"),
        ("", "one two", &["one", " two", " three"], " three"),
        ("A", "Axyxz", &["x", "z", "x"], "x"),
        ("A", "Aüü", &["ü", "x"], "x"),
        // It only looked like the snapshot.
        ("A", "ABCD", &["B", "E", "F"], "BEF"),
    ] {
        let heard = told_of(before, snapshot, chunks, false, format!("{snapshot}{told}")).await;
        assert_eq!(heard, told, "{before:?} {snapshot:?} {chunks:?}");
    }
    let new = told_of("", "one two", &["one", " two", " three"], true, "one two three".to_owned()).await;
    assert_eq!(new, " three", "a whole artifact that was new in the snapshot");
    let replaced = told_of("one", "one two", &["one"], true, "one".to_owned()).await;
    assert_eq!(replaced, "one", "it was replaced after the snapshot");
}

#[tokio::test]
async fn a_file_of_a_snapshot_is_passed_over_and_another_one_is_told() {
    let file = |bytes: &str| json!({"raw": bytes, "filename": "f"});
    let of_file = move |bytes: &str| {
        let mut update = chunk("");
        update["artifactUpdate"]["artifact"]["parts"] = json!([file(bytes)]);
        event(update)
    };
    let see = move |files: &[&str]| [texts(&["see"]), files.iter().map(|bytes| file(bytes)).collect()].concat();
    let peer = usual(
        || events(&[working(""), event(chunk("see"))]),
        move |_| events(&[of_file("AQ=="), of_file("Ag=="), event(status(COMPLETED))]),
        move |asked| match asked {
            0 => with_artifacts(WORKING, &vec![("a", see(&["AQ=="]))]),
            _ => with_artifacts(COMPLETED, &vec![("a", see(&["AQ==", "Ag=="]))]),
        },
    )
    .await;
    // A file has no words: the first is the one of the snapshot.
    assert_eq!(words(&client(peer.url(), |_| {})).await, ["see", "", "", COMPLETED]);
}
