//! Conversations of several turns.

use serde_json::{Value, json};

use super::dialects::{ALL, Operation};
use super::world::World;

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
