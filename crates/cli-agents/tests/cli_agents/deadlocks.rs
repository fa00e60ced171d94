//! Agents that call each other while one of them has what the other would wait for.

use switchboard_a2a::{ContextId, Message, Role, Task, TaskState};
use switchboard_cli_agents::{ServerAccess, Settings, WorktreePolicy};
use switchboard_engine::{Address, AgentDelegation, Delegates, IncomingMessage, Switches};

use crate::fixture::Fixture;
use crate::harness::*;

/// Notes its token and works until it may end.
const CALLER: &str = r#"
hear; note "token-$(ls "$NOTES" | grep -c '^token-')" "$SWITCHBOARD_TASK_TOKEN"
note delegates "$SWITCHBOARD_DELEGATES"; text on; await end; finish ok
"#;

fn harness(
    fixture: &Fixture,
    change: impl Fn(Settings) -> Settings,
    reviewer: impl Fn(Settings) -> Settings,
) -> Harness {
    let delegates = ["coder", "reviewer"].map(|entry| entry.parse().unwrap());
    let delegation = AgentDelegation { delegates: Delegates::Only(delegates.to_vec()), ..AgentDelegation::default() };
    let switches = Switches { delegation, ..Switches::default() };
    let server = || Some(ServerAccess { url: "http://127.0.0.1:1".to_owned(), certificate: None });
    let settings = || Settings { server: server(), ..fixture.settings(CALLER) };
    let second = Settings { name: "reviewer".to_owned(), ..reviewer(settings()) };
    Harness::with_reviewer(fixture, change(settings()), switches, second)
}

/// Sends what the program with this token would send, and waits until the child ends or says that it works.
async fn call(harness: &Harness, token: &str, agent: &str, context: Option<&str>) -> Task {
    let (caller, _) = harness.engine.task_caller(token).expect("its run goes on");
    let message = Message { context_id: context.map(ContextId::from), ..Message::text(Role::User, "look at this") };
    let incoming = IncomingMessage {
        address: Address::Agent(agent.into()),
        message,
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: None,
        trace: None,
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: true,
    };
    let routed = harness.engine.route(&caller, incoming).await.unwrap();
    let sent = harness.engine.send(routed).await.unwrap();
    loop {
        let reading = harness.engine.get(&Address::Root, &caller, sent.id()).await.unwrap();
        let task = reading.into_task().unwrap();
        if task.status.state.is_terminal() || text(&task, "assistant-response").is_some() {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

#[track_caller]
fn assert_deadlock(task: &Task, place: &str) {
    assert_eq!((task.status.state, reason(task).as_str()), (TaskState::Rejected, "rejected/delegation_deadlock"));
    let told = status_text(task);
    assert!(told.contains(&format!("it would wait for {place} until task")), "{told}");
}

#[test]
fn an_agent_that_would_wait_for_the_repository_of_its_caller_is_told_at_once() {
    let fixture = Fixture::new();
    fixture.repository();
    let harness = harness(&fixture, |settings| settings, |settings| settings);
    harness.run(async {
        let parent = harness.start("go").await;
        let token = harness.noted(&fixture, "token-0").await;
        assert_eq!(harness.noted(&fixture, "delegates").await, "coder reviewer");
        // No time passes on this clock: they would wait for ever.
        for agent in ["coder", "reviewer"] {
            let child = call(&harness, &token, agent, None).await;
            assert_deadlock(&child, "this repository");
            assert!(status_text(&child).contains(&format!("the chain is coder → {agent}")), "{}", status_text(&child));
        }
        fixture.allow("end");
        assert_eq!(harness.ended(&parent).await.status.state, TaskState::Completed, "the caller goes on");
    });
}

#[test]
fn an_agent_that_works_in_a_copy_does_not_wait_for_its_caller() {
    let fixture = Fixture::new();
    fixture.repository();
    let copy = |settings| Settings { worktree: WorktreePolicy::Remove, ..settings };
    let harness = harness(&fixture, |settings| settings, copy);
    harness.run(async {
        let parent = harness.start("go").await;
        let token = harness.noted(&fixture, "token-0").await;
        let child = call(&harness, &token, "reviewer", None).await;
        assert_eq!(child.status.state, TaskState::Working, "{}", status_text(&child));
        fixture.allow("end");
        harness.ended(&parent).await;
    });
}

#[test]
fn an_agent_that_would_wait_for_the_conversation_of_its_caller_is_told_at_once() {
    let fixture = Fixture::new();
    let free = |settings| Settings { repo_lock: false, ..settings };
    let harness = harness(&fixture, free, free);
    harness.run(async {
        let parent = harness.start("go").await;
        for (number, agent) in ["reviewer", "coder"].into_iter().enumerate() {
            let token = harness.noted(&fixture, &format!("token-{number}")).await;
            let context = format!("conversation-{number}");
            let child = call(&harness, &token, agent, Some(&context)).await;
            assert_eq!(child.status.state, TaskState::Working, "{}", status_text(&child));
        }
        let token = harness.noted(&fixture, "token-2").await;
        let child = call(&harness, &token, "reviewer", Some("conversation-0")).await;
        assert_deadlock(&child, "this conversation");
        fixture.allow("end");
        harness.ended(&parent).await;
    });
}
