//! Conversations of several turns.

use serde_json::{Value, json};
use switchboard_engine::Settings;

use super::dialects::{ALL, Operation};
use super::world::{Plan, World};

#[tokio::test]
async fn an_answer_goes_on_where_the_question_stopped() {
    let world = World::start().await;
    for dialect in ALL {
        let asked = dialect.sent_task(&dialect.send(&world, "ask").reply().await);
        assert_eq!(asked["status"]["state"], dialect.state("input-required"), "{dialect:?}");
        let (id, context) = (asked["id"].as_str().unwrap(), asked["contextId"].as_str().unwrap());
        let mut answer = dialect.answer("Rome", id);
        answer["contextId"] = context.into();
        let done =
            dialect.sent_task(&dialect.ask(&world, "", Operation::Send(json!({"message": answer}))).reply().await);
        assert_eq!((&done["id"], &done["contextId"]), (&asked["id"], &asked["contextId"]));
        assert_eq!(done["status"]["state"], dialect.state("completed"));
        assert_eq!(done["artifacts"][0]["parts"][0]["text"], "city: Rome", "{done}");
    }
}

#[tokio::test]
async fn the_stream_of_an_answer_begins_with_the_task_as_of_the_answer() {
    let world = World::start().await;
    for dialect in ALL {
        let asked = dialect.sent_task(&dialect.send(&world, "auth").reply().await);
        assert_eq!(asked["status"]["state"], dialect.state("auth-required"), "{dialect:?}");
        let message = json!({"message": dialect.answer("here", asked["id"].as_str().unwrap())});
        let frames = dialect.ask(&world, "", Operation::Stream(message)).events().await.rest().await;
        let told = dialect.story(&frames);
        assert_eq!(told[1..], ["statusUpdate working", "artifactUpdate", "statusUpdate completed"], "{dialect:?}");
        let (name, task) = dialect.event(&frames[0]);
        assert_eq!(name, "task");
        let said = task["history"].as_array().unwrap().last().unwrap().to_string();
        assert!(said.contains("here"), "{said}");
    }
}

#[tokio::test]
async fn endings_keep_their_reason() {
    let world = World::start().await;
    for dialect in ALL {
        for (text, state, reason, said) in
            [("fail", "failed", "agent_error", "it broke"), ("reject", "rejected", "rejected", "will not")]
        {
            let task: Value = dialect.sent_task(&dialect.send(&world, text).reply().await);
            assert_eq!(task["status"]["state"], dialect.state(state), "{dialect:?}");
            assert_eq!(task["metadata"]["switchboard/reason"], reason);
            assert!(task["status"]["message"].to_string().contains(said), "{task}");
        }
    }
}

#[tokio::test]
async fn the_stream_of_a_queued_task_begins_with_the_task_and_its_queue_position() {
    let settings = Settings { running_tasks: 1, ..Settings::default() };
    let world = Plan { settings, ..Plan::default() }.start().await;
    for dialect in ALL {
        let mut running = dialect.stream(&world, "wait").await;
        let (_, first) = dialect.event(&running.next().await.unwrap());
        assert_eq!(first["metadata"]["switchboard/queuePosition"], Value::Null, "{dialect:?}");
        let mut queued = dialect.stream(&world, "hello").await;
        let (name, task) = dialect.event(&queued.next().await.unwrap());
        assert_eq!((name.as_str(), &task["status"]["state"]), ("task", &dialect.state("submitted").into()));
        assert_eq!(task["metadata"]["switchboard/queuePosition"], 1, "{dialect:?}");
        let subscribe = Operation::Subscribe(task["id"].as_str().unwrap());
        let mut subscribed = dialect.ask(&world, "", subscribe).events().await;
        let (_, shown) = dialect.event(&subscribed.next().await.unwrap());
        assert_eq!(shown["metadata"]["switchboard/queuePosition"], 1, "{dialect:?}");
        world.gate.add_permits(1);
        running.rest().await;
        let told = dialect.story(&queued.rest().await);
        assert_eq!(told, ["statusUpdate working", "artifactUpdate", "statusUpdate completed"], "{dialect:?}");
        assert_eq!(dialect.story(&subscribed.rest().await), told);
    }
}
