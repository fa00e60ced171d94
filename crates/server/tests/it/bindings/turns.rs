//! Conversations of several turns.

use serde_json::{Value, json};

use super::doors::{ALL, Operation};
use super::world::World;

#[tokio::test]
async fn an_answer_goes_on_where_the_question_stopped() {
    let world = World::start().await;
    for door in ALL {
        let asked = door.sent_task(&door.send(&world, "ask").reply().await);
        assert_eq!(asked["status"]["state"], door.state("input-required"), "{door:?}");
        let (id, context) = (asked["id"].as_str().unwrap(), asked["contextId"].as_str().unwrap());
        let mut answer = door.answer("Rome", id);
        answer["contextId"] = context.into();
        let done = door.sent_task(&door.ask(&world, "", Operation::Send(json!({"message": answer}))).reply().await);
        assert_eq!((&done["id"], &done["contextId"]), (&asked["id"], &asked["contextId"]));
        assert_eq!(done["status"]["state"], door.state("completed"));
        assert_eq!(done["artifacts"][0]["parts"][0]["text"], "city: Rome", "{done}");
    }
}

#[tokio::test]
async fn the_stream_of_an_answer_begins_with_the_task_as_of_the_answer() {
    let world = World::start().await;
    for door in ALL {
        let asked = door.sent_task(&door.send(&world, "auth").reply().await);
        assert_eq!(asked["status"]["state"], door.state("auth-required"), "{door:?}");
        let message = json!({"message": door.answer("here", asked["id"].as_str().unwrap())});
        let frames = door.ask(&world, "", Operation::Stream(message)).events().await.rest().await;
        let told = door.story(&frames);
        assert_eq!(told[1..], ["statusUpdate working", "artifactUpdate", "statusUpdate completed"], "{door:?}");
        let (name, task) = door.event(&frames[0]);
        assert_eq!(name, "task");
        let said = task["history"].as_array().unwrap().last().unwrap().to_string();
        assert!(said.contains("here"), "{said}");
    }
}

#[tokio::test]
async fn endings_keep_their_reason() {
    let world = World::start().await;
    for door in ALL {
        for (text, state, reason, said) in
            [("fail", "failed", "agent_error", "it broke"), ("reject", "rejected", "rejected", "will not")]
        {
            let task: Value = door.sent_task(&door.send(&world, text).reply().await);
            assert_eq!(task["status"]["state"], door.state(state), "{door:?}");
            assert_eq!(task["metadata"]["switchboard/reason"], reason);
            assert!(task["status"]["message"].to_string().contains(said), "{task}");
        }
    }
}
