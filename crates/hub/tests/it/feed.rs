//! `/api/feed`: every item once and in order, to those who may see it.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::size::Count;

use crate::running::{Frame, Running, START, Stream, folder};

#[tokio::test]
async fn a_stream_has_every_item_of_what_a_key_may_see_and_nothing_else() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let mut all = running.stream("/api/feed", "vic", &[]).await;
    let mut of_echo = running.stream("/api/feed?view=full", "eva", &[]).await;
    let mut own = running.stream("/api/feed?topic=task.%23&topic=outcome.*.*", "bob", &[]).await;
    let mut foreign = running.stream("/api/feed", "cat", &[]).await;

    let message = json!({ "parts": [{ "text": "hello" }], "metadata": { "skill": "acting" } });
    let task = running.send_with("bob", "echo", message, &["X-Correlation-Id: c-1", "X-Parent-Id: p-1"]).await;
    running.send("bob", "other", "fail").await;
    running.send("cat", "echo", "hi").await;

    let first = all.next().await;
    assert_eq!((first.event.as_str(), &first.data["topic"]), ("task.received.echo", &json!("task.received.echo")));
    assert_eq!(first.data["payload"]["message"]["parts"][0]["text"], "hello");
    assert_eq!(first.data["id"], json!(first.id));
    assert_eq!((&first.data["correlationId"], &first.data["parentId"]), (&json!("c-1"), &json!("p-1")));
    let source = json!({ "agent": "echo", "caller": "bob", "taskId": task["id"], "contextId": task["contextId"] });
    assert_eq!(first.data["source"], source);
    let hello = ["task.artifact.echo", "task.completed.echo", "outcome.echo.acting"];
    let failed = ["task.received.other", "task.failed.other", "outcome.other.-"];
    let hi = ["task.received.echo", "task.artifact.echo", "task.completed.echo", "outcome.echo.-"];
    let expected: Vec<&str> = [&hello[..], &failed, &hi].concat();
    assert_eq!(all.events(expected.len()).await, expected);
    // A key of one agent and a key without a role do not see what lies between.
    let expected: Vec<&str> = [&["task.received.echo"], &hello[..], &hi].concat();
    assert_eq!(of_echo.events(expected.len()).await, expected);
    let expected: Vec<&str> = [&["task.received.echo"], &hello[..], &failed].concat();
    assert_eq!(own.events(expected.len()).await, expected);
    assert_eq!(foreign.events(hi.len()).await, hi);
    running.stop().await;
}

#[tokio::test]
async fn a_reader_goes_on_after_its_cursor_and_is_told_what_it_may_not_read_back() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let task = running.send("bob", "echo", "one").await;
    running.send("bob", "other", "two").await;
    let (status, page) = running.get("/api/feed?from=oldest&pageSize=3", "vic").await;
    let topics = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap().to_owned()).collect()
    };
    // What the terminal event means stays with it.
    let one = ["task.received.echo", "task.artifact.echo", "task.completed.echo", "outcome.echo.-"];
    assert_eq!((status, topics(&page)), (200, one.map(str::to_owned).to_vec()));
    let next = page["next"].as_str().unwrap();
    let (_, second) = running.get(&format!("/api/feed?from={next}&topic=outcome.%23"), "vic").await;
    assert_eq!(topics(&second), ["outcome.other.-"]);
    let (_, last) = running.get(&format!("/api/feed?from={}", second["next"].as_str().unwrap()), "vic").await;
    assert_eq!((topics(&last), &last["next"]), (Vec::new(), &second["next"]));

    // A key without a role reads back its own tasks by name, and no others. What was written before the start is not in memory.
    running.stop().await;
    let running = Running::in_folder(data.path()).await;
    let id = task["id"].as_str().unwrap();
    let (_, now) = running.get("/api/feed", "vic").await;
    let back = format!("Last-Event-ID: {}", page["items"][0]["id"].as_str().unwrap());
    let mut by_task = running.stream(&format!("/api/feed?task={id}&from=now"), "bob", &[&back]).await;
    assert_eq!(by_task.events(3).await, one[1..]);
    let context = task["contextId"].as_str().unwrap();
    let mut by_context = running.stream(&format!("/api/feed?context={context}&from=oldest"), "bob", &[]).await;
    assert_eq!(by_context.events(4).await, one);
    // The same as pages, forward and backward, whole and brief.
    let (_, of_task) = running.get(&format!("/api/feed?task={id}&from=oldest&pageSize=2"), "bob").await;
    assert_eq!(topics(&of_task), one[..2]);
    let more = format!("/api/feed?task={id}&from={}", of_task["next"].as_str().unwrap());
    assert_eq!(topics(&running.get(&more, "bob").await.1), one[2..]);
    let (_, backward) = running.get(&format!("/api/feed?context={context}&before=now&pageSize=3"), "bob").await;
    let newest_first: Vec<&str> = one[1..].iter().rev().copied().collect();
    assert_eq!(topics(&backward), newest_first);
    let more = format!("/api/feed?context={context}&before={}", backward["next"].as_str().unwrap());
    assert_eq!(topics(&running.get(&more, "bob").await.1), one[..1]);
    let (_, brief) = running.get(&format!("/api/feed?task={id}&from=oldest&view=brief"), "bob").await;
    assert_eq!((topics(&brief), &brief["items"][0]["payload"]), (vec![one[3].to_owned()], &Value::Null));
    assert_eq!(running.get(&format!("/api/feed?task={id}&from=oldest"), "cat").await.1["items"], json!([]));
    // What is not for it is a gap once, and then it is at the end.
    let (_, gap) = running.get("/api/feed?from=oldest", "bob").await;
    assert_eq!(topics(&gap), ["gap"]);
    let (_, end) = running.get(&format!("/api/feed?from={}", gap["next"].as_str().unwrap()), "bob").await;
    assert_eq!((topics(&end), &end["next"]), (Vec::new(), &gap["next"]));
    let foreign = running.stream(&format!("/api/feed?task={id}&from=oldest"), "cat", &[]).await;
    let mut plain = running.stream("/api/feed?from=oldest", "bob", &[]).await;
    assert_eq!(plain.next().await.event, "gap");
    running.send("bob", "echo", "three").await;
    assert_eq!(plain.events(4).await, one);
    running.send_with("cat", "echo", json!({ "parts": [{ "text": "x" }] }), &[]).await;
    let (_, own) = running.get(&format!("/api/feed?from={}", now["next"].as_str().unwrap()), "cat").await;
    assert_eq!(topics(&own), one);
    running.stop().await;
    // Nothing of the foreign task has come: the stream ends without a frame.
    assert_eq!(foreign.rest().await, Vec::<String>::new());
}

#[tokio::test]
async fn lines_of_the_journal_come_in_order_and_their_topics_are_guarded() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let line = json!({ "topic": "release.published", "payload": { "version": 2 }, "correlationId": "r-2" });
    let (status, answer) = running.post("/publish", "ann", &line).await;
    assert_eq!((status, &answer["success"]), (202, &json!(true)), "{answer}");
    let (status, refusal) = running.post("/publish", "vic", &line).await;
    assert_eq!((status, &refusal["code"]), (403, &json!("FORBIDDEN")), "{refusal}");
    for topic in ["task.x", "alert.x.fired", "audit.key", "agent.skill.request", "autonomous.outcome.x", "cron.x"] {
        let (status, refusal) = running.post("/publish", "ann", &json!({ "topic": topic })).await;
        assert_eq!((status, &refusal["code"]), (403, &json!("FORBIDDEN")), "{topic}");
    }
    for wrong in [json!({}), json!({ "topic": "a b" }), json!({ "topic": 1 }), json!({ "topic": "a", "payload": [] })] {
        let (status, refusal) = running.post("/publish", "ann", &wrong).await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{wrong}");
    }
    let (_, page) = running.get("/api/feed?from=oldest&correlation=r-2", "vic").await;
    let item = &page["items"][0];
    assert_eq!((&item["id"], &item["topic"]), (&answer["data"]["id"], &json!("release.published")));
    assert_eq!((&item["payload"]["version"], &item["source"]["caller"]), (&json!(2), &json!("ann")));
    // A line that names no agent is not for keys of some agents.
    let (_, page) = running.get("/api/feed?from=oldest", "eva").await;
    assert_eq!(page["items"], json!([]));
    // After a start it is not in memory, and a key without a role goes on behind it.
    running.stop().await;
    let running = Running::in_folder(data.path()).await;
    let (_, gap) = running.get("/api/feed?from=oldest", "bob").await;
    assert_eq!(gap["items"][0]["topic"], "gap");
    let (_, end) = running.get(&format!("/api/feed?from={}", gap["next"].as_str().unwrap()), "bob").await;
    assert_eq!((&end["items"], &end["next"]), (&json!([]), &gap["next"]));

    let message = json!({ "message": "the disk is full", "urgency": "urgent" });
    for number in 0..60 {
        let (status, answer) = running.post("/api/operator/message", "bob", &message).await;
        assert_eq!(status, 202, "{number}: {answer}");
    }
    let (status, refusal) = running.post("/api/operator/message", "bob", &message).await;
    assert_eq!((status, refusal["error"].as_str().unwrap().contains("hub.messages.perMinute")), (429, true));
    assert_eq!(running.post("/api/operator/message", "cat", &message).await.0, 202);
    running.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(running.post("/api/operator/message", "bob", &message).await.0, 202);
    let long = json!({ "message": "x".repeat(8 * 1024 + 1) });
    let (status, refusal) = running.post("/api/operator/message", "bob", &long).await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("message")));
    // The topic counts too, whatever its length.
    for bytes in [8 * 1024, 70 * 1024] {
        let long = json!({ "message": "x", "topic": "y".repeat(bytes) });
        let (status, refusal) = running.post("/api/operator/message", "bob", &long).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("topic")), "{refusal}");
        assert!(refusal["problems"][0]["right"].as_str().unwrap().contains("hub.messages.size"), "{refusal}");
    }
    let (_, page) = running.get("/api/feed?from=oldest&topic=operator.message&pageSize=100", "vic").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 62);
    running.stop().await;
}

#[tokio::test]
async fn items_are_found_by_what_earlier_hubs_call_them_and_name_their_callers() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let asked = json!({ "parts": [{ "text": "ask" }], "metadata": { "skill": "moving" } });
    let task = running.send_with("nan", "echo", asked, &["X-Correlation-Id: c-1"]).await;
    let answer = json!({ "taskId": task["id"], "contextId": task["contextId"], "parts": [{ "text": "go on" }] });
    running.send_with("nan", "echo", answer, &[]).await;
    let found = async |pattern: &str| {
        let (_, page) = running.get(&format!("/api/feed?from=oldest&topic={pattern}"), "vic").await;
        let topics = page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap().to_owned());
        topics.collect::<Vec<_>>()
    };
    assert_eq!(found("flow.item.created").await, ["task.received.echo"]);
    assert_eq!(found("flow.item.completed").await, ["task.completed.echo"]);
    assert_eq!(found("hitl.*.c-1").await, ["inbox.opened.echo", "inbox.decided.echo"]);
    assert_eq!(found("hitl.*.c-2").await, Vec::<String>::new());
    assert_eq!(found("autonomous.outcome.nan.*").await.len(), 1);
    assert_eq!(found("agent.skill.progress.c-1").await, ["task.working.echo", "task.artifact.echo"]);
    let (_, page) = running.get("/api/feed?from=oldest&topic=inbox.decided.%23&topic=outcome.%23", "vic").await;
    let (decided, outcome) = (&page["items"][0], &page["items"][1]);
    let name = json!("Nan's laptop");
    assert_eq!((&decided["source"]["caller"], &decided["source"]["callerName"]), (&json!("nan"), &name), "{page}");
    assert_eq!((&decided["payload"]["by"], &decided["payload"]["byName"]), (&json!("nan"), &name), "{page}");
    assert_eq!((&outcome["payload"]["actor"], &outcome["payload"]["actorName"]), (&json!("nan"), &name), "{page}");
    running.stop().await;
}

/// The next frame, a quarter of a second after the other until it is there; how many of them there were is counted.
async fn while_time_passes(running: &Running, stream: &mut Stream, quarters: &mut usize) -> Frame {
    let mut next = std::pin::pin!(stream.next());
    loop {
        tokio::select! {
            biased;
            frame = &mut next => return frame,
            // A request of its own gives the stream one time to be written.
            _ = running.get("/api/tasks?pageSize=1", "vic") => {
                running.clock.advance(Duration::from_millis(250));
                *quarters += 1;
            }
        }
    }
}

#[tokio::test]
async fn a_brief_stream_has_the_newest_item_of_a_task_four_times_a_second_at_most() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let mut brief = running.stream("/api/feed?view=brief", "vic", &[]).await;
    let mut full = running.stream("/api/feed", "vic", &[]).await;
    running.send("bob", "echo", "steps 50").await;
    let mut items = 1;
    while full.next().await.event != "outcome.echo.-" {
        items += 1;
    }
    assert!(items > 50, "{items}");
    let (mut frames, mut quarters) = (Vec::new(), 0);
    loop {
        let frame = while_time_passes(&running, &mut brief, &mut quarters).await;
        assert_eq!(frame.data["payload"], Value::Null, "{frame:?}");
        frames.push(frame.event.clone());
        if frame.event == "outcome.echo.-" {
            break;
        }
    }
    assert!(frames.len() <= quarters + 1 && frames.len() < items, "{quarters} quarters of a second: {frames:?}");
    // Of two tasks each one's own.
    running.send("bob", "echo", "steps 3").await;
    running.send("bob", "other", "steps 3").await;
    let mut last = Vec::new();
    while last.len() < 2 {
        let frame = while_time_passes(&running, &mut brief, &mut quarters).await;
        if frame.event.starts_with("outcome.") {
            last.push(frame.event);
        }
    }
    assert_eq!(last, ["outcome.echo.-", "outcome.other.-"]);
    running.stop().await;
}

#[tokio::test]
async fn a_stream_too_many_is_refused_with_a_code_and_the_time_to_wait() {
    let data = folder();
    let one = |config: &mut Config| config.limits.streams_per_caller = Count::new(1);
    let running = Running::with(data.path(), SimulatedClock::at(START), one, Settings::default()).await;
    let open = running.stream("/api/feed", "bob", &[]).await;
    let (status, refusal) = running.ask("GET /api/feed", "bob", &[], "").await;
    assert_eq!((status, &refusal["code"]), (503, &json!("UNAVAILABLE")), "{refusal}");
    assert!(refusal["error"]["message"].is_string(), "{refusal}");
    // Pages need none, and nobody else is concerned.
    assert_eq!(running.get("/api/feed?from=now", "bob").await.0, 200);
    let _other = running.stream("/api/feed", "vic", &[]).await;
    drop(open);
    running.stop().await;
}
