//! Every operation by every way in, where it goes well.

use serde_json::{Value, json};

use super::client::scrub;
use super::dialects::{ALL, Operation, TestDialect};
use super::world::World;

/// The finished task of `hello` in each dialect, written down by hand.
fn finished(dialect: TestDialect) -> Value {
    match dialect {
        TestDialect::RpcV1 | TestDialect::RestV1 => json!({
            "id": "id0", "contextId": "id1",
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "time", "message": {
                "messageId": "id3", "contextId": "id1", "taskId": "id0", "role": "ROLE_AGENT",
                "parts": [{"text": "hello back"}]
            }},
            "artifacts": [{"artifactId": "id2", "name": "greeting", "parts": [{"text": "hello back"}]}],
            "history": [{
                "messageId": "m1", "contextId": "id1", "taskId": "id0", "role": "ROLE_USER",
                "parts": [{"text": "hello"}]
            }],
        }),
        TestDialect::RpcV03 => json!({
            "kind": "task", "id": "id0", "contextId": "id1",
            "status": {"state": "completed", "timestamp": "time", "message": {
                "kind": "message", "messageId": "id3", "contextId": "id1", "taskId": "id0", "role": "agent",
                "parts": [{"kind": "text", "text": "hello back"}]
            }},
            "artifacts": [{"artifactId": "id2", "name": "greeting", "parts": [{"kind": "text", "text": "hello back"}]}],
            "history": [{
                "kind": "message", "messageId": "m1", "contextId": "id1", "taskId": "id0", "role": "user",
                "parts": [{"kind": "text", "text": "hello"}]
            }],
        }),
        TestDialect::RestV03 => json!({
            "id": "id0", "contextId": "id1",
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "time", "message": {
                "messageId": "id3", "contextId": "id1", "taskId": "id0", "role": "ROLE_AGENT",
                "content": [{"text": "hello back"}]
            }},
            "artifacts": [{"artifactId": "id2", "name": "greeting", "parts": [{"text": "hello back"}]}],
            "history": [{
                "messageId": "m1", "contextId": "id1", "taskId": "id0", "role": "ROLE_USER",
                "content": [{"text": "hello"}]
            }],
        }),
    }
}

/// Object members in one order, so that ids are numbered alike on both sides.
fn ordered(task: &Value) -> Value {
    let mut members = vec![json!(["id", task["id"]]), json!(["contextId", task["contextId"]])];
    let mut task = task.clone();
    task.sort_all_objects();
    let rest = task.as_object().unwrap().iter().filter(|(key, _)| *key != "id" && *key != "contextId");
    members.extend(rest.map(|(key, value)| json!([key, value])));
    scrub(&Value::Array(members))
}

#[tokio::test]
async fn metadata_of_the_server_itself_is_dropped_from_what_callers_send() {
    let world = World::start().await;
    for dialect in ALL {
        for (sent, kept) in [
            (json!({"switchboard/reason": "forged", "tag": 1, "switchboard/x": {}}), json!({"tag": 1})),
            (json!({"switchboard/question": {"reviewer": "caller"}}), Value::Null),
            (json!({"switchboard": 1, "my/switchboard/x": 2}), json!({"switchboard": 1, "my/switchboard/x": 2})),
        ] {
            let mut message = dialect.message("metadata");
            let parts = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
            message["metadata"] = sent.clone();
            message[parts][0]["metadata"] = sent.clone();
            let params = json!({"message": message, "metadata": sent});
            let task = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
            assert_eq!(task["history"][0]["metadata"], kept, "{dialect:?}: the message's");
            assert_eq!(task["history"][0][parts][0]["metadata"], kept, "{dialect:?}: the part's");
            let read = task["status"]["message"][parts][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(read).unwrap(), kept, "{dialect:?}: the request's");
        }
    }
}

#[tokio::test]
async fn a_message_is_sent_and_its_task_read_again() {
    let world = World::start().await;
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
        assert_eq!(ordered(&task), ordered(&finished(dialect)), "{dialect:?}");
        let id = task["id"].as_str().unwrap();
        for agent in ["", "worker"] {
            let again = dialect.ask(&world, agent, Operation::Get(id, None)).reply().await;
            assert_eq!(dialect.result(&again), task, "{dialect:?} at {agent:?}");
        }
    }
}

#[tokio::test]
async fn answers_are_the_stored_bytes_in_their_envelope() {
    let world = World::start().await;
    let text = |reply: super::client::Reply| String::from_utf8(reply.body.to_vec()).unwrap();
    let send = TestDialect::RpcV1.send(&world, "hello").replace("\"id\":7", r#""id":"a\u0041 \" 1""#);
    let sent = send.reply().await;
    let id = sent.json()["result"]["task"]["id"].as_str().unwrap().to_owned();
    let stored = text(TestDialect::RestV1.ask(&world, "", Operation::Get(&id, None)).reply().await);
    let envelope = format!(r#"{{"jsonrpc":"2.0","id":"a\u0041 \" 1","result":{{"task":{stored}}}}}"#);
    assert_eq!(text(sent), envelope);
    let got = text(TestDialect::RpcV1.ask(&world, "", Operation::Get(&id, None)).reply().await);
    assert_eq!(got, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{stored}}}"#));
    let subscribe = TestDialect::RestV1.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", "none");
    let frames = text(subscribe.reply().await);
    let (cursor, frame) = frames.split_once('\n').unwrap();
    assert!(cursor.starts_with("id: "), "{frames}");
    assert_eq!(frame, format!("data: {{\"task\":{stored}}}\n\n"));
}

#[tokio::test]
async fn a_message_is_streamed_to_its_end() {
    let world = World::start().await;
    for dialect in ALL {
        let events = dialect.stream(&world, "hello").await;
        assert_eq!(events.headers["cache-control"], "no-cache");
        assert_eq!(events.headers["x-accel-buffering"], "no");
        assert_eq!(events.headers["a2a-version"], if dialect.is_v1() { "1.0" } else { "0.3" });
        let frames = events.rest().await;
        let told = ["task submitted", "statusUpdate working", "artifactUpdate", "statusUpdate completed"];
        assert_eq!(dialect.story(&frames), told, "{dialect:?}");
        assert!(frames.iter().all(|frame| frame.id.is_some()), "{frames:?}");
        let (_, first) = dialect.event(&frames[0]);
        let (_, last) = dialect.event(&frames[3]);
        assert_eq!(last["taskId"], first["id"]);
        match dialect.is_v1() {
            true => assert!(last.get("final").is_none(), "{last}"),
            false => assert_eq!(last["final"], true, "{last}"),
        }
        if !dialect.is_v1() {
            assert_eq!(dialect.event(&frames[1]).1["final"], false);
        }
    }
}

#[tokio::test]
async fn a_running_task_is_subscribed_to_and_canceled() {
    let world = World::start().await;
    for dialect in ALL {
        let mut own = dialect.stream(&world, "hold").await;
        let first = own.next().await.unwrap();
        let id = dialect.event(&first).1["id"].as_str().unwrap().to_owned();
        assert_eq!(dialect.story(&[own.next().await.unwrap()]), ["statusUpdate working"]);
        let mut other = dialect.ask(&world, "", Operation::Subscribe(&id)).events().await;
        let snapshot = other.next().await.unwrap();
        assert_eq!(dialect.story(std::slice::from_ref(&snapshot)), ["task working"], "{dialect:?}");
        let canceled = dialect.ask(&world, "worker", Operation::Cancel(&id)).reply().await;
        let task = dialect.result(&canceled);
        assert_eq!(task["status"]["state"], dialect.state("canceled"), "{dialect:?}");
        assert_eq!(task["metadata"]["switchboard/reason"], "canceled_by_caller");
        let (own, other) = (own.rest().await, other.rest().await);
        assert_eq!(dialect.story(&own), ["statusUpdate canceled"]);
        assert_eq!(own, other, "every reader gets the same frames");
    }
}

#[tokio::test]
async fn a_sender_that_does_not_wait_gets_the_task_at_once() {
    let world = World::start().await;
    for dialect in ALL {
        let configuration =
            if dialect.is_v1() { json!({"returnImmediately": true}) } else { json!({"blocking": false}) };
        let params = json!({"message": dialect.message("wait"), "configuration": configuration});
        let task = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
        assert_eq!(task["status"]["state"], dialect.state("submitted"), "{dialect:?}");
        let events = dialect.ask(&world, "", Operation::Subscribe(task["id"].as_str().unwrap())).events().await;
        world.gate.add_permits(1);
        let told = dialect.story(&events.rest().await);
        assert_eq!(told, ["task submitted", "artifactUpdate", "statusUpdate completed"], "{dialect:?}");
    }
}

#[tokio::test]
async fn v03_rest_with_a_configuration_that_does_not_say_does_not_wait() {
    let world = World::start().await;
    let params = |dialect: TestDialect| json!({"message": dialect.message("wait"), "configuration": {"acceptedOutputModes": []}});
    let task = TestDialect::RestV03
        .sent_task(&TestDialect::RestV03.ask(&world, "", Operation::Send(params(TestDialect::RestV03))).reply().await);
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
    world.gate.add_permits(2);
    let task = TestDialect::RpcV03
        .sent_task(&TestDialect::RpcV03.ask(&world, "", Operation::Send(params(TestDialect::RpcV03))).reply().await);
    assert_eq!(task["status"]["state"], "completed");
}

#[tokio::test]
async fn history_is_cut_to_the_length_asked_for() {
    let world = World::start().await;
    for dialect in ALL {
        let asked = dialect.sent_task(&dialect.send(&world, "ask").reply().await);
        let id = asked["id"].as_str().unwrap();
        let params =
            json!({"message": dialect.answer("Rome", id), "configuration": {"historyLength": 1, "blocking": true}});
        let task = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
        assert_eq!(task["status"]["state"], dialect.state("completed"));
        let spoken = |task: &Value| {
            let history = task.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
            let parts = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
            history.iter().map(|message| message[parts][0]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(spoken(&task), ["Rome"], "{dialect:?}");
        let read = async |length| dialect.result(&dialect.ask(&world, "", Operation::Get(id, length)).reply().await);
        let all = ["ask", "which city?", "Rome"];
        assert_eq!(spoken(&read(None).await), all, "{dialect:?}");
        assert_eq!(spoken(&read(Some(9)).await), all, "{dialect:?}");
        assert_eq!(spoken(&read(Some(2)).await), all[1..], "{dialect:?}");
        // Zero is none in v1.0 and unset in v0.3.
        let none = read(Some(0)).await;
        match dialect.is_v1() {
            true => assert!(none.get("history").is_none(), "{none}"),
            false => assert_eq!(spoken(&none), all),
        }
    }
}
