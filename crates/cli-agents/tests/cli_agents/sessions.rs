//! One conversation of A2A is one conversation of the program.

use serde_json::{Value, json};
use switchboard_a2a::{Message, Task, TaskState};
use switchboard_cli_agents::adapters::Declared;
use switchboard_cli_agents::adapters::{Permission, Permissions};
use switchboard_cli_agents::{Settings, Worker};
use switchboard_engine::Switches;
use switchboard_engine::fold::USAGE_KEY;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;

/// Notes how it was started, names its session `s-N` by the run in which it began, and answers.
const TALKER: &str = r#"printf '%s %s\n' "$1" "$2" >> "$NOTES/starts"; hear
    number=$(wc -l < "$NOTES/starts"); session="s-$number"; [ "$1" = resume ] && session="$2"
    tell "{\"kind\":\"init\",\"session\":\"$session\",\"model\":\"m-1\"}"; finish "Hello from $session.""#;

fn starts(fixture: &Fixture) -> Vec<String> {
    fixture.noted("starts").unwrap_or_default().lines().map(str::to_owned).collect()
}

/// What a task has used that has called no other one.
pub(crate) fn usage(task: &Task) -> Value {
    let usage: Value = task.metadata.as_ref().unwrap().get(USAGE_KEY).unwrap().read().unwrap();
    assert_eq!(usage["own"], usage["tree"]);
    usage["own"].clone()
}

#[test]
fn a_later_message_of_the_conversation_takes_up_its_session() {
    let fixture = Fixture::new();
    let settings = || Settings::new("coder", Worker::new(Resuming::new(fixture.asking(TALKER))), fixture.work());
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        let first = harness.send(within("c", "one")).await;
        assert_eq!(status_text(&first), "Hello from s-1.");
        let facts = json!({"cli": "resuming", "model": "m-1", "sessionId": "s-1"});
        assert_eq!(data(&first, "agent-metadata"), facts);
        assert_eq!(status_text(&harness.send(within("c", "two")).await), "Hello from s-1.");
        assert_eq!(status_text(&harness.send(within("d", "three")).await), "Hello from s-3.", "another conversation");
        assert_eq!(status_text(&harness.send(within("c", "four")).await), "Hello from s-1.");
    });
    harness.kill();
    let harness = Harness::open(&fixture, settings());
    let task = harness.run(harness.send(within("c", "five")));
    assert_eq!(status_text(&task), "Hello from s-1.", "also after a restart");
    let resumed: Vec<bool> = starts(&fixture).iter().map(|start| start == "resume s-1").collect();
    assert_eq!(resumed, [false, true, false, true, true]);
    assert_eq!(fixture.heard()[4], r#"{"kind":"prompt","text":"five"}"#, "the message as it is");
}

#[test]
fn a_name_that_the_program_was_given_is_its_session_even_if_it_never_says_so() {
    let fixture = Fixture::new();
    let program = r#"printf '%s %s\n' "$1" "$2" >> "$NOTES/starts"; hear; text Hi; finish ok"#;
    let program = Resuming::new(fixture.asking(program)).with_chosen_sessions();
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        let first = harness.send(within("c", "one")).await;
        harness.send(within("c", "two")).await;
        let starts = starts(&fixture);
        let session = starts[0].strip_prefix("new ").unwrap();
        assert_eq!(starts[1], format!("resume {session}"));
        assert_eq!(data(&first, "agent-metadata")["sessionId"], session);
    });
}

#[test]
fn a_declared_program_is_taken_up_with_its_own_arguments() {
    let fixture = Fixture::new();
    let program = fixture.script(
        "declared",
        r#"printf '%s|' "$@" >> "$NOTES/starts"; echo >> "$NOTES/starts"
        tell '{"type":"start","id":"abc"}'; tell '{"type":"end","answer":"Done."}'"#,
    );
    let yaml = format!(
        "name: talker\nbinary: {{ names: [sh] }}\nstart: {{ args: ['{0}', '--prompt={{prompt}}'] }}\n\
         resume: {{ args: ['{0}', '--resume={{session}}', '--prompt={{prompt}}'] }}\n\
         permissions: {{ allow: {{}} }}\noutput: jsonl\nrules:\n\
         - {{ when: {{ type: start }}, init: {{ session: id }} }}\n\
         - {{ when: {{ type: end }}, done: {{ answer: answer }} }}\n",
        program[1]
    );
    let declared = Declared::parse(&yaml, "talker.yaml").unwrap_or_else(|error| panic!("{error}"));
    let permissions = Permissions { default: Permission::Allow, ..Permissions::default() };
    let settings = Settings { permissions, ..Settings::new("coder", Worker::new(declared), fixture.work()) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        for prompt in ["--one", "--two"] {
            let task = harness.send(within("c", prompt)).await;
            assert_eq!(ending(&task), (TaskState::Completed, "Done.".to_owned()));
        }
    });
    assert_eq!(starts(&fixture), ["--prompt=--one|", "--resume=abc|--prompt=--two|"]);
}

#[test]
fn a_conversation_that_is_gone_begins_anew() {
    let fixture = Fixture::new();
    let program = r#"printf '%s %s\n' "$1" "$2" >> "$NOTES/starts"; hear
        if [ "$1" = resume ]; then tell '{"kind":"error","message":"no such session","failure":"unknown_session"}'; exit 1; fi
        tell '{"kind":"init","session":"lost"}'; finish Hello."#;
    let program = Resuming::new(fixture.asking(program));
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        harness.send(within("c", "one")).await;
        let task = harness.send(within("c", "two")).await;
        assert_eq!(ending(&task), (TaskState::Completed, "Hello.".to_owned()));
        let told = harness.told(&task.id).await;
        let notice = "WORKING: The program has lost the earlier conversation; a new one begins with its transcript.";
        assert!(told.contains(&notice.to_owned()), "{told:?}");
    });
    let heard = fixture.heard();
    assert_eq!(heard[1], r#"{"kind":"prompt","text":"two"}"#);
    assert!(heard[2].contains("one") && heard[2].contains("Hello.") && heard[2].ends_with(r#"two"}"#), "{}", heard[2]);
    let words: Vec<String> = starts(&fixture).iter().map(|start| start.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(words, ["new", "resume", "new"]);
}

#[test]
fn a_program_without_sessions_begins_anew_each_time() {
    let fixture = Fixture::new();
    let harness =
        Harness::open(&fixture, fixture.settings(r#"hear; tell '{"kind":"init","session":"s"}'; finish Hello."#));
    harness.run(async {
        for text in ["one", "two"] {
            assert_eq!(ending(&harness.send(within("c", text)).await), (TaskState::Completed, "Hello.".to_owned()));
        }
    });
}

#[test]
fn usage_that_is_counted_over_the_session_is_told_for_each_task() {
    let fixture = Fixture::new();
    // Each run costs 100 and 10 more; the third fails and the fourth is counted from where it stopped.
    let program = r#"echo run >> "$NOTES/runs"; runs=$(wc -l < "$NOTES/runs"); hear; tell '{"kind":"init","session":"s"}'
        tell "{\"kind\":\"usage\",\"scope\":\"session\",\"input_tokens\":${runs}00,\"output_tokens\":${runs}0,\"cost_usd\":$runs.5}"
        if [ $runs = 3 ]; then tell '{"kind":"error","message":"no"}'; else finish ok; fi"#;
    let program = Resuming::new(fixture.asking(program));
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        for (text, cost) in [("one", 1.5), ("two", 1.0), ("three", 1.0), ("four", 1.0)] {
            let task = harness.send(within("c", text)).await;
            let expected = json!({"inputTokens": 100, "outputTokens": 10, "costUsd": cost});
            assert_eq!(usage(&task), expected, "{text}");
            if task.status.state == TaskState::Completed {
                let stats = &data(&task, "result")["stats"];
                assert_eq!((&stats["inputTokens"], &stats["costUsd"]), (&json!(100), &json!(cost)), "{text}");
            }
            harness.clock.advance(std::time::Duration::from_millis(10));
        }
    });
}

/// A task whose second message came while its program, which waits for `end`, worked on the first.
async fn after_two_turns(harness: &Harness, fixture: &Fixture) -> Task {
    let id = harness.start("one").await;
    harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
    harness.start(Said(Message { task_id: Some(id.clone()), ..Said::from("two").0 })).await;
    fixture.allow("end");
    harness.ended(&id).await
}

#[test]
fn usage_that_is_counted_by_the_run_adds_up_over_the_turns_of_a_task() {
    let fixture = Fixture::new();
    let program = r#"hear; text on; tell '{"kind":"usage","input_tokens":5,"output_tokens":1,"cost_usd":0.5}'
        tell '{"kind":"usage","input_tokens":10,"output_tokens":2,"cost_usd":1}'; await end; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    let task = harness.run(after_two_turns(&harness, &fixture));
    assert_eq!(usage(&task), json!({"inputTokens": 20, "outputTokens": 4, "costUsd": 2.0}));
}

#[test]
fn a_program_that_says_it_has_cost_more_than_can_be_counted_still_ends_its_turns() {
    let fixture = Fixture::new();
    let program = r#"hear; text on
        tell '{"kind":"usage","input_tokens":18446744073709551615,"output_tokens":18446744073709551615,"cost_usd":1e308}'
        await end; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    let task = harness.run(after_two_turns(&harness, &fixture));
    assert_eq!(ending(&task), (TaskState::Completed, "ok".to_owned()));
    let most = json!({"inputTokens": u64::MAX, "outputTokens": u64::MAX, "costUsd": f64::MAX});
    assert_eq!(usage(&task), most);
}

#[test]
fn a_session_is_found_however_many_messages_come_at_once() {
    let fixture = Fixture::new();
    let settings = Settings::new("coder", Worker::new(Resuming::new(fixture.asking(TALKER))), fixture.work());
    let switches = Switches { max_running: Some(100), ..Switches::default() };
    let harness = Harness::serving(&fixture, settings, switches);
    harness.run(async {
        harness.send(within("c", "first")).await;
        let mut ids = Vec::new();
        for number in 0..25 {
            ids.push(harness.start(within("c", &number.to_string())).await);
        }
        for id in &ids {
            assert_eq!(status_text(&harness.ended(id).await), "Hello from s-1.");
        }
    });
    assert_eq!(starts(&fixture).iter().filter(|start| *start == "resume s-1").count(), 25);
}

#[test]
fn usage_of_the_session_is_counted_once_however_its_turns_end() {
    let fixture = Fixture::new();
    // Every run costs 100 more. The second is canceled, the third fails; both are of the conversation.
    let program = r#"echo run >> "$NOTES/runs"; runs=$(wc -l < "$NOTES/runs"); hear; tell '{"kind":"init","session":"s"}'
        tell "{\"kind\":\"usage\",\"scope\":\"session\",\"input_tokens\":${runs}00,\"output_tokens\":1}"; text on
        [ $runs = 2 ] && await never; [ $runs = 3 ] && exit 1; finish ok"#;
    let program = Resuming::new(fixture.asking(program));
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        for state in [TaskState::Completed, TaskState::Canceled, TaskState::Failed, TaskState::Completed] {
            let id = harness.start(within("c", "go")).await;
            if state == TaskState::Canceled {
                harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
                harness.cancel(&id).await.unwrap();
            }
            let task = harness.ended(&id).await;
            assert_eq!((task.status.state, &usage(&task)["inputTokens"]), (state, &json!(100)));
            let log = harness.log(&id).await;
            let last = &log.last().unwrap()["statusUpdate"]["metadata"][USAGE_KEY];
            assert_eq!(last["inputTokens"], 100, "the ending itself says so");
            harness.clock.advance(std::time::Duration::from_millis(10));
        }
    });
}
