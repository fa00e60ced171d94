//! At the root a caller's metadata picks the agent; what it means is the kernel's, that it arrives is ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard_a2a::card::AgentExtension;
use switchboard_engine::{
    Address, AgentName, Caller, Directory, Error, FixedDirectory, Hosted, Replies, Resolved, RoutingRequest,
};

use super::agents::{Obedient, manifest, usual};
use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

/// Says something to an agent that answers with a message, if it gets there.
async fn say(
    world: &World,
    dialect: TestDialect,
    address: &str,
    of_message: Value,
    of_request: Value,
) -> (u16, String) {
    let mut message = dialect.message("say");
    message["metadata"] = of_message;
    let parameters = json!({"message": message, "metadata": of_request});
    let reply = dialect.ask(world, address, Operation::Send(parameters)).reply().await;
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

#[tokio::test]
async fn a_target_in_either_metadata_picks_the_agent_at_the_root_only() {
    let world = World::start().await;
    for dialect in ALL {
        for (of_message, of_request) in
            [(json!({"targets": "talker"}), json!({})), (json!({}), json!({"targets": ["talker"]}))]
        {
            let (_, at_root) = say(&world, dialect, "", of_message.clone(), of_request.clone()).await;
            assert!(at_root.contains("said directly") && !at_root.contains("TASK_STATE"), "{dialect:?}: {at_root}");
            let (_, at_worker) = say(&world, dialect, "worker", of_message, of_request).await;
            assert!(
                at_worker.to_lowercase().contains("completed"),
                "{dialect:?} did not reach the worker: {at_worker}"
            );
        }
        let (_, refused) = say(&world, dialect, "", json!({"targets": "zed"}), json!({})).await;
        assert!(refused.contains("zed") && refused.contains("worker, talker, either"), "{dialect:?}: {refused}");
    }
}

#[tokio::test]
async fn metadata_of_the_wrong_type_is_named() {
    let world = World::start().await;
    for dialect in ALL {
        for (of_message, of_request, field) in [
            (json!({"skill": 7}), json!({}), "message.metadata.skill"),
            (json!({}), json!({"profile": []}), "metadata.profile"),
            (json!({"targets": {}}), json!({}), "message.metadata.targets"),
        ] {
            for agent in ["", "worker"] {
                let (status, refused) = say(&world, dialect, agent, of_message.clone(), of_request.clone()).await;
                assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?} {agent}: {refused}");
                assert!(refused.contains(field), "{dialect:?} {agent} does not name {field}: {refused}");
                assert!(!dialect.is_rpc() || refused.contains("-32602"), "{dialect:?} {agent}: {refused}");
            }
        }
    }
}

/// At the root, the one agent and the other in turn, as a directory whose weights move.
struct Alternating {
    agents: FixedDirectory,
    resolved: AtomicUsize,
}

impl Directory for Alternating {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        request: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let Some(request) = request else { return self.agents.resolve(address, caller, None) };
        let names = ["worker", "strict"];
        let name = names[self.resolved.fetch_add(1, Ordering::SeqCst) % names.len()];
        self.agents.resolve(&Address::Agent(name.into()), caller, Some(request))
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.find(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.agents()
    }
}

#[tokio::test]
async fn the_agent_that_gets_a_message_is_the_one_whose_requirements_were_checked() {
    const REQUIRED: &str = "https://ext.test/required/v1";
    let plan = Plan::default();
    let mut strict = manifest("strict", Replies::Task);
    strict.extensions =
        vec![AgentExtension { uri: REQUIRED.to_owned(), description: None, required: true, params: None }];
    let mut agents = usual(&plan.gate);
    agents.push(Hosted::new("strict", Obedient { manifest: strict, gate: plan.gate.clone() }));
    let agents = FixedDirectory::new(agents, Some("worker".into()));
    let directory = Arc::new(Alternating { agents, resolved: AtomicUsize::new(0) });
    let world = Plan { directory: Some(directory.clone()), ..plan }.start().await;
    let mut resolved = 0;
    for dialect in ALL {
        for stream in [false, true] {
            for is_refused in [false, true] {
                let parameters = json!({"message": dialect.message("hello")});
                let operation = if stream { Operation::Stream(parameters) } else { Operation::Send(parameters) };
                let reply = dialect.ask(&world, "", operation).reply().await;
                let body = String::from_utf8_lossy(&reply.body).into_owned();
                assert_eq!(body.contains(REQUIRED), is_refused, "{dialect:?} {stream}: {body}");
                assert_eq!(body.contains("hello back"), !is_refused, "{dialect:?} {stream}: {body}");
                resolved += 1;
                assert_eq!(directory.resolved.load(Ordering::SeqCst), resolved, "a message is resolved once");
            }
        }
    }
}
