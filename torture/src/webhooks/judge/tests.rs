//! The comparison finds every kind of fault that is planted, and nothing where there is none.

use serde_json::{Value, json};

use super::*;

fn status(state: &str, second: u32) -> Value {
    let status = json!({ "state": state, "timestamp": format!("2026-01-01T00:00:{second:02}.000Z") });
    json!({ "statusUpdate": { "taskId": "t", "status": status } })
}

fn chunk(text: &str, append: bool, last: bool) -> Value {
    let artifact = json!({ "artifactId": "a", "parts": [{ "text": text }] });
    let mut update = json!({ "taskId": "t", "artifact": artifact });
    if append {
        update["append"] = true.into();
    }
    if last {
        update["lastChunk"] = true.into();
    }
    json!({ "artifactUpdate": update })
}

fn log() -> Log {
    let bodies = [
        status("TASK_STATE_WORKING", 1),
        chunk("one ", false, false),
        chunk("two ", true, false),
        chunk("three", true, true),
        status("TASK_STATE_COMPLETED", 2),
    ];
    let events = (2..).zip(bodies).map(|(seq, body)| Event { id: format!("1.{seq}"), body });
    Log { task: "t".to_owned(), events: events.collect() }
}

/// Each delivery arrives and is accepted.
fn delivered(deliveries: &[(&str, Value)]) -> Vec<Entry> {
    let both = |(cursor, body): &(&str, Value)| {
        let id = format!("t:hook:{cursor}");
        [Entry::Arrived { id: id.clone(), body: body.to_string() }, Entry::Accepted { id }]
    };
    deliveries.iter().flat_map(both).collect()
}

fn whole() -> Vec<(&'static str, Value)> {
    let ids = ["1.2", "1.3", "1.4", "1.5", "1.6"];
    ids.into_iter().zip(log().events.into_iter().map(|event| event.body)).collect()
}

fn problems(deliveries: &[(&str, Value)]) -> Vec<String> {
    judge(&log(), Version::V1, &Start::First, &delivered(deliveries)).1
}

fn older(state: &str, second: u32, text: Option<&str>) -> Value {
    let stamp = format!("2026-01-01T00:00:{second:02}.000Z");
    let artifacts = text.map(|text| json!([{ "artifactId": "a", "parts": [{ "kind": "text", "text": text }] }]));
    let status = json!({ "state": state, "timestamp": stamp });
    json!({ "kind": "task", "id": "t", "status": status, "artifacts": artifacts })
}

#[test]
fn what_is_right_passes_whole_joined_and_repeated() {
    let tally = Tally { events: 5, deliveries: 5, requests: 5, after_acceptance: 0, merged: 0 };
    assert_eq!(judge(&log(), Version::V1, &Start::First, &delivered(&whole())), (tally, vec![]));
    let mut joined = whole();
    joined.splice(1..4, [("1.5", chunk("one two three", false, true))]);
    let tally = Tally { events: 5, deliveries: 3, requests: 3, after_acceptance: 0, merged: 2 };
    assert_eq!(judge(&log(), Version::V1, &Start::First, &delivered(&joined)), (tally, vec![]));
    let mut partly = whole();
    partly.splice(2..4, [("1.5", chunk("two three", true, true))]);
    assert_eq!(problems(&partly), [""; 0]);
    let mut repeated = delivered(&whole());
    let first = repeated[..2].to_vec();
    repeated.splice(2..2, first.clone());
    repeated.extend(first);
    let tally = Tally { events: 5, deliveries: 5, requests: 7, after_acceptance: 2, merged: 0 };
    assert_eq!(judge(&log(), Version::V1, &Start::First, &repeated), (tally, vec![]));
}

#[test]
fn a_dropped_delivery_is_found() {
    for place in 0..5 {
        let mut dropped = whole();
        dropped.remove(place);
        let found = problems(&dropped);
        assert!(!found.is_empty(), "without {place}");
    }
    assert_eq!(problems(&[]), ["was never told of 1.2, 1.3, 1.4, 1.5, 1.6"]);
    let mut without_end = whole();
    without_end.pop();
    assert_eq!(problems(&without_end), ["was never told of 1.6"]);
}

#[test]
fn a_swapped_delivery_is_found() {
    for place in 0..4 {
        let mut swapped = whole();
        swapped.swap(place, place + 1);
        let found = problems(&swapped).join("\n");
        assert!(found.contains("comes after a later one"), "{place}: {found}");
    }
}

#[test]
fn an_invented_delivery_is_found() {
    for cursor in ["2.4", "1.7", "1.1"] {
        let mut invented = whole();
        invented.insert(2, (cursor, status("TASK_STATE_WORKING", 1)));
        let found = problems(&invented).join("\n");
        assert!(found.contains("never committed"), "{cursor}: {found}");
    }
    let foreign = vec![Entry::Arrived { id: "u:hook:1.2".to_owned(), body: "{}".to_owned() }];
    let found = judge(&log(), Version::V1, &Start::First, &foreign).1.join("\n");
    assert!(found.contains("is not a delivery of task t"), "{found}");
    // A version 0.3 webhook did not ask for artifacts.
    let found = judge(&log(), Version::V03, &Start::First, &delivered(&whole()[1..2])).1.join("\n");
    assert!(found.contains("not asked for"), "{found}");
}

#[test]
fn an_altered_delivery_is_found() {
    for place in 0..5 {
        let mut altered = whole();
        let text = altered[place].1.to_string().replace("00:00:0", "00:00:1").replace("\"one ", "\"1 ");
        let text = text.replace("\"two ", "\"2 ").replace("\"three", "\"3");
        altered[place].1 = serde_json::from_str(&text).unwrap();
        let found = problems(&altered);
        assert_eq!(found.len(), 1, "{place}: {found:?}");
        assert!(found[0].contains("was committed"), "{found:?}");
    }
    for wrong in
        [chunk("one three", false, true), chunk("one two three", true, true), chunk("one two three", false, false)]
    {
        let mut joined = whole();
        joined.splice(1..4, [("1.5", wrong)]);
        assert_eq!(problems(&joined).len(), 1);
    }
}

#[test]
fn a_repetition_that_differs_is_found() {
    let mut entries = delivered(&whole());
    entries.push(Entry::Arrived { id: "t:hook:1.3".to_owned(), body: chunk("one  ", false, false).to_string() });
    let found = judge(&log(), Version::V1, &Start::First, &entries).1;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("came as"), "{found:?}");
}

#[test]
fn what_was_not_accepted_blocks_what_follows_and_is_not_given_up() {
    let mut entries = delivered(&whole());
    entries.remove(1);
    let found = judge(&log(), Version::V1, &Start::First, &entries).1;
    assert!(found.iter().any(|problem| problem.contains("was sent before t:hook:1.2 was accepted")), "{found:?}");
    assert!(found.iter().any(|problem| problem.contains("was given up")), "{found:?}");
}

#[test]
fn one_that_was_set_later_begins_in_time_and_leaves_nothing_out() {
    let judge_later = |floor: Option<&str>, deliveries: &[(&str, Value)]| {
        let start = Start::Later { floor: floor.map(|second| format!("2026-01-01T00:00:{second}.000Z")) };
        judge(&log(), Version::V1, &start, &delivered(deliveries)).1
    };
    for place in 0..5 {
        assert_eq!(judge_later(None, &whole()[place..]), [""; 0]);
        assert_eq!(judge_later(Some("01"), &whole()[place..]), [""; 0]);
    }
    let joined = [("1.5", chunk("two three", true, true)), whole()[4].clone()];
    assert_eq!(judge_later(Some("01"), &joined), [""; 0]);
    let found = judge_later(Some("00"), &whole()[4..]);
    assert_eq!(found, ["begins with 1.6 though 1.2 came after it was set"]);
    assert_eq!(judge_later(None, &[whole()[0].clone(), whole()[4].clone()]).len(), 1);
    let late = json!({ "task": { "id": "t", "status": { "state": "TASK_STATE_COMPLETED",
        "timestamp": "2026-01-01T00:00:02.000Z" },
        "artifacts": [{ "artifactId": "a", "parts": [{ "text": "one two three" }] }] } });
    assert_eq!(judge_later(Some("02"), &[("1.6", late.clone())]), [""; 0]);
    let text = late.to_string().replace("three", "");
    assert_eq!(judge_later(Some("02"), &[("1.6", serde_json::from_str(&text).unwrap())]).len(), 1);
}

#[test]
fn a_task_of_version_0_3_is_as_of_its_event() {
    let judge_older =
        |deliveries: &[(&str, Value)]| judge(&log(), Version::V03, &Start::First, &delivered(deliveries)).1;
    let right = [("1.2", older("working", 1, None)), ("1.6", older("completed", 2, Some("one two three")))];
    assert_eq!(judge_older(&right), [""; 0]);
    for wrong in [older("completed", 2, None), older("completed", 1, Some("one two three")), older("failed", 2, None)] {
        assert_eq!(judge_older(&[right[0].clone(), ("1.6", wrong)]).len(), 1);
    }
    // As it is now instead of as it was then.
    assert_eq!(judge_older(&[("1.2", older("working", 1, Some("one "))), right[1].clone()]).len(), 1);
    assert_eq!(judge_older(&right[1..]).len(), 1);
}
