//! Tasks that are stopped: in mid-run, while they ask, while they wait; nothing of them is left.

use std::time::Duration;

use serde_json::json;
use switchboard_a2a::TaskState;
use switchboard_cli_agents::Settings;
use switchboard_engine::fold::USAGE_KEY;

use crate::fixture::{Fixture, lives};
use crate::harness::*;

#[test]
fn a_task_is_stopped_in_mid_run_with_everything_it_started() {
    let fixture = Fixture::new();
    let program = "trap '' TERM; hear; (trap '' TERM; sleep 1000; sleep 1000) & note one $!
        setsid sh -c 'trap \"\" TERM; exec >/dev/null; sleep 1000; sleep 1000' & note two $!
        note three $$; text Working; while :; do sleep 1000; done";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let task = harness.cancel(&id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        assert_eq!(reason(&task), "canceled_by_caller");
        for name in ["one", "two", "three"] {
            assert!(!lives(&fixture.noted(name).unwrap()), "{name} lives on");
        }
        assert_eq!(harness.children.running(), 0);
    });
}

#[test]
fn a_program_that_is_told_to_stop_can_say_what_it_has_cost() {
    let fixture = Fixture::new();
    let program = r#"hear; text Working; hear; tell '{"kind":"usage","input_tokens":40,"output_tokens":2,"cost_usd":0.25}'
        tell '{"kind":"error","message":"stopped","failure":"interrupted"}'"#;
    let settings = Settings { interrupt_timeout: Duration::from_secs(600), ..fixture.settings(program) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let task = harness.cancel(&id).await.unwrap();
        assert_eq!(fixture.heard()[1], r#"{"kind":"interrupt"}"#);
        let usage = task.metadata.unwrap().get(USAGE_KEY).unwrap().read::<serde_json::Value>().unwrap();
        let own = json!({"inputTokens": 40, "outputTokens": 2, "costUsd": 0.25});
        let mut cost = own.clone();
        (cost["own"], cost["tree"]) = (own.clone(), own);
        assert_eq!(usage, cost);
    });
}

#[test]
fn a_task_is_stopped_while_it_asks_and_keeps_its_cost() {
    let fixture = Fixture::new();
    let program = r#"hear; note pid $$; ask r1 Bash; tell '{"kind":"usage","input_tokens":7,"output_tokens":1}'; note told yes
        hear; await never"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        harness.noted(&fixture, "told").await;
        harness.until(&asked.id, |task| task.metadata.as_ref().is_some_and(|all| all.get(USAGE_KEY).is_some())).await;
        assert_eq!(harness.get(&asked.id).await.status.state, TaskState::InputRequired);
        let task = harness.cancel(&asked.id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        let usage = task.metadata.unwrap().get(USAGE_KEY).unwrap().as_str().to_owned();
        assert!(usage.contains(r#""inputTokens":7"#), "{usage}");
        assert!(!lives(&fixture.noted("pid").unwrap()));
        assert_eq!(harness.children.running(), 0);
    });
}

#[test]
fn a_task_that_waits_for_others_can_be_stopped_and_is_out_of_the_way() {
    let fixture = Fixture::new();
    let settings = Settings {
        repo_lock: false,
        ..fixture.settings("hear; text on; await \"end-$(wc -l < \"$NOTES/heard\")\"; finish ok")
    };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let first = harness.start(within("c", "one")).await;
        harness.until(&first, |task| text(task, "assistant-response").is_some()).await;
        let second = harness.start(within("c", "two")).await;
        harness
            .until(&second, |task| status_text(task).starts_with("Waiting: another task of this conversation"))
            .await;
        let third = harness.start(within("c", "three")).await;
        harness.until(&third, |task| status_text(task).starts_with("Waiting: another task of this conversation")).await;
        assert_eq!(harness.cancel(&second).await.unwrap().status.state, TaskState::Canceled);
        fixture.allow("end-1");
        fixture.allow("end-2");
        assert_eq!(harness.ended(&first).await.status.state, TaskState::Completed);
        assert_eq!(harness.ended(&third).await.status.state, TaskState::Completed);
        let prompts: Vec<String> = fixture.heard();
        assert_eq!(prompts.len(), 2, "{prompts:?}");
    });
}
