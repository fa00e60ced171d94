//! What a program may not do for ever: work, be silent, write.

use std::time::Duration;

use switchboard_a2a::TaskState;
use switchboard_cli_agents::process::OutputLimits;
use switchboard_cli_agents::{Settings, Worker};

use crate::fixture::{Fixture, lives};
use crate::harness::*;
use crate::resuming::Resuming;

const MINUTE: Duration = Duration::from_secs(60);
/// A program whose progress is the same at so many looks in a row has come to rest.
const REST: usize = 30;

#[test]
fn a_turn_that_takes_too_long_is_stopped_however_much_is_said() {
    let fixture = Fixture::new();
    let settings = Settings {
        timeout: Some(2 * MINUTE),
        idle: Some(MINUTE),
        ..fixture.settings("hear; note pid $$; for word in 1 2 3; do text $word; await $word; done; await never")
    };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        for (words, name) in [("1", "1"), ("12", "2"), ("123", "3")] {
            harness.until(&id, |task| text(task, "assistant-response").as_deref() == Some(words)).await;
            harness.clock.advance(Duration::from_secs(40));
            fixture.allow(name);
        }
        let task = harness.ended(&id).await;
        let expected = "stopped after 2 min of work (timeout). Send the message again to begin anew.";
        assert_eq!(ending(&task), (TaskState::Failed, expected.to_owned()));
        assert_eq!(reason(&task), "timed_out");
        assert!(!lives(&fixture.noted("pid").unwrap()));
    });
}

#[test]
fn silence_has_a_limit_which_rests_while_a_tool_works() {
    let fixture = Fixture::new();
    let settings = Settings {
        timeout: Some(60 * MINUTE),
        idle: Some(MINUTE),
        ..fixture.settings(
            r#"hear; tell '{"kind":"tool_use","id":"t","tool":"Bash","input":{}}'; await tool
            tell '{"kind":"tool_result","id":"t","output":"built"}'; await never"#,
        )
    };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| status_text(task) == "Using tool: Bash").await;
        harness.clock.advance(30 * MINUTE);
        // It has looked at its deadlines, and only says what it waits for.
        harness.until(&id, |task| status_text(task).starts_with("Waiting for Bash")).await;
        fixture.allow("tool");
        harness.until(&id, |task| status_text(task) == "Tool result: built").await;
        harness.clock.advance(MINUTE);
        let task = harness.ended(&id).await;
        let expected = "stopped after 1 min of silence (idle). Send the message again to begin anew.";
        assert_eq!(ending(&task), (TaskState::Failed, expected.to_owned()));
        assert_eq!(reason(&task), "idle");
    });
}

#[test]
fn a_task_whose_program_tells_nothing_says_what_it_waits_for() {
    let fixture = Fixture::new();
    let program = Resuming::new(fixture.asking(
        r#"hear; tell 'no event'; await 1; text one; await 2
        tell '{"kind":"tool_use","id":"t","tool":"Bash","input":{}}'; await 3
        tell '{"kind":"tool_result","id":"t","output":"built"}'; ask r1 Edit; hear; finish ok"#,
    ));
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        let id = harness.start("go").await;
        let quiet = "Waiting for sh and its model: nothing from it for 10 s. If this goes on, look whether the model's \
                     endpoint can be reached.";
        harness.until(&id, |task| status_text(task) == "no event").await;
        for (name, waiting, next) in [
            ("1", quiet, "Using tool: Bash"),
            ("3", "Waiting for Bash: nothing from sh for 10 s.", "Approve: Use Edit for r1?"),
        ] {
            harness.clock.advance(Duration::from_secs(10));
            harness.until(&id, |task| status_text(task) == waiting).await;
            fixture.allow("2");
            fixture.allow(name);
            harness.until(&id, |task| status_text(task).starts_with(next)).await;
        }
        harness.clock.advance(Duration::from_secs(20));
        let asked = harness.get(&id).await;
        assert_eq!(asked.status.state, TaskState::InputRequired, "a human is waited for, and the task says so already");
        assert_eq!(harness.reply(&asked, "y").await.status.state, TaskState::Completed);
        let told = harness.told(&id).await;
        assert_eq!(told.iter().filter(|told| told.starts_with("WORKING: Waiting for")).count(), 2, "{told:?}");
    });
}

#[test]
fn a_stopped_conversation_that_can_be_taken_up_says_so() {
    let fixture = Fixture::new();
    let program = Resuming::new(fixture.asking(r#"hear; tell '{"kind":"init","session":"s-1"}'; await never"#));
    let settings = Settings { idle: Some(MINUTE), ..Settings::new("coder", Worker::new(program), fixture.work()) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| !task.artifacts.is_empty()).await;
        harness.clock.advance(MINUTE);
        let task = harness.ended(&id).await;
        let expected = "Send another message with the same contextId to go on where it stopped.";
        assert!(status_text(&task).ends_with(expected), "{}", status_text(&task));
    });
}

#[test]
fn without_limits_nothing_is_stopped() {
    let fixture = Fixture::new();
    let settings = Settings { timeout: None, idle: None, ..fixture.settings("hear; text on; await end; finish ok") };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.start("go").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        harness.clock.advance(48 * 60 * MINUTE);
        harness.until(&id, |task| status_text(task).starts_with("Waiting for sh")).await;
        fixture.allow("end");
        assert_eq!(harness.ended(&id).await.status.state, TaskState::Completed);
    });
}

fn limited(fixture: &Fixture, program: &str, change: impl FnOnce(&mut OutputLimits)) -> Settings {
    let mut settings = fixture.settings(program);
    change(&mut settings.output);
    settings
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_that_is_said() {
    let fixture = Fixture::new();
    let program = r#"hear; printf '{"kind":"text","text":"%s"}\n' "$(head -c 3000000 /dev/zero | tr '\0' x)"; text After.; finish ok"#;
    let harness = Harness::open(&fixture, limited(&fixture, program, |limits| limits.line = 1_000));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        assert_eq!(text(&task, "assistant-response").as_deref(), Some("After.\n\nok"));
        let told = harness.told(&task.id).await;
        let notice = told.iter().find(|told| told.contains("limits.line")).unwrap();
        assert_eq!(notice, "WORKING: a line of 3000025 bytes was left out: it is over the limit of 1000 (limits.line)");
    });
}

#[test]
fn a_line_within_its_limit_is_told_whole_however_large_an_event_may_be() {
    let fixture = Fixture::new();
    // An odd number of bytes before the pairs, so that pieces of even length would end within a character.
    let program = r#"hear; printf '{"kind":"text","text":"x'; head -c 4700000 /dev/zero | tr '\0' y | sed 's/y/ö/g'
        printf '"}\n'; tell '{"kind":"done"}'"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        let whole = format!("x{}", "ö".repeat(4_700_000));
        assert!(text(&task, "assistant-response").is_some_and(|said| said == whole));
        let pieces = harness.told(&task.id).await;
        let pieces: Vec<&String> = pieces.iter().filter(|told| told.starts_with("assistant-response")).collect();
        assert_eq!(pieces.len(), 10, "nine of a mebibyte at most, and the end");
    });
}

#[test]
fn too_many_events_stop_the_turn() {
    let fixture = Fixture::new();
    let program = "hear; note pid $$; while :; do text x; done";
    let harness = Harness::open(&fixture, Settings { events: 50, ..fixture.settings(program) });
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(ending(&task), (TaskState::Failed, "stopped after 50 events (limits.events)".to_owned()));
        assert_eq!(reason(&task), "too_large");
        assert_eq!(text(&task, "assistant-response").unwrap().len(), 50);
        assert!(!lives(&fixture.noted("pid").unwrap()));
    });
}

#[test]
fn too_much_output_stops_the_turn() {
    let fixture = Fixture::new();
    let program = "hear; note pid $$; while :; do echo '{\"kind\":\"nothing\"}'; done";
    let harness = Harness::open(&fixture, limited(&fixture, program, |limits| limits.output = 100_000));
    harness.run(async {
        let task = harness.send("go").await;
        let expected = "stopped after writing more than 100000 bytes (limits.output)";
        assert_eq!(ending(&task), (TaskState::Failed, expected.to_owned()));
        assert_eq!(reason(&task), "too_large");
        assert!(!lives(&fixture.noted("pid").unwrap()));
    });
}

#[test]
fn a_program_that_floods_while_it_asks_waits_and_loses_nothing() {
    let fixture = Fixture::new();
    let program = r#"hear; ask r1 Bash; number=0; while [ $number -lt 4500 ]; do number=$((number + 1)); echo $number > "$NOTES/sent"
        tell "{\"kind\":\"text\",\"text\":\"$number \"}"; done; hear; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        // It comes to rest when what is kept back and the pipe are full; without a bound it would write all of it.
        let mut looks = Vec::new();
        let rests = || {
            looks.push(fixture.noted("sent").unwrap_or_default());
            let last = looks.last_chunk::<REST>()?;
            (!last[0].is_empty() && last.iter().all(|sent| *sent == last[0])).then(|| last[0].trim().to_owned())
        };
        let sent: u64 = harness.wait_for(rests).await.parse().unwrap();
        assert!(sent < 4_500, "all of it was taken while the question was open");
        let done = harness.reply(&asked, "y").await;
        assert_eq!(done.status.state, TaskState::Completed);
        let expected: String = (1..=4_500).map(|number| format!("{number} ")).collect();
        let said = text(&done, "assistant-response").unwrap();
        assert!(said.strip_prefix(&expected) == Some("\n\nok"), "{} bytes came", said.len());
    });
}
