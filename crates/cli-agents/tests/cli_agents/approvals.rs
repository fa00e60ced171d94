//! What a program asks, who decides it, and what happens meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Dialect, TaskState};
use switchboard_cli_agents::adapters::{ApprovalPattern, CommandRule, Output, Permission, Permissions};
use switchboard_cli_agents::{Settings, SkillSettings, Worker};

use crate::fixture::Fixture;
use crate::harness::*;

/// What was written to the program after its prompt.
pub(crate) fn written(fixture: &Fixture) -> Vec<Value> {
    fixture.heard().iter().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_question_has_words_and_data_and_its_answer_reaches_the_child_that_asked() {
    let fixture = Fixture::new();
    let harness = Harness::open(
        &fixture,
        fixture.settings("hear; text Looking.; note pid $$; ask r1 Bash; hear; finish \"I am $$.\""),
    );
    harness.run(async {
        let asked = harness.send("look around").await;
        assert_eq!(
            status_text(&asked),
            "Approve: Use Bash for r1?\n  command: ls\nAnswer y (this once), always (every Bash of this task) or n, with a reason if \
             you like."
        );
        let data = question(&asked);
        assert_eq!((&data["tool"], &data["input"]), (&json!("Bash"), &json!({"command": "ls"})));
        assert_eq!(data["options"].as_array().unwrap().len(), 3, "{data}");
        assert_eq!(data["expiresAt"], "2027-01-15T09:00:00.000Z", "an hour from the clock's now");
        assert_eq!(text(&asked, "assistant-response").unwrap(), "Looking.");
        let done = harness.reply(&asked, "y").await;
        let pid = fixture.noted("pid").unwrap();
        assert_eq!(ending(&done), (TaskState::Completed, format!("I am {pid}.")));
        let heard: Value = serde_json::from_str(&fixture.heard()[0]).unwrap();
        assert_eq!(heard, json!({"kind": "prompt", "text": "look around"}));
        assert_eq!(written(&fixture), [json!({"kind": "approval", "request": "r1", "decision": "allow"})]);
    });
}

#[test]
fn a_question_without_a_prompt_shows_what_the_tool_is_called_with() {
    let fixture = Fixture::new();
    let program = r#"hear; tell '{"kind":"approval_required","request":"r","tool":"Bash","input":{"command":"rm -rf ~"}}'
        hear; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        let expected = "Approve: Use Bash?\n  command: rm -rf ~\nAnswer y ";
        assert!(status_text(&asked).starts_with(expected), "{}", status_text(&asked));
        assert_eq!(harness.reply(&asked, "n").await.status.state, TaskState::Completed);
    });
}

#[test]
fn always_holds_for_the_tool_and_the_task_and_no_longer() {
    let fixture = Fixture::new();
    let program = "hear; for turn in 1 2; do ask a$turn Bash; hear; done; ask e Edit; hear; finish ok";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send(within("c", "go")).await;
        assert_eq!(question(&asked)["tool"], "Bash");
        let asked = harness.reply(&asked, "always").await;
        assert_eq!(question(&asked)["tool"], "Edit", "the second use of Bash is not asked for, another tool is");
        assert_eq!(harness.reply(&asked, "n").await.status.state, TaskState::Completed);
        let answers: Vec<Value> = written(&fixture).iter().map(|line| line["decision"].clone()).collect();
        assert_eq!(answers, ["allow", "allow", "deny"]);
        let next = harness.send(within("c", "again")).await;
        assert_eq!(question(&next)["tool"], "Bash", "another task of the conversation");
    });
}

#[test]
fn several_questions_are_asked_one_by_one() {
    let fixture = Fixture::new();
    let program = "hear; ask r1 Bash; ask r2 Edit; ask r3 Bash; ask r4 Web; hear; hear; hear; hear; finish ok";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let first = harness.send("go").await;
        assert!(status_text(&first).starts_with("Approve: Use Bash for r1?"), "{}", status_text(&first));
        let second = harness.reply(&first, "always").await;
        assert!(status_text(&second).starts_with("Approve: Use Edit for r2?"), "{}", status_text(&second));
        assert_ne!(question(&first)["approvalId"], question(&second)["approvalId"]);
        let third = harness.reply(&second, "n, not now").await;
        assert!(status_text(&third).starts_with("Approve: Use Web for r4?"), "always: {}", status_text(&third));
        let done = harness.reply(&third, "y").await;
        assert_eq!(done.status.state, TaskState::Completed);
        let answers = written(&fixture);
        let mut short: Vec<(&str, &str)> = Vec::new();
        for answer in &answers {
            short.push((answer["request"].as_str().unwrap(), answer["decision"].as_str().unwrap()));
        }
        // The third is decided as soon as it is heard of, before the second or after it.
        short.sort_unstable();
        assert_eq!(short, [("r1", "allow"), ("r2", "deny"), ("r3", "allow"), ("r4", "allow")]);
        assert!(answers.iter().any(|answer| answer["reason"] == "not now"), "{answers:?}");
    });
}

/// A program that asks for one command after another.
fn asks_for(commands: &[&str]) -> String {
    let ask = |(number, command): (usize, &&str)| {
        let input = json!({"command": command});
        let line = json!({"kind": "approval_required", "request": number.to_string(), "tool": "Bash", "input": input});
        format!("tell '{line}'; hear; ")
    };
    let init = json!({"kind": "init", "session": "s1"});
    format!("hear; tell '{init}'; {}finish ok", commands.iter().enumerate().map(ask).collect::<String>())
}

fn git_only(default: Permission) -> Permissions {
    let rule = CommandRule { tool: "Bash".to_owned(), pattern: "git *".to_owned() };
    Permissions { default, allow_commands: vec![rule], ..Permissions::default() }
}

fn decisions(fixture: &Fixture) -> Vec<Value> {
    written(fixture).iter().map(|line| line["decision"].clone()).collect()
}

#[test]
fn a_rule_with_a_pattern_allows_one_simple_command_and_asks_about_more() {
    let fixture = Fixture::new();
    let program = asks_for(&["git status", "git status; touch EVIL", "git log -n 1"]);
    let harness =
        Harness::open(&fixture, Settings { permissions: git_only(Permission::Ask), ..fixture.settings(&program) });
    harness.run(async {
        let asked = harness.send("go").await;
        assert_eq!(question(&asked)["input"]["command"], "git status; touch EVIL");
        assert_eq!(harness.reply(&asked, "n").await.status.state, TaskState::Completed);
        assert_eq!(decisions(&fixture), ["allow", "deny", "allow"]);
    });
}

#[test]
fn a_skill_has_permissions_of_its_own_that_its_conversation_keeps() {
    let fixture = Fixture::new();
    let program = asks_for(&["git status", "ls"]);
    let mut settings = fixture.settings(&program);
    let review = SkillSettings { permissions: git_only(Permission::Deny), workers: settings.workers.clone() };
    settings.skills.insert("review".to_owned(), review);
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let reviewed = harness.send(within("c", "look at it").with("skill", "review")).await;
        assert_eq!(reviewed.status.state, TaskState::Completed, "no approval is requested: {}", status_text(&reviewed));
        assert_eq!(data(&reviewed, "agent-metadata")["skill"], "review");
        assert_eq!(decisions(&fixture), ["allow", "deny"]);
        let again = harness.send(within("c", "and again")).await;
        assert_eq!(
            again.status.state,
            TaskState::Completed,
            "the conversation keeps its skill: {}",
            status_text(&again)
        );
        for other in [within("c", "go").with("skill", "another"), within("d", "go")] {
            let asked = harness.send(other).await;
            assert_eq!(question(&asked)["input"]["command"], "git status", "the agent's own permissions ask");
            assert!(data(&asked, "agent-metadata").get("skill").is_none());
            harness.cancel(&asked.id).await.unwrap();
        }
    });
}

#[test]
fn rules_decide_without_asking() {
    let fixture = Fixture::new();
    let program = "hear; ask r1 Read; hear; ask r2 Web__fetch; hear; ask r3 Bash; hear; finish ok";
    let permissions = Permissions {
        default: Permission::Ask,
        allow: vec!["Read".to_owned(), "Web*".to_owned()],
        deny: vec!["Web__*".to_owned()],
        ..Permissions::default()
    };
    let harness = Harness::open(&fixture, Settings { permissions, ..fixture.settings(program) });
    harness.run(async {
        let asked = harness.send("go").await;
        assert_eq!(question(&asked)["tool"], "Bash");
        assert_eq!(harness.reply(&asked, "y").await.status.state, TaskState::Completed);
        assert_eq!(
            written(&fixture),
            [
                json!({"kind": "approval", "request": "r1", "decision": "allow"}),
                json!({"kind": "approval", "request": "r2", "decision": "deny", "reason": "Web__fetch is not allowed here."}),
                json!({"kind": "approval", "request": "r3", "decision": "allow"}),
            ]
        );
        assert_eq!(harness.told(&asked.id).await.iter().filter(|told| told.starts_with("INPUT_REQUIRED")).count(), 1);
    });
}

#[test]
fn a_question_without_an_answer_expires() {
    let fixture = Fixture::new();
    let settings =
        Settings { approval_expiry: Duration::from_secs(90), ..fixture.settings("hear; ask r1 Bash; hear; finish ok") };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let asked = harness.send("go").await;
        harness.clock.advance(Duration::from_secs(89));
        let again = harness.reply(&asked, "hm").await;
        assert_eq!(again.status.state, TaskState::InputRequired, "a second before it expires it is still open");
        harness.clock.advance(Duration::from_secs(1));
        let failed = harness.ended(&asked.id).await;
        assert_eq!(reason(&failed), "input_expired/approval_expired");
        assert_eq!(
            ending(&failed),
            (
                TaskState::Failed,
                "no answer came within 90 s whether Bash may be used (permissions.expiry). Send the message again to \
                 begin anew."
                    .to_owned()
            )
        );
        assert_eq!(written(&fixture), Vec::<Value>::new());
        harness.wait_for(|| (harness.children.running() == 0).then_some(())).await;
    });
}

#[test]
fn a_question_asked_again_does_not_wait_longer() {
    let fixture = Fixture::new();
    let settings =
        Settings { approval_expiry: Duration::from_secs(90), ..fixture.settings("hear; ask r1 Bash; hear; finish ok") };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let asked = harness.send("go").await;
        harness.clock.advance(Duration::from_secs(60));
        let again = harness.reply(&asked, "hm").await;
        assert_eq!(question(&again)["expiresAt"], question(&asked)["expiresAt"]);
        harness.clock.advance(Duration::from_secs(30));
        assert_eq!(reason(&harness.ended(&asked.id).await), "input_expired/approval_expired");
    });
}

#[test]
fn a_question_that_is_withdrawn_is_no_longer_asked() {
    let fixture = Fixture::new();
    let program = r#"hear; ask r1 Bash; ask r2 Edit; await withdraw
        tell '{"kind":"approval_withdrawn","request":"r2"}'; tell '{"kind":"approval_withdrawn","request":"r1"}'
        await finish; text Gone.; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        fixture.allow("withdraw");
        let task = harness.until(&asked.id, |task| task.status.state == TaskState::Working).await;
        assert_eq!(status_text(&task), "The question was withdrawn.");
        fixture.allow("finish");
        let done = harness.ended(&asked.id).await;
        assert_eq!(
            (done.status.state, text(&done, "assistant-response").unwrap()),
            (TaskState::Completed, "Gone.\n\nok".to_owned())
        );
        assert_eq!(written(&fixture), Vec::<Value>::new());
        let told = harness.told(&asked.id).await;
        assert!(!told.iter().any(|told| told.contains("r2")), "{told:?}");
    });
}

#[test]
fn time_rests_while_a_human_is_waited_for() {
    let fixture = Fixture::new();
    let settings = Settings {
        timeout: Some(Duration::from_secs(100)),
        idle: Some(Duration::from_secs(10)),
        ..fixture.settings("hear; ask r1 Bash; hear; text on; await never")
    };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let asked = harness.send("go").await;
        harness.clock.advance(Duration::from_secs(50 * 60));
        let id = harness
            .start(Said(switchboard_a2a::Message { task_id: Some(asked.id.clone()), ..Said::from("y").0 }))
            .await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        assert_eq!(harness.get(&id).await.status.state, TaskState::Working);
        harness.clock.advance(Duration::from_secs(10));
        assert_eq!(reason(&harness.ended(&id).await), "idle");
    });
}

#[test]
fn what_is_told_while_a_question_is_open_comes_after_it_in_order() {
    let fixture = Fixture::new();
    let program = r#"hear; text one; ask r1 Bash; text two
        tell '{"kind":"tool_use","id":"t","tool":"Read","input":{}}'; text three; note told yes; hear; text four; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        harness.noted(&fixture, "told").await;
        harness.reply(&asked, "y").await;
        let told = harness.told(&asked.id).await;
        let from = told.iter().position(|told| told.starts_with("INPUT_REQUIRED")).unwrap();
        let told: Vec<&str> = told[from + 1..].iter().map(|told| told.split('{').next().unwrap()).collect();
        let end = "assistant-response+: ";
        assert_eq!(
            told,
            [
                "WORKING: ",
                "assistant-response+: two",
                "WORKING: Using tool: Read",
                "assistant-response+: \n\nthree",
                "assistant-response+: four",
                "agent-metadata: ",
                "assistant-response+: \n\nok",
                end,
                "result: ",
                "COMPLETED: ok"
            ]
        );
    });
}

#[test]
fn a_program_that_ends_without_waiting_for_the_answer_has_said_all_it_said() {
    let fixture = Fixture::new();
    let harness =
        Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; text Nevermind.; await end; finish Other."));
    harness.run(async {
        let asked = harness.send("go").await;
        fixture.allow("end");
        let done = harness.ended(&asked.id).await;
        assert_eq!(ending(&done), (TaskState::Completed, "Other.".to_owned()));
        assert_eq!(text(&done, "assistant-response").as_deref(), Some("Nevermind.\n\nOther."));
    });
}

#[test]
fn a_program_that_dies_while_it_asks_fails_its_task() {
    let fixture = Fixture::new();
    let harness = Harness::open(
        &fixture,
        fixture.settings("hear; ask r1 Bash; text Oh; await end; echo 'out of paper' >&2; exit 3"),
    );
    harness.run(async {
        let asked = harness.send("go").await;
        fixture.allow("end");
        let failed = harness.ended(&asked.id).await;
        assert_eq!(ending(&failed), (TaskState::Failed, "sh exited with code 3: out of paper".to_owned()));
        assert_eq!(reason(&failed), "no_result");
        assert_eq!(text(&failed, "assistant-response").as_deref(), Some("Oh"));
    });
}

#[test]
fn a_program_that_only_speaks_text_can_ask_with_an_unfinished_line() {
    let fixture = Fixture::new();
    let program = fixture.generic("read -r line; printf 'Delete all? [y/N] '; hear; echo; echo Deleted.", |options| {
        let pattern = ApprovalPattern::new(r"\[y/N\]\s*$", "yes", "no").unwrap();
        options.output = Output::Text { questions: Some(pattern) };
    });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        let asked = harness.send("delete").await;
        assert_eq!(
            status_text(&asked),
            "Approve: Delete all? [y/N]?\nAnswer y (this once), always (every prompt of this task) or n."
        );
        let done = harness.reply(&asked, "y").await;
        assert_eq!(done.status.state, TaskState::Completed);
        assert!(status_text(&done).contains("Deleted."), "{}", status_text(&done));
        assert_eq!(fixture.heard(), ["yes"]);
    });
}

#[test]
fn a_reason_that_a_program_cannot_be_told_is_said_to_be_lost() {
    let fixture = Fixture::new();
    let program = fixture.generic("read -r line; printf 'Delete all? [y/N] '; hear; echo; echo Kept.", |options| {
        let pattern = ApprovalPattern::new(r"\[y/N\]\s*$", "yes", "no").unwrap();
        options.output = Output::Text { questions: Some(pattern) };
    });
    let harness = Harness::open(&fixture, Settings::new("coder", Worker::new(program), fixture.work()));
    harness.run(async {
        let asked = harness.send("delete").await;
        let done = harness.reply(&asked, "no, keep the logs").await;
        assert_eq!(done.status.state, TaskState::Completed);
        assert_eq!(fixture.heard(), ["no"]);
        let told = harness.told(&asked.id).await;
        let lost = "WORKING: The reason was not passed on: this program takes only a yes or a no.";
        assert!(told.iter().any(|told| told == lost), "{told:?}");
    });
}

#[test]
fn a_question_has_its_data_in_the_older_version_too() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send("go").await;
        harness.reply(&asked, "y").await;
        let log = harness.log_in(Dialect::V03Rpc, &asked.id).await;
        let frame = log.iter().find(|frame| frame["status"]["state"] == "input-required").unwrap();
        let parts = &frame["status"]["message"]["parts"];
        assert!(parts[0]["text"].as_str().unwrap().starts_with("Approve: Use Bash for r1?"), "{parts}");
        assert_eq!((&parts[1]["kind"], &parts[1]["data"]), (&json!("data"), &question(&asked)));
    });
}
