//! What a program tells, as its task's events.

use serde_json::{Value, json};
use switchboard_a2a::{Dialect, TaskState};
use switchboard_cli_agents::adapters::Output;
use switchboard_cli_agents::{Settings, Worker};
use switchboard_engine::Emit;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::sessions::usage;

const RICH: &str = r#"hear
tell '{"kind":"init","session":"s-1","model":"m-1"}'
tell '{"kind":"reasoning","text":"Hm, "}'; tell '{"kind":"thinking","text":"files."}'
text 'I will '; text 'look.'; tell '{"kind":"text_end"}'
tell '{"kind":"tool_use","id":"t1","tool":"Bash","input":{"command":"ls"}}'
tell '{"kind":"tool_result","id":"t1","output":" a.txt\nb.txt \n"}'
tell '{"kind":"notice","text":"trying again"}'
tell '{"kind":"tool_use","id":"t2","tool":"Edit","input":{}}'
tell '{"kind":"tool_result","id":"t2","output":"no such file","is_error":true}'
tell '{"kind":"files_changed","paths":["b.txt","a.txt"]}'; tell '{"kind":"files_changed","paths":["a.txt"]}'
text 'Two files.'
tell '{"kind":"usage","input_tokens":900,"cached_tokens":300,"output_tokens":120,"reasoning_tokens":20,"cost_usd":0.5}'
tell '{"kind":"done"}'"#;

#[test]
fn a_turn_is_told_in_order_and_each_artifact_has_one_id() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(RICH));
    harness.run(async {
        let task = harness.send("look").await;
        let told = harness.told(&task.id).await;
        let stats = "\"stats\":{\"inputTokens\":900,\"cachedTokens\":300,\"outputTokens\":120,\"reasoningTokens\":20,\
                     \"costUsd\":0.5,\"durationMs\":0}";
        let result = format!("result: {{\"summary\":\"Two files.\",{stats},\"filesChanged\":[\"a.txt\",\"b.txt\"]}}");
        assert_eq!(
            told,
            [
                "WORKING: ",
                r#"agent-metadata: {"cli":"generic","model":"m-1","sessionId":"s-1"}"#,
                "reasoning: Hm, ",
                "reasoning+: files.",
                "assistant-response: I will ",
                "assistant-response+: look.",
                "WORKING: Using tool: Bash",
                "WORKING: Tool result: a.txt\nb.txt",
                "WORKING: trying again",
                "WORKING: Using tool: Edit",
                "WORKING: Tool result: no such file",
                "assistant-response+: \n\nTwo files.",
                "reasoning+: ",
                "assistant-response+: ",
                &result,
                "COMPLETED: Two files.",
            ]
        );
        assert_eq!(text(&task, "assistant-response").unwrap(), "I will look.\n\nTwo files.");
        assert_eq!(text(&task, "reasoning").unwrap(), "Hm, files.");
        let ids: Vec<&str> = task.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        assert_eq!(ids, ["agent-metadata", "reasoning", "assistant-response", "result"]);
        assert_eq!(usage(&task), json!({"inputTokens": 900, "outputTokens": 120, "costUsd": 0.5}));
        let result = serde_json::to_value(&task.artifacts[3]).unwrap();
        let cost = json!({
            "usage": {"input_tokens": 900, "output_tokens": 120, "cache_read_input_tokens": 300},
            "durationMs": 0, "costUsd": 0.5, "model": "m-1",
        });
        assert_eq!(result["metadata"]["https://proto-labs.ai/a2a/ext/cost-v1"], cost, "for readers on other servers");
        assert_eq!(result["extensions"], json!(["https://proto-labs.ai/a2a/ext/cost-v1"]));
    });
}

#[test]
fn the_cost_is_a_part_of_the_result_too_where_all_carriers_are_written() {
    let fixture = Fixture::new();
    let kernel = switchboard_engine::Settings { emit: Emit::All, ..switchboard_engine::Settings::default() };
    let harness = Harness::with_kernel(&fixture, fixture.settings(RICH), kernel);
    harness.run(async {
        let task = harness.send("look").await;
        let result = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == "result").unwrap();
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["parts"].as_array().unwrap().len(), 2, "{result}");
        let cost = &result["parts"][1];
        assert_eq!(cost["data"], result["metadata"]["https://proto-labs.ai/a2a/ext/cost-v1"]);
        assert_eq!((&cost["data"]["costUsd"], &cost["data"]["model"]), (&json!(0.5), &json!("m-1")), "{result}");
        assert_eq!(cost["metadata"]["mimeType"], "application/vnd.protolabs.cost-v1+json");
    });
}

#[test]
fn codes_for_terminals_do_nothing_to_readers_and_hide_nothing_from_those_who_decide() {
    let fixture = Fixture::new();
    let program = r#"hear
tell '{"kind":"reasoning","text":"\u001b[2mHm\u001b[0m"}'
tell '{"kind":"tool_result","id":"t","tool":"Bash","output":"\u001b[32mok\u001b[0m"}'
tell '{"kind":"notice","text":"\u001b]0;owned\u0007again"}'
tell '{"kind":"approval_required","request":"r","tool":"Bash","prompt":"Run rm\u001b[2K\u0008 ls","input":{}}'; hear
text 'a\u001b[31mb\u001b[0m'
tell '{"kind":"error","message":"\u001b[1mno\u001b[0m"}'"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("look").await;
        assert!(status_text(&asked).starts_with("Approve: Run rm\\u{1b}[2K\\u{8} ls?\n"), "{}", status_text(&asked));
        let done = harness.reply(&asked, "y").await;
        let told = harness.told(&done.id).await;
        let of_tool = "WORKING: Tool result: ok";
        for expected in ["reasoning: Hm", of_tool, "WORKING: again", "assistant-response: ab", "FAILED: no"] {
            assert!(told.iter().any(|told| told == expected), "{expected}: {told:?}");
        }
    });
}

#[test]
fn text_before_a_carriage_return_is_not_lost() {
    let fixture = Fixture::new();
    let program = fixture.generic(r"hear; printf 'a\rb\n10 %%\r\033[2K20 %%\r\n'", |options| {
        options.output = Output::default();
    });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        let task = harness.send("look").await;
        assert_eq!(text(&task, "assistant-response").as_deref(), Some("a\nb\n10 %\n20 %\n"));
    });
}

#[test]
fn pieces_say_what_they_are_added_to_and_which_is_the_last_in_both_versions() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(RICH));
    harness.run(async {
        let task = harness.send("look").await;
        let artifacts = |frames: &[Value], old: bool| -> Vec<(String, bool, bool)> {
            let updates = frames.iter().filter_map(|frame| match old {
                true => (frame["kind"] == "artifact-update").then_some(frame),
                false => frame.get("artifactUpdate"),
            });
            let short = |update: &Value| {
                let id = update["artifact"]["artifactId"].as_str().unwrap().to_owned();
                assert_eq!(update["artifact"]["name"], id.as_str(), "every piece has the name");
                (id, update["append"] == true, update["lastChunk"] == true)
            };
            updates.map(short).filter(|(id, ..)| id == "assistant-response" || id == "result").collect()
        };
        let response = |append, last| ("assistant-response".to_owned(), append, last);
        let result = ("result".to_owned(), false, true);
        let expected =
            [response(false, false), response(true, false), response(true, false), response(true, true), result];
        assert_eq!(artifacts(&harness.log(&task.id).await, false), expected);
        assert_eq!(artifacts(&harness.log_in(Dialect::V03Rpc, &task.id).await, true), expected);
    });
}

#[test]
fn the_last_event_says_what_it_has_cost_in_both_versions() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(RICH));
    harness.run(async {
        let task = harness.send("look").await;
        let own = json!({"inputTokens": 900, "outputTokens": 120, "costUsd": 0.5});
        let mut cost = own.clone();
        (cost["own"], cost["tree"]) = (own.clone(), own);
        let log = harness.log(&task.id).await;
        assert_eq!(log.last().unwrap()["statusUpdate"]["metadata"]["switchboard/usage"], cost);
        let log = harness.log_in(Dialect::V03Rpc, &task.id).await;
        let last = log.last().unwrap();
        assert_eq!((&last["status"]["state"], &last["metadata"]["switchboard/usage"]), (&json!("completed"), &cost));
        assert_eq!(last["status"]["message"]["parts"][0]["text"], "Two files.");
    });
}

#[test]
fn a_tools_output_is_cut_between_characters() {
    let fixture = Fixture::new();
    let program = r#"hear; long=$(printf 'ö%.0s' $(seq 1 300)); fits=$(printf 'ü%.0s' $(seq 1 200))
        tell "{\"kind\":\"tool_use\",\"id\":\"a\",\"tool\":\"Bash\",\"input\":{}}"
        tell "{\"kind\":\"tool_result\",\"id\":\"a\",\"output\":\"$long\"}"
        tell "{\"kind\":\"tool_use\",\"id\":\"b\",\"tool\":\"Bash\",\"input\":{}}"
        tell "{\"kind\":\"tool_result\",\"id\":\"b\",\"output\":\"$fits\"}"; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        let log = harness.log(&task.id).await;
        let texts: Vec<&str> = log
            .iter()
            .filter_map(|frame| frame["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(texts[1], format!("Tool result: {}…", "ö".repeat(199)));
        assert_eq!(texts[3], format!("Tool result: {}", "ü".repeat(200)));
    });
}

#[test]
fn a_tools_use_is_also_a_frame_of_the_extension() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(RICH));
    harness.run(async {
        let task = harness.send("look").await;
        let log = harness.log(&task.id).await;
        let uri = switchboard_engine::TOOL_CALL_URI;
        let calls: Vec<&Value> =
            log.iter().map(|frame| &frame["statusUpdate"]["status"]["message"]["metadata"][uri]).collect();
        let calls: Vec<&Value> = calls.into_iter().filter(|call| !call.is_null()).collect();
        assert_eq!(
            *calls[0],
            json!({"toolCallId": "t1", "name": "Bash", "phase": "started", "args": {"command": "ls"}})
        );
        assert_eq!((&calls[1]["phase"], &calls[1]["name"]), (&json!("completed"), &json!("Bash")));
        assert_eq!((&calls[3]["phase"], &calls[3]["error"]), (&json!("failed"), &json!("no such file")));
    });
}

#[test]
fn an_answer_that_was_not_said_before_is_an_artifact_too() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; finish 'Forty-two.'"));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(text(&task, "assistant-response").as_deref(), Some("Forty-two."));
        assert_eq!(status_text(&task), "Forty-two.");
        assert_eq!(data(&task, "result")["summary"], "Forty-two.");
        let told = harness.told(&task.id).await;
        assert!(
            told[told.len() - 2].starts_with("result: ") && told[told.len() - 1].starts_with("COMPLETED"),
            "{told:?}"
        );
    });
}

#[test]
fn a_turn_that_says_nothing_can_still_be_done() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(r#"hear; tell '{"kind":"done"}'"#));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!((text(&task, "assistant-response"), data(&task, "result")["summary"].as_str()), (None, Some("")));
    });
}

#[test]
fn a_long_answer_is_whole_in_its_artifact_and_begins_in_the_message() {
    let fixture = Fixture::new();
    let program = r#"hear; long=$(head -c 60000 /dev/zero | tr '\0' x); text "ö$long"; tell '{"kind":"done"}'"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed);
        let whole = format!("ö{}", "x".repeat(60_000));
        assert_eq!(text(&task, "assistant-response").unwrap(), whole);
        let shown = status_text(&task);
        let end = "…\n(The whole answer is in the artifact assistant-response.)";
        assert_eq!(shown, format!("{}{end}", &whole[..30 << 10]));
        assert_eq!(data(&task, "result")["summary"], shown);
    });
}

#[test]
fn a_later_init_changes_the_facts_and_is_not_repeated() {
    let fixture = Fixture::new();
    let program = r#"hear; tell '{"kind":"init","session":"a"}'; tell '{"kind":"init","session":"a"}'
        tell '{"kind":"init","session":"b","model":"m"}'; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(data(&task, "agent-metadata"), json!({"cli": "generic", "sessionId": "b", "model": "m"}));
        let told = harness.told(&task.id).await;
        assert_eq!(told.iter().filter(|told| told.starts_with("agent-metadata:")).count(), 2, "{told:?}");
    });
}

#[test]
fn two_turns_of_a_task_say_which_messages_are_new() {
    let fixture = Fixture::new();
    let harness = Harness::open(
        &fixture,
        fixture.settings("hear; text \"run $(wc -l < \"$NOTES/heard\")\"; await end; tell '{\"kind\":\"done\"}'"),
    );
    harness.run(async {
        let id = harness.start("one").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        harness.start(Said(switchboard_a2a::Message { task_id: Some(id.clone()), ..Said::from("two").0 })).await;
        fixture.allow("end");
        let task = harness.ended(&id).await;
        assert_eq!(text(&task, "assistant-response").unwrap(), "run 1\n\nrun 2");
        assert_eq!((status_text(&task).as_str(), &data(&task, "result")["summary"]), ("run 2", &json!("run 2")));
    });
}
