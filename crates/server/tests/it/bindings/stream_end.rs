//! When streams end: by their dialect and the agent's switches, when the server stops, when a key is revoked.

use std::time::Duration;

use serde_json::json;
use switchboard_engine::{Hosted, Replies, Served, Switches};

use super::agents::{Obedient, manifest};
use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

async fn say(world: &World, text: &str, task: &str) {
    let params =
        json!({"message": TestDialect::RpcV1.answer(text, task), "configuration": {"returnImmediately": true}});
    let reply = TestDialect::RpcV1.ask(world, "", Operation::Send(params)).reply().await;
    TestDialect::RpcV1.sent_task(&reply);
}

#[tokio::test]
async fn a_question_ends_message_streams() {
    let world = World::start().await;
    for dialect in ALL {
        let frames = dialect.stream(&world, "ask").await.rest().await;
        assert_eq!(dialect.story(&frames), ["task submitted", "statusUpdate input-required"], "{dialect:?}");
        let (_, last) = dialect.event(&frames[1]);
        match dialect.is_v1() {
            true => assert!(last.get("final").is_none(), "{last}"),
            false => assert_eq!(last["final"], true, "{last}"),
        }
        // A replayed question ends a v0.3 stream again; the cursor after it goes on behind it.
        let id = last["taskId"].as_str().unwrap().to_owned();
        say(&world, "Rome", &id).await;
        let after = |frame: &super::client::Frame| {
            let cursor = frame.id.clone().unwrap();
            dialect.ask(&world, "", Operation::Subscribe(&id)).header("last-event-id", &cursor).events()
        };
        let told = dialect.story(&after(&frames[0]).await.rest().await);
        let to_the_end = ["statusUpdate working", "artifactUpdate", "statusUpdate completed"];
        match dialect.is_v1() {
            true => assert_eq!(told[1..], to_the_end, "{dialect:?}"),
            false => assert_eq!(told, ["statusUpdate input-required"], "{dialect:?}"),
        }
        assert_eq!(dialect.story(&after(&frames[1]).await.rest().await), to_the_end, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_v1_stream_outlives_waiting_for_credentials_and_a_v03_stream_does_not() {
    let world = World::start().await;
    for dialect in ALL {
        let mut events = dialect.stream(&world, "auth then ask").await;
        let first = events.next().await.unwrap();
        let id = dialect.event(&first).1["id"].as_str().unwrap().to_owned();
        let waiting = events.next().await.unwrap();
        assert_eq!(dialect.story(std::slice::from_ref(&waiting)), ["statusUpdate auth-required"]);
        if dialect.is_v1() {
            say(&world, "there you are", &id).await;
            let told = dialect.story(&events.rest().await);
            assert_eq!(told, ["statusUpdate working", "statusUpdate input-required"], "{dialect:?}");
        } else {
            assert_eq!(dialect.event(&waiting).1["final"], true);
            assert_eq!(events.next().await, None, "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn a_v1_subscription_outlives_a_question() {
    let world = World::start().await;
    for dialect in [TestDialect::RpcV1, TestDialect::RestV1] {
        let frames = dialect.stream(&world, "ask").await.rest().await;
        let id = dialect.event(&frames[0]).1["id"].as_str().unwrap().to_owned();
        let mut events = dialect.ask(&world, "", Operation::Subscribe(&id)).events().await;
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["task input-required"]);
        say(&world, "Rome", &id).await;
        let told = dialect.story(&events.rest().await);
        assert_eq!(told, ["statusUpdate working", "artifactUpdate", "statusUpdate completed"]);
    }
    // A snapshot closes nothing, in v0.3 neither.
    let dialect = TestDialect::RpcV03;
    let frames = dialect.stream(&world, "ask").await.rest().await;
    let id = dialect.event(&frames[0]).1["id"].as_str().unwrap().to_owned();
    let mut events = dialect.ask(&world, "", Operation::Subscribe(&id)).events().await;
    assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["task input-required"]);
    say(&world, "Rome", &id).await;
    assert_eq!(dialect.story(&events.rest().await).last().unwrap(), "statusUpdate completed");
}

#[tokio::test]
async fn switches_keep_streams_open() {
    let plan = Plan::default();
    let agent = Obedient { manifest: manifest("worker", Replies::Task), gate: plan.gate.clone() };
    let switches = Switches { v03_close_on_interrupt: false, close_on_input_required: false, ..Switches::default() };
    let plan = Plan { agents: Some(vec![Hosted::serving("worker", Served::new(agent).switches(switches))]), ..plan };
    let world = plan.start().await;
    for dialect in ALL {
        let mut events = dialect.stream(&world, "ask").await;
        let id = dialect.event(&events.next().await.unwrap()).1["id"].as_str().unwrap().to_owned();
        let asked = events.next().await.unwrap();
        assert_eq!(dialect.story(std::slice::from_ref(&asked)), ["statusUpdate input-required"]);
        if !dialect.is_v1() {
            assert_eq!(dialect.event(&asked).1["final"], false, "it is not the last");
        }
        say(&world, "Rome", &id).await;
        assert_eq!(dialect.story(&events.rest().await).last().unwrap(), "statusUpdate completed", "{dialect:?}");
    }
}

#[tokio::test]
async fn a_v03_agent_may_be_switched_to_return_at_once() {
    let plan = Plan::default();
    let agent = Obedient { manifest: manifest("worker", Replies::Task), gate: plan.gate.clone() };
    let switches = Switches { v03_blocking: false, ..Switches::default() };
    let plan = Plan { agents: Some(vec![Hosted::serving("worker", Served::new(agent).switches(switches))]), ..plan };
    let world = plan.start().await;
    let dialect = TestDialect::RpcV03;
    let task = dialect.sent_task(&dialect.send(&world, "wait").reply().await);
    assert_eq!(task["status"]["state"], "submitted");
    for configuration in [json!({}), json!({"blocking": null}), json!({"blocking": false})] {
        let params = json!({"message": dialect.message("wait"), "configuration": configuration});
        let task = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
        assert_eq!(task["status"]["state"], "submitted", "{configuration} does not say to wait");
    }
    world.gate.add_permits(5);
    let params = json!({"message": dialect.message("wait"), "configuration": {"blocking": true}});
    let task = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
    assert_eq!(task["status"]["state"], "completed");
    world.gate.add_permits(1);
    let task = TestDialect::RpcV1.sent_task(&TestDialect::RpcV1.send(&world, "wait").reply().await);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "the switch is for v0.3 only");
}

#[tokio::test]
async fn agents_that_do_not_stream_say_so() {
    let plan = Plan::default();
    let mut quiet = manifest("worker", Replies::Task);
    quiet.streaming = false;
    let agent = Obedient { manifest: quiet, gate: plan.gate.clone() };
    let world = Plan { agents: Some(vec![Hosted::new("worker", agent)]), ..plan }.start().await;
    for dialect in ALL {
        let stream = Operation::Stream(json!({"message": dialect.message("hello")}));
        let code = dialect.error(&dialect.ask(&world, "", stream).reply().await);
        assert!(code.1 == -32004 || code.2 == "UNSUPPORTED_OPERATION", "{dialect:?}: {code:?}");
    }
    let asked = TestDialect::RestV1.sent_task(&TestDialect::RestV1.send(&world, "ask").reply().await);
    let subscribe = Operation::Subscribe(asked["id"].as_str().unwrap());
    let reply = TestDialect::RestV1.ask(&world, "", subscribe).reply().await;
    assert_eq!(TestDialect::RestV1.error(&reply).2, "UNSUPPORTED_OPERATION");
    // Nothing was begun by the refused streams.
    assert_eq!(world.get("/tasks").version("1.0").reply().await.json()["totalSize"], json!(1));
}

#[tokio::test]
async fn a_stopping_server_asks_readers_of_tasks_that_do_not_end_to_come_back() {
    let mut plan = Plan::default();
    plan.settings.drain = Duration::from_millis(50);
    let world = plan.start().await;
    let mut streams = Vec::new();
    for dialect in ALL {
        let mut events = dialect.stream(&world, "hold").await;
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["task submitted"]);
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["statusUpdate working"]);
        streams.push(events);
    }
    world.stop.cancel();
    for events in streams {
        let frames = events.rest().await;
        assert_eq!(frames.len(), 1, "{frames:?}");
        assert_eq!(frames[0].retry.as_deref(), Some("1000"));
    }
}

#[tokio::test]
async fn a_stopping_server_lets_readers_see_the_end_of_tasks_that_end_in_time() {
    let world = World::start().await;
    let mut streams = Vec::new();
    for dialect in ALL {
        let mut events = dialect.stream(&world, "gate").await;
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["task submitted"]);
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["statusUpdate working"]);
        streams.push((dialect, events));
    }
    let mut asked = TestDialect::RestV1.stream(&world, "ask").await;
    let id = asked.next().await.unwrap().data["task"]["id"].as_str().unwrap().to_owned();
    asked.next().await.unwrap();
    let mut parked = TestDialect::RestV1.ask(&world, "", Operation::Subscribe(&id)).events().await;
    parked.next().await.unwrap();
    world.stop.cancel();
    while world.get("/readyz").reply().await.status != 503 {}
    let refused = TestDialect::RestV1.send(&world, "hello").reply().await;
    assert_eq!(TestDialect::RestV1.error(&refused).0, 503);
    world.gate.add_permits(12);
    for (dialect, events) in streams {
        let frames = events.rest().await;
        let told = ["artifactUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate completed"];
        assert_eq!(dialect.story(&frames), told, "{dialect:?}");
        assert!(frames.iter().all(|frame| frame.retry.is_none()), "{dialect:?}: there is nothing to come back for");
    }
    let frames = parked.rest().await;
    assert_eq!(frames.iter().filter_map(|frame| frame.retry.as_deref()).collect::<Vec<_>>(), ["1000"]);
}

#[tokio::test]
async fn a_revoked_key_ends_its_streams_and_no_others() {
    let (plan, keys) = Plan::with_keys();
    let world = plan.start().await;
    let dialect = TestDialect::RpcV1;
    let open = async |key: &str| {
        let stream = Operation::Stream(json!({"message": dialect.message("hold")}));
        let mut events = dialect.ask(&world, "", stream).key(key).events().await;
        let id = dialect.event(&events.next().await.unwrap()).1["id"].as_str().unwrap().to_owned();
        assert_eq!(dialect.story(&[events.next().await.unwrap()]), ["statusUpdate working"]);
        (id, events)
    };
    let (_, mut anns) = open("ann").await;
    let (id, bobs) = open("bob").await;
    keys.revoke("ann");
    assert_eq!(anns.next().await, None);
    dialect.ask(&world, "", Operation::Cancel(&id)).key("bob").reply().await;
    assert_eq!(dialect.story(&bobs.rest().await), ["statusUpdate canceled"]);
}

#[tokio::test]
async fn a_quiet_stream_sends_comments() {
    let mut plan = Plan::default();
    plan.options.ping = Duration::from_millis(20);
    let world = plan.start().await;
    let mut events = TestDialect::RestV1.stream(&world, "hold").await;
    while events.next().await.unwrap().comment.as_deref() != Some("ping") {}
    // Also before the first frame, while the agent has not decided yet.
    let stream = Operation::Stream(json!({"message": TestDialect::RestV1.message("wait, then say")}));
    let mut events = TestDialect::RestV1.ask(&world, "either", stream).events().await;
    assert_eq!(events.next().await.unwrap().comment.as_deref(), Some("ping"));
    world.gate.add_permits(1);
    let frames = events.rest().await;
    let told: Vec<_> = frames.iter().filter(|frame| frame.comment.is_none()).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].data["message"]["parts"][0]["text"], "said late");
}
