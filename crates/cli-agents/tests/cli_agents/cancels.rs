//! Tasks that are stopped: in mid-run, while they ask, while they wait; nothing of them is left.

use serde_json::json;
use switchboard_a2a::TaskState;
use switchboard_cli_agents::Settings;
use switchboard_engine::fold::USAGE_KEY;

use crate::bench::*;
use crate::place::{Place, lives};

#[test]
fn a_task_is_stopped_in_mid_run_with_everything_it_started() {
    let place = Place::new();
    let program = "trap '' TERM; hear; (trap '' TERM; sleep 1000; sleep 1000) & note one $!
        setsid sh -c 'trap \"\" TERM; exec >/dev/null; sleep 1000; sleep 1000' & note two $!
        note three $$; text Working; while :; do sleep 1000; done";
    let bench = Bench::open(&place, place.settings(program));
    bench.run(async {
        let id = bench.start("go").await;
        bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let task = bench.cancel(&id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        assert_eq!(reason(&task), "canceled_by_caller");
        for name in ["one", "two", "three"] {
            assert!(!lives(&place.noted(name).unwrap()), "{name} lives on");
        }
        assert_eq!(bench.children.running(), 0);
    });
}

#[test]
fn a_program_that_is_told_to_stop_can_say_what_it_has_cost() {
    let place = Place::new();
    let program = r#"hear; text Working; hear; tell '{"kind":"usage","input_tokens":40,"output_tokens":2,"cost_usd":0.25}'
        tell '{"kind":"error","message":"stopped","failure":"interrupted"}'"#;
    let bench = Bench::open(&place, place.settings(program));
    bench.run(async {
        let id = bench.start("go").await;
        bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let task = bench.cancel(&id).await.unwrap();
        assert_eq!(place.heard()[1], r#"{"kind":"interrupt"}"#);
        let usage = task.metadata.unwrap().get(USAGE_KEY).unwrap().read::<serde_json::Value>().unwrap();
        assert_eq!(usage, json!({"inputTokens": 40, "outputTokens": 2, "costUsd": 0.25}));
    });
}

#[test]
fn a_task_is_stopped_while_it_asks_and_keeps_its_cost() {
    let place = Place::new();
    let program = r#"hear; note pid $$; ask r1 Bash; tell '{"kind":"usage","input_tokens":7,"output_tokens":1}'; note told yes
        hear; await never"#;
    let bench = Bench::open(&place, place.settings(program));
    bench.run(async {
        let asked = bench.send("go").await;
        bench.noted(&place, "told").await;
        bench.until(&asked.id, |task| task.metadata.as_ref().is_some_and(|all| all.get(USAGE_KEY).is_some())).await;
        assert_eq!(bench.get(&asked.id).await.status.state, TaskState::InputRequired);
        let task = bench.cancel(&asked.id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        let usage = task.metadata.unwrap().get(USAGE_KEY).unwrap().as_str().to_owned();
        assert!(usage.contains(r#""inputTokens":7"#), "{usage}");
        assert!(!lives(&place.noted("pid").unwrap()));
        assert_eq!(bench.children.running(), 0);
    });
}

#[test]
fn a_task_that_waits_for_others_can_be_stopped_and_is_out_of_the_way() {
    let place = Place::new();
    let settings = Settings {
        repo_lock: false,
        ..place.settings("hear; text on; await \"end-$(wc -l < \"$NOTES/heard\")\"; finish ok")
    };
    let bench = Bench::open(&place, settings);
    bench.run(async {
        let first = bench.start(within("c", "one")).await;
        bench.until(&first, |task| text(task, "assistant-response").is_some()).await;
        let second = bench.start(within("c", "two")).await;
        bench.until(&second, |task| status_text(task).starts_with("Waiting: another task of this conversation")).await;
        let third = bench.start(within("c", "three")).await;
        bench.until(&third, |task| status_text(task).starts_with("Waiting: another task of this conversation")).await;
        assert_eq!(bench.cancel(&second).await.unwrap().status.state, TaskState::Canceled);
        place.allow("end-1");
        place.allow("end-2");
        assert_eq!(bench.ended(&first).await.status.state, TaskState::Completed);
        assert_eq!(bench.ended(&third).await.status.state, TaskState::Completed);
        let prompts: Vec<String> = place.heard();
        assert_eq!(prompts.len(), 2, "{prompts:?}");
    });
}
