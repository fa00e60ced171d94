//! A server that is killed in mid-turn, and what the next one makes of it.

use serde_json::{Value, json};
use switchboard_a2a::{Message, TaskState};
use switchboard_cli_agents::{ByDifficulty, Classifier, Settings, Worker, Workers};

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;
use crate::sessions::usage;

const GO_ON: &str = "You were interrupted while you worked on the message below. Look at what is already done, do not do \
                     it twice, and go on from there.";

/// What programs here begin with: their session is known, and `$run` says how often they were started.
const BEGIN: &str = r#"printf '%s %s\n' "$1" "$2" >> "$NOTES/starts"; run=$(wc -l < "$NOTES/starts"); hear
    tell '{"kind":"init","session":"s-1"}';"#;

fn resuming(fixture: &Fixture, program: &str) -> Settings {
    let program = Resuming::new(fixture.asking(&format!("{BEGIN} {program}")));
    Settings::new("coder", Worker::new(program), fixture.work())
}

/// The prompts that programs were given.
fn prompts(fixture: &Fixture) -> Vec<String> {
    let lines = fixture.heard();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let prompts = lines.filter(|line| line["kind"] == "prompt");
    prompts.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

fn decisions(fixture: &Fixture) -> Vec<String> {
    let lines = fixture.heard();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answers = lines.filter(|line| line["kind"] == "approval");
    answers.map(|line| line["decision"].as_str().unwrap().to_owned()).collect()
}

fn starts(fixture: &Fixture) -> Vec<String> {
    fixture.noted("starts").unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_task_goes_on_in_its_session() {
    let fixture = Fixture::new();
    let program = "text \"Part $run.\"; note text-$run yes; await end; finish \"Done in run $run.\"";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let id = harness.run(async {
        let id = harness.start("build it").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        id
    });
    harness.kill();
    fixture.allow("end");
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    harness.run(async {
        let task = harness.ended(&id).await;
        assert_eq!(ending(&task), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(text(&task, "assistant-response").unwrap(), "Part 1.\n\nPart 2.\n\nDone in run 2.");
    });
    assert_eq!(starts(&fixture)[1], "resume s-1");
    assert_eq!(prompts(&fixture), ["build it".to_owned(), format!("{GO_ON}\n\nbuild it")]);
}

#[test]
fn a_turn_that_is_lost_again_and_again_is_not_taken_up_for_ever() {
    let fixture = Fixture::new();
    let program = "text \"Part $run.\"; await end; finish never";
    let mut harness = Harness::open(&fixture, resuming(&fixture, program));
    let said = |run: usize| {
        move |task: &switchboard_a2a::Task| {
            text(task, "assistant-response").is_some_and(|text| text.contains(&format!("Part {run}.")))
        }
    };
    let id = harness.run(harness.start("build it"));
    for run in 1..=4 {
        harness.run(harness.until(&id, said(run)));
        harness.kill();
        harness = Harness::open(&fixture, resuming(&fixture, program));
    }
    let task = harness.run(harness.ended(&id));
    assert_eq!((task.status.state, reason(&task)), (TaskState::Failed, "recovery_limit".to_owned()));
    assert!(status_text(&task).contains("look into the log of the server"), "{}", status_text(&task));
    assert_eq!(starts(&fixture).len(), 4);
}

#[test]
fn a_repository_belongs_to_the_turn_that_works_in_it_over_restarts() {
    for _ in 0..3 {
        let fixture = Fixture::new();
        let program = "ask r1 Bash; hear; finish \"Done in run $run.\"";
        let settings = || resuming(&fixture, program);
        let harness = Harness::open(&fixture, settings());
        let (asked, waits) = harness.run(async {
            let asked = harness.send(within("a", "build it")).await;
            let waits = harness.start(within("b", "test it")).await;
            harness.until(&waits, |task| status_text(task).starts_with("Waiting: agent coder works")).await;
            (asked, waits)
        });
        harness.kill();
        let harness = Harness::open(&fixture, settings());
        harness.run(async {
            let old = question(&asked)["approvalId"].clone();
            let asked = harness
                .until(&asked.id, |task| {
                    task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old
                })
                .await;
            harness.until(&waits, |task| status_text(task).starts_with("Waiting: agent coder works")).await;
            assert_eq!(starts(&fixture).len(), 2, "only the first was started, twice");
            harness.reply(&asked, "y").await;
            let next = harness.until(&waits, |task| task.status.state == TaskState::InputRequired).await;
            harness.reply(&next, "y").await;
            assert_eq!(harness.ended(&waits).await.status.state, TaskState::Completed);
        });
    }
}

#[test]
fn neither_orderly_stops_nor_losses_while_it_asks_are_held_against_a_turn() {
    for is_orderly in [true, false] {
        let fixture = Fixture::new();
        let program = match is_orderly {
            true => "text \"Part $run.\"; await end; finish never",
            false => "ask r1 Bash; hear; finish never",
        };
        let mut harness = Harness::open(&fixture, resuming(&fixture, program));
        let id = harness.run(harness.start("build it"));
        for run in 1..=6 {
            harness.run(harness.until(&id, |task| match is_orderly {
                true => text(task, "assistant-response").is_some_and(|text| text.contains(&format!("Part {run}."))),
                false => task.status.state == TaskState::InputRequired && starts(&fixture).len() == run,
            }));
            if is_orderly {
                harness.stop();
            } else {
                harness.kill();
            }
            harness = Harness::open(&fixture, resuming(&fixture, program));
        }
    }
}

#[test]
fn an_open_question_is_asked_again_and_its_old_answer_is_refused() {
    let fixture = Fixture::new();
    let program = "ask r1 Bash; hear; finish \"Done in run $run.\"";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let old = harness.run(harness.send("build it"));
    harness.kill();
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    harness.run(async {
        let old_id = question(&old)["approvalId"].clone();
        let is_new = |task: &switchboard_a2a::Task| {
            task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old_id
        };
        let asked = harness.until(&old.id, is_new).await;
        assert!(status_text(&asked).starts_with("Approve: Use Bash for r1?"), "{}", status_text(&asked));
        let refused = harness.reply(&asked, json!({"approvalId": old_id, "decision": "allow"})).await;
        let text = status_text(&refused);
        assert!(text.starts_with(&format!("The approval {} has expired", old_id.as_str().unwrap())), "{text}");
        assert_eq!(question(&refused)["approvalId"], question(&asked)["approvalId"]);
        assert_eq!(decisions(&fixture), Vec::<String>::new());
        let answer = json!({"approvalId": question(&asked)["approvalId"], "decision": "deny"});
        let done = harness.reply(&asked, answer).await;
        assert_eq!(ending(&done), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(decisions(&fixture), ["deny"]);
    });
}

#[test]
fn an_answer_that_comes_before_the_question_is_asked_again_decides_nothing() {
    for answer_in_words in [false, true] {
        let fixture = Fixture::new();
        let program =
            "[ $run = 1 ] || { note resumed yes; await ask; }; ask r1 Bash; hear; finish \"Done in run $run.\"";
        let harness = Harness::open(&fixture, resuming(&fixture, program));
        let old = harness.run(harness.send("build it"));
        harness.kill();
        let harness = Harness::open(&fixture, resuming(&fixture, program));
        harness.run(async {
            let old_id = question(&old)["approvalId"].clone();
            let answer = match answer_in_words {
                true => Said::from("y"),
                false => Said::from(json!({"approvalId": old_id, "decision": "allow"})),
            };
            harness.noted(&fixture, "resumed").await;
            harness.start(Said(Message { task_id: Some(old.id.clone()), ..answer.0 })).await;
            fixture.allow("ask");
            let is_new = |task: &switchboard_a2a::Task| {
                task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old_id
            };
            let asked = harness.until(&old.id, is_new).await;
            assert_eq!(decisions(&fixture), Vec::<String>::new());
            assert_eq!(prompts(&fixture)[1], format!("{GO_ON}\n\nbuild it"));
            harness.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("n").0 })).await;
            harness.wait_for(|| (decisions(&fixture) == ["deny"]).then_some(())).await;
        });
    }
}

#[test]
fn a_task_whose_question_was_answered_goes_on_with_its_own_message() {
    for answer_in_words in [false, true] {
        let fixture = Fixture::new();
        let program = "if [ $run = 1 ]; then ask r1 Bash; hear; text on; await never; fi; finish \"Done in run $run.\"";
        let harness = Harness::open(&fixture, resuming(&fixture, program));
        let id = harness.run(async {
            let asked = harness.send("build it").await;
            let answer = match answer_in_words {
                true => Said::from("y"),
                false => Said::from(json!({"approvalId": question(&asked)["approvalId"], "decision": "allow"})),
            };
            harness.start(Said(Message { task_id: Some(asked.id.clone()), ..answer.0 })).await;
            harness.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
            asked.id
        });
        harness.kill();
        let harness = Harness::open(&fixture, resuming(&fixture, program));
        let task = harness.run(harness.ended(&id));
        assert_eq!(ending(&task), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(prompts(&fixture), ["build it".to_owned(), format!("{GO_ON}\n\nbuild it")]);
        assert_eq!(starts(&fixture)[1], "resume s-1");
    }
}

#[test]
fn a_program_that_cannot_go_on_fails_and_says_how_to() {
    let fixture = Fixture::new();
    let program = "hear; echo start >> \"$NOTES/starts\"; ask r1 Bash; hear; text on; await never";
    for is_answered in [false, true] {
        let harness = Harness::open(&fixture, fixture.settings(program));
        let id = harness.run(async {
            let asked = harness.send("build it").await;
            if is_answered {
                harness.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("y").0 })).await;
                harness.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
            }
            asked.id
        });
        harness.kill();
        let harness = Harness::open(&fixture, fixture.settings(program));
        harness.run(async {
            let task = harness.ended(&id).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
            let hint = "look at what it has done, then send the message again in the same context";
            assert!(status_text(&task).ends_with(hint), "{}", status_text(&task));
        });
        harness.kill();
    }
    assert_eq!(starts(&fixture).len(), 2, "nothing was started twice");
}

#[test]
fn a_task_whose_program_was_not_started_begins_as_if_nothing_had_happened() {
    let fixture = Fixture::new();
    let program = "hear; text on; await end; finish ok";
    let harness = Harness::open(&fixture, fixture.settings(program));
    let (first, second) = harness.run(async {
        let first = harness.start(within("c", "one")).await;
        harness.until(&first, |task| text(task, "assistant-response").is_some()).await;
        let second = harness.start(within("c", "two")).await;
        harness.until(&second, |task| status_text(task).starts_with("Waiting:")).await;
        (first, second)
    });
    harness.kill();
    fixture.allow("end");
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        assert_eq!(reason(&harness.ended(&first).await), "interrupted");
        assert_eq!(harness.ended(&second).await.status.state, TaskState::Completed);
    });
    assert_eq!(prompts(&fixture), ["one", "two"]);
}

#[test]
fn a_next_turn_that_was_not_started_is_not_taken_for_the_one_before() {
    let fixture = Fixture::new();
    // The second turn waits behind another task of the repository when the server is killed.
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let id = harness.run(async {
        let id = harness.start("one").await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let blocker = harness.start("between").await;
        harness.until(&blocker, |task| status_text(task).starts_with("Waiting:")).await;
        harness.start(Said(Message { task_id: Some(id.clone()), ..Said::from("two").0 })).await;
        fixture.allow("end-1");
        harness.until(&id, |task| status_text(task).starts_with("Waiting:")).await;
        harness.wait_for(|| (starts(&fixture).len() == 2).then_some(())).await;
        id
    });
    harness.kill();
    for run in 2..6 {
        fixture.allow(&format!("end-{run}"));
    }
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    harness.run(harness.ended(&id));
    let prompts = prompts(&fixture);
    assert!(prompts.contains(&"two".to_owned()), "{prompts:?}");
    assert!(!prompts.contains(&format!("{GO_ON}\n\none")), "{prompts:?}");
}

#[test]
fn what_was_spent_before_and_after_is_counted_once() {
    for (scope, first, second) in [("run", 100, 40), ("session", 100, 140)] {
        let fixture = Fixture::new();
        let program = format!(
            r#"tokens={first}; [ $run = 1 ] || tokens={second}
            tell "{{\"kind\":\"usage\",\"scope\":\"{scope}\",\"input_tokens\":$tokens,\"output_tokens\":1}}"
            text on; [ $run = 1 ] && await never; finish ok"#
        );
        let harness = Harness::open(&fixture, resuming(&fixture, &program));
        let id = harness.run(async {
            let id = harness.start("build it").await;
            harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
            id
        });
        harness.kill();
        let harness = Harness::open(&fixture, resuming(&fixture, &program));
        let task = harness.run(harness.ended(&id));
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(usage(&task)["inputTokens"], 140, "{scope}");
    }
}

#[test]
fn a_message_is_found_whatever_ids_the_client_gives() {
    let fixture = Fixture::new();
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let id = harness.run(async {
        let same = |text: &str, task| Said(Message { message_id: "m".into(), task_id: task, ..Said::from(text).0 });
        let id = harness.start(same("one", None)).await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        harness.start(same("two", Some(id.clone()))).await;
        fixture.allow("end-1");
        harness.until(&id, |task| text(task, "assistant-response").is_some_and(|text| text.ends_with("on2"))).await;
        id
    });
    harness.kill();
    fixture.allow("end-3");
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    harness.run(harness.ended(&id));
    assert_eq!(prompts(&fixture), ["one".to_owned(), "two".to_owned(), format!("{GO_ON}\n\ntwo")]);
}

#[test]
fn a_session_is_not_taken_up_by_another_program() {
    let program = "text on; await never";
    let named = |fixture: &Fixture, name: &str| {
        Worker::new(Resuming::new(fixture.asking(&format!("{BEGIN} {program}"))).named(name))
    };
    // The operator has changed the agent's program, or which of its programs does what.
    for is_known in [false, true] {
        let fixture = Fixture::new();
        let settings = |routine: &str, mid: &str| {
            let worker = |name| named(&fixture, name);
            let workers = ByDifficulty {
                complex: worker(mid),
                mid: worker(mid),
                routine: worker(routine),
                classifier: Classifier::default(),
            };
            let workers = Workers::ByDifficulty(Box::new(workers));
            Settings { workers, ..Settings::new("coder", worker(mid), fixture.work()) }
        };
        let harness = Harness::open(&fixture, settings("first", "second"));
        let id = harness.run(async {
            let id = harness.start("fix a typo").await;
            harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
            id
        });
        harness.kill();
        let now = if is_known { settings("second", "first") } else { settings("third", "second") };
        let harness = Harness::open(&fixture, now);
        let task = harness.run(harness.ended(&id));
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
        assert!(status_text(&task).ends_with("send the message again in the same context"), "{}", status_text(&task));
        assert_eq!(starts(&fixture).len(), 1);
    }
}

#[test]
fn what_is_allowed_for_the_task_is_allowed_in_its_later_runs() {
    let fixture = Fixture::new();
    let program = "ask \"r$run\" Bash; hear; text \"on$run\"; await \"end-$run\"; finish ok";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let id = harness.run(async {
        let asked = harness.send("one").await;
        harness.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("always").0 })).await;
        harness.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
        // The next turn of the same task, and the one that is recovered after it.
        harness.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("two").0 })).await;
        fixture.allow("end-1");
        let goes_on = |task: &switchboard_a2a::Task| text(task, "assistant-response").unwrap().ends_with("on2");
        harness.until(&asked.id, goes_on).await;
        asked.id
    });
    harness.kill();
    fixture.allow("end-3");
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let task = harness.run(harness.ended(&id));
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(decisions(&fixture), ["allow", "allow", "allow"]);
    assert_eq!(task.history.iter().filter(|message| message.joined_text().starts_with("Approve:")).count(), 1);
}

#[test]
fn tasks_of_a_conversation_go_on_in_their_order() {
    let fixture = Fixture::new();
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    let texts = ["one", "two", "three", "four", "five"];
    let ids = harness.run(async {
        let mut ids = Vec::new();
        for text in texts {
            ids.push(harness.start(within("c", text)).await);
        }
        harness.until(&ids[0], |task| text(task, "assistant-response").is_some()).await;
        ids
    });
    harness.kill();
    for run in 2..8 {
        fixture.allow(&format!("end-{run}"));
    }
    let harness = Harness::open(&fixture, resuming(&fixture, program));
    harness.run(async {
        for id in &ids {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
    });
    let expected = ["one", &format!("{GO_ON}\n\none"), "two", "three", "four", "five"];
    assert_eq!(prompts(&fixture), expected);
}
