//! How turns end: by what the program says, and what it means when it says nothing.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use switchboard_a2a::TaskState;
use switchboard_cli_agents::adapters::{Declared, GenericOptions, Input, Output};
use switchboard_cli_agents::{Settings, Worker};

use crate::fixture::{Fixture, lives};
use crate::harness::*;

/// Runs a program once and says how its task ended, with its reason.
fn ended(program: &str) -> (TaskState, String, String) {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        let (state, text) = ending(&task);
        let reason = if state == TaskState::Completed { String::new() } else { reason(&task) };
        (state, text, reason)
    })
}

fn failed(text: &str, reason: &str) -> (TaskState, String, String) {
    (TaskState::Failed, text.to_owned(), reason.to_owned())
}

#[test]
fn ending_well_without_a_result_is_no_result() {
    let text = "sh exited with code 0, without saying how the turn went";
    assert_eq!(ended("hear; text 'All done!'"), failed(text, "no_result"));
}

#[test]
fn a_code_other_than_zero_is_told_with_the_last_words() {
    let program = r#"hear; echo first >&2; printf '\033[31mno such model\033[0m\n\n' >&2; exit 7"#;
    assert_eq!(ended(program), failed("sh exited with code 7: no such model", "no_result"));
}

#[test]
fn a_flood_of_last_words_leaves_the_last_ones() {
    let program = r#"hear; head -c 3000000 /dev/zero | tr '\0' x >&2; echo >&2; echo the end >&2; exit 1"#;
    assert_eq!(ended(program), failed("sh exited with code 1: the end", "no_result"));
}

#[test]
fn an_error_is_told_in_the_programs_words_with_its_kind() {
    let error = |members: &str| ended(&format!(r#"hear; tell '{{"kind":"error",{members}}}'"#));
    assert_eq!(error(r#""message":"no such folder""#), failed("no such folder", "agent_error"));
    assert_eq!(error(r#""message":"too many turns","failure":"limit""#), failed("too many turns", "agent_error/limit"));
    assert_eq!(
        error(r#""message":"Bash refused","failure":"refused""#),
        failed("Bash refused", "agent_error/tool_refused")
    );
    assert_eq!(
        error(r#""message":"401.","failure":"not_logged_in""#),
        failed("401. To log in: log in as the program asks you to.", "agent_error/not_logged_in")
    );
}

#[test]
fn what_comes_after_the_result_changes_nothing() {
    let program = r#"hear; finish Yes.; tell '{"kind":"error","message":"no"}'; text more; echo bad >&2; exit 9"#;
    assert_eq!(ended(program), (TaskState::Completed, "Yes.".to_owned(), String::new()));
}

#[test]
fn a_killed_child_fails_its_task() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; text Hm; note pid $$; await never"));
    harness.run(async {
        let id = harness.start("go").await;
        let pid = harness.noted(&fixture, "pid").await;
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        let task = harness.ended(&id).await;
        assert_eq!(ending(&task), (TaskState::Failed, "sh was ended by signal 9".to_owned()));
        assert_eq!(reason(&task), "no_result");
        assert_eq!(text(&task, "assistant-response").as_deref(), Some("Hm"));
        harness.wait_for(|| (harness.children.running() == 0).then_some(())).await;
    });
}

#[test]
fn a_child_that_closes_its_output_is_waited_for() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; exec 1>&-; note closed yes; await end; exit 4"));
    harness.run(async {
        let id = harness.start("go").await;
        harness.noted(&fixture, "closed").await;
        fixture.allow("end");
        assert_eq!(ending(&harness.ended(&id).await), (TaskState::Failed, "sh exited with code 4".to_owned()));
    });
}

#[test]
fn a_child_that_closes_its_output_and_stays_is_silent() {
    let fixture = Fixture::new();
    let harness =
        Harness::open(&fixture, fixture.settings("hear; note pid $$; exec 1>&-; note closed yes; await never"));
    harness.run(async {
        let id = harness.start("go").await;
        harness.noted(&fixture, "closed").await;
        harness.clock.advance(Duration::from_secs(5 * 60));
        assert_eq!(reason(&harness.ended(&id).await), "idle");
        assert!(!lives(&fixture.noted("pid").unwrap()));
    });
}

#[test]
fn nothing_is_left_of_a_program_that_stays_after_its_result() {
    let fixture = Fixture::new();
    let program = "hear; sleep 1000 & note one $!; setsid sleep 1000 & note two $!; finish Done.; await never";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(ending(&task), (TaskState::Completed, "Done.".to_owned()));
        assert!(!lives(&fixture.noted("one").unwrap()) && !lives(&fixture.noted("two").unwrap()));
        assert_eq!(harness.children.running(), 0);
    });
}

#[test]
fn a_plain_programs_exit_code_is_its_result() {
    let fixture = Fixture::new();
    let program = fixture.generic("read -r line; echo \"got $line\"; [ \"$line\" = good ] || exit 2", |options| {
        options.output = Output::default();
    });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        assert_eq!(ending(&harness.send("good").await), (TaskState::Completed, "got good".to_owned()));
        let bad = harness.send("bad").await;
        assert_eq!(ending(&bad), (TaskState::Failed, "sh exited with code 2".to_owned()));
        assert_eq!(reason(&bad), "agent_error");
        assert_eq!(text(&bad, "assistant-response").as_deref(), Some("got bad\n"));
    });
}

#[test]
fn a_missing_program_is_named_with_what_to_do() {
    let fixture = Fixture::new();
    let command = vec!["no-such-program-here".to_owned()];
    let program = Declared::generic(GenericOptions { command, ..GenericOptions::default() }).unwrap();
    let named = Worker { program: Some("./gone.sh".into()), ..Worker::new(fixture.asking("")) };
    for (worker, expected) in [
        (
            Worker::new(program),
            "no-such-program-here is not installed here: no-such-program-here is not on the path of this server. To \
             install it: put no-such-program-here where the server can run it",
        ),
        (named, "./gone.sh is not a program that can be started: check `program` or `command` of this agent"),
    ] {
        let fixture = Fixture::new();
        let harness = Harness::open(&fixture, Settings::new("coder", worker, fixture.work()));
        let task = harness.run(harness.send("go"));
        assert_eq!(ending(&task), (TaskState::Failed, expected.to_owned()));
        assert_eq!(reason(&task), "agent_error/not_started");
    }
}

#[test]
fn a_missing_folder_is_named() {
    let fixture = Fixture::new();
    let harness =
        Harness::open(&fixture, Settings { cwd: fixture.path().join("gone"), ..fixture.settings("finish ok") });
    let (state, text) = ending(&harness.run(harness.send("go")));
    assert_eq!(state, TaskState::Failed);
    assert!(text.contains("/gone: No such file"), "{text}");
}

#[test]
fn a_message_without_text_starts_nothing() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("note started yes; finish ok"));
    harness.run(async {
        for empty in [Said::from(" \n\t"), Said::from(serde_json::json!({"a": 1}))] {
            let task = harness.send(empty).await;
            assert_eq!(ending(&task), (TaskState::Rejected, "the message has no text: say what to do".to_owned()));
            assert_eq!(reason(&task), "rejected");
        }
        assert_eq!(fixture.noted("started"), None);
    });
}

#[test]
fn a_prompt_reaches_the_program_as_it_is_whatever_it_looks_like() {
    const PROMPTS: [&str; 4] = ["--help", "-rf / --no-preserve-root", "$(touch broken) `id` 'a' \"b\"", "two\nlines ö"];
    let fixture = Fixture::new();
    let program = r#"for argument; do printf '[%s]' "$argument" >> "$NOTES/arguments"; done; finish ok"#;
    let program = fixture.generic(program, |options| {
        (options.input, options.output) = (Input::Argument, Output::Jsonl { asks: false });
    });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    let expected: String = PROMPTS.map(|prompt| format!("[--][{prompt}]")).concat();
    harness.run(async {
        for prompt in PROMPTS {
            assert_eq!(harness.send(prompt).await.status.state, TaskState::Completed);
        }
    });
    assert_eq!(fixture.noted("arguments").unwrap(), expected);

    let fixture = Fixture::new();
    let program =
        fixture.generic(r#"cat >> "$NOTES/read"; finish ok"#, |options| options.output = Output::Jsonl { asks: false });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        for prompt in PROMPTS {
            assert_eq!(harness.send(prompt).await.status.state, TaskState::Completed);
        }
    });
    assert_eq!(fixture.noted("read").unwrap(), PROMPTS.map(|prompt| format!("{prompt}\n")).concat());
}

#[test]
fn lines_that_no_adapter_understands_do_no_harm() {
    let program = r#"hear; echo '{"half":'; echo '{"kind":"unheard-of"}'; printf '\377\376\n'; echo '[1]'; echo null; echo
        printf '\033[2J{"kind":"text","text":"hidden"}\n'; printf '%s\n' '{"kind":7}'; finish 'Still here.'"#;
    assert_eq!(ended(program), (TaskState::Completed, "Still here.".to_owned(), String::new()));
}

#[test]
fn what_was_being_said_is_ended_however_the_turn_ends() {
    for (program, cancel) in [
        ("hear; text Hm; tell '{\"kind\":\"reasoning\",\"text\":\"so\"}'; exit 3", false),
        ("hear; text Hm; tell '{\"kind\":\"reasoning\",\"text\":\"so\"}'; note told yes; await never", true),
    ] {
        let fixture = Fixture::new();
        let harness = Harness::open(&fixture, fixture.settings(program));
        harness.run(async {
            let id = harness.start("go").await;
            if cancel {
                harness.noted(&fixture, "told").await;
                harness.until(&id, |task| text(task, "reasoning").is_some()).await;
                harness.cancel(&id).await.unwrap();
            }
            harness.ended(&id).await;
            let log = harness.log(&id).await;
            for artifact in ["assistant-response", "reasoning"] {
                let mut updates = log.iter().map(|frame| &frame["artifactUpdate"]);
                let last = updates.rfind(|update| update["artifact"]["artifactId"] == artifact).unwrap();
                assert_eq!(last["lastChunk"], true, "{artifact}: {last}");
            }
        });
    }
}
