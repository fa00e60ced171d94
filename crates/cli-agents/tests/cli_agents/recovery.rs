//! A server that is killed in mid-turn, and what the next one makes of it.

use serde_json::{Value, json};
use switchboard_a2a::{Message, TaskState};
use switchboard_cli_agents::{ByDifficulty, Classifier, Settings, Worker, Workers};

use crate::bench::*;
use crate::place::Place;
use crate::resuming::Resuming;
use crate::sessions::usage;

const GO_ON: &str = "You were interrupted while you worked on the message below. Look at what is already done, do not do \
                     it twice, and go on from there.";

/// What programs here begin with: their session is known, and `$run` says how often they were started.
const BEGIN: &str = r#"printf '%s %s\n' "$1" "$2" >> "$NOTES/starts"; run=$(wc -l < "$NOTES/starts"); hear
    tell '{"kind":"init","session":"s-1"}';"#;

fn resuming(place: &Place, program: &str) -> Settings {
    let program = Resuming::new(place.asking(&format!("{BEGIN} {program}")));
    Settings::new("coder", Worker::new(program), place.work())
}

/// The prompts that programs were given.
fn prompts(place: &Place) -> Vec<String> {
    let lines = place.heard();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let prompts = lines.filter(|line| line["kind"] == "prompt");
    prompts.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

fn decisions(place: &Place) -> Vec<String> {
    let lines = place.heard();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answers = lines.filter(|line| line["kind"] == "approval");
    answers.map(|line| line["decision"].as_str().unwrap().to_owned()).collect()
}

fn starts(place: &Place) -> Vec<String> {
    place.noted("starts").unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_task_goes_on_in_its_session() {
    let place = Place::new();
    let program = "text \"Part $run.\"; note text-$run yes; await end; finish \"Done in run $run.\"";
    let bench = Bench::open(&place, resuming(&place, program));
    let id = bench.run(async {
        let id = bench.start("build it").await;
        bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
        id
    });
    bench.kill();
    place.allow("end");
    let bench = Bench::open(&place, resuming(&place, program));
    bench.run(async {
        let task = bench.ended(&id).await;
        assert_eq!(ending(&task), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(text(&task, "assistant-response").unwrap(), "Part 1.\n\nPart 2.\n\nDone in run 2.");
    });
    assert_eq!(starts(&place)[1], "resume s-1");
    assert_eq!(prompts(&place), ["build it".to_owned(), format!("{GO_ON}\n\nbuild it")]);
}

#[test]
fn a_turn_that_is_lost_again_and_again_is_not_taken_up_for_ever() {
    let place = Place::new();
    let program = "text \"Part $run.\"; await end; finish never";
    let mut bench = Bench::open(&place, resuming(&place, program));
    let said = |run: usize| {
        move |task: &switchboard_a2a::Task| {
            text(task, "assistant-response").is_some_and(|text| text.contains(&format!("Part {run}.")))
        }
    };
    let id = bench.run(bench.start("build it"));
    for run in 1..=4 {
        bench.run(bench.until(&id, said(run)));
        bench.kill();
        bench = Bench::open(&place, resuming(&place, program));
    }
    let task = bench.run(bench.ended(&id));
    assert_eq!((task.status.state, reason(&task)), (TaskState::Failed, "recovery_limit".to_owned()));
    assert!(status_text(&task).contains("look into the log of the server"), "{}", status_text(&task));
    assert_eq!(starts(&place).len(), 4);
}

#[test]
fn a_repository_belongs_to_the_turn_that_works_in_it_over_restarts() {
    for _ in 0..3 {
        let place = Place::new();
        let program = "ask r1 Bash; hear; finish \"Done in run $run.\"";
        let settings = || resuming(&place, program);
        let bench = Bench::open(&place, settings());
        let (asked, waits) = bench.run(async {
            let asked = bench.send(within("a", "build it")).await;
            let waits = bench.start(within("b", "test it")).await;
            bench.until(&waits, |task| status_text(task).starts_with("Waiting: agent coder works")).await;
            (asked, waits)
        });
        bench.kill();
        let bench = Bench::open(&place, settings());
        bench.run(async {
            let old = question(&asked)["approvalId"].clone();
            let asked = bench
                .until(&asked.id, |task| {
                    task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old
                })
                .await;
            bench.until(&waits, |task| status_text(task).starts_with("Waiting: agent coder works")).await;
            assert_eq!(starts(&place).len(), 2, "only the first was started, twice");
            bench.reply(&asked, "y").await;
            let next = bench.until(&waits, |task| task.status.state == TaskState::InputRequired).await;
            bench.reply(&next, "y").await;
            assert_eq!(bench.ended(&waits).await.status.state, TaskState::Completed);
        });
    }
}

#[test]
fn neither_orderly_stops_nor_losses_while_it_asks_are_held_against_a_turn() {
    for is_orderly in [true, false] {
        let place = Place::new();
        let program = match is_orderly {
            true => "text \"Part $run.\"; await end; finish never",
            false => "ask r1 Bash; hear; finish never",
        };
        let mut bench = Bench::open(&place, resuming(&place, program));
        let id = bench.run(bench.start("build it"));
        for run in 1..=6 {
            bench.run(bench.until(&id, |task| match is_orderly {
                true => text(task, "assistant-response").is_some_and(|text| text.contains(&format!("Part {run}."))),
                false => task.status.state == TaskState::InputRequired && starts(&place).len() == run,
            }));
            if is_orderly {
                bench.stop();
            } else {
                bench.kill();
            }
            bench = Bench::open(&place, resuming(&place, program));
        }
    }
}

#[test]
fn an_open_question_is_asked_again_and_its_old_answer_is_refused() {
    let place = Place::new();
    let program = "ask r1 Bash; hear; finish \"Done in run $run.\"";
    let bench = Bench::open(&place, resuming(&place, program));
    let old = bench.run(bench.send("build it"));
    bench.kill();
    let bench = Bench::open(&place, resuming(&place, program));
    bench.run(async {
        let old_id = question(&old)["approvalId"].clone();
        let is_new = |task: &switchboard_a2a::Task| {
            task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old_id
        };
        let asked = bench.until(&old.id, is_new).await;
        assert!(status_text(&asked).starts_with("Approve: Use Bash for r1?"), "{}", status_text(&asked));
        let refused = bench.reply(&asked, json!({"approvalId": old_id, "decision": "allow"})).await;
        let text = status_text(&refused);
        assert!(text.starts_with(&format!("The approval {} has expired", old_id.as_str().unwrap())), "{text}");
        assert_eq!(question(&refused)["approvalId"], question(&asked)["approvalId"]);
        assert_eq!(decisions(&place), Vec::<String>::new());
        let answer = json!({"approvalId": question(&asked)["approvalId"], "decision": "deny"});
        let done = bench.reply(&asked, answer).await;
        assert_eq!(ending(&done), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(decisions(&place), ["deny"]);
    });
}

#[test]
fn an_answer_that_comes_before_the_question_is_asked_again_decides_nothing() {
    for answer_in_words in [false, true] {
        let place = Place::new();
        let program =
            "[ $run = 1 ] || { note resumed yes; await ask; }; ask r1 Bash; hear; finish \"Done in run $run.\"";
        let bench = Bench::open(&place, resuming(&place, program));
        let old = bench.run(bench.send("build it"));
        bench.kill();
        let bench = Bench::open(&place, resuming(&place, program));
        bench.run(async {
            let old_id = question(&old)["approvalId"].clone();
            let answer = match answer_in_words {
                true => Said::from("y"),
                false => Said::from(json!({"approvalId": old_id, "decision": "allow"})),
            };
            bench.noted(&place, "resumed").await;
            bench.start(Said(Message { task_id: Some(old.id.clone()), ..answer.0 })).await;
            place.allow("ask");
            let is_new = |task: &switchboard_a2a::Task| {
                task.status.state == TaskState::InputRequired && question(task)["approvalId"] != old_id
            };
            let asked = bench.until(&old.id, is_new).await;
            assert_eq!(decisions(&place), Vec::<String>::new());
            assert_eq!(prompts(&place)[1], format!("{GO_ON}\n\nbuild it"));
            bench.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("n").0 })).await;
            bench.wait_for(|| (decisions(&place) == ["deny"]).then_some(())).await;
        });
    }
}

#[test]
fn a_task_whose_question_was_answered_goes_on_with_its_own_message() {
    for answer_in_words in [false, true] {
        let place = Place::new();
        let program = "if [ $run = 1 ]; then ask r1 Bash; hear; text on; await never; fi; finish \"Done in run $run.\"";
        let bench = Bench::open(&place, resuming(&place, program));
        let id = bench.run(async {
            let asked = bench.send("build it").await;
            let answer = match answer_in_words {
                true => Said::from("y"),
                false => Said::from(json!({"approvalId": question(&asked)["approvalId"], "decision": "allow"})),
            };
            bench.start(Said(Message { task_id: Some(asked.id.clone()), ..answer.0 })).await;
            bench.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
            asked.id
        });
        bench.kill();
        let bench = Bench::open(&place, resuming(&place, program));
        let task = bench.run(bench.ended(&id));
        assert_eq!(ending(&task), (TaskState::Completed, "Done in run 2.".to_owned()));
        assert_eq!(prompts(&place), ["build it".to_owned(), format!("{GO_ON}\n\nbuild it")]);
        assert_eq!(starts(&place)[1], "resume s-1");
    }
}

#[test]
fn a_program_that_cannot_go_on_fails_and_says_how_to() {
    let place = Place::new();
    let program = "hear; echo start >> \"$NOTES/starts\"; ask r1 Bash; hear; text on; await never";
    for is_answered in [false, true] {
        let bench = Bench::open(&place, place.settings(program));
        let id = bench.run(async {
            let asked = bench.send("build it").await;
            if is_answered {
                bench.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("y").0 })).await;
                bench.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
            }
            asked.id
        });
        bench.kill();
        let bench = Bench::open(&place, place.settings(program));
        bench.run(async {
            let task = bench.ended(&id).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
            let hint = "look at what it has done, then send the message again in the same context";
            assert!(status_text(&task).ends_with(hint), "{}", status_text(&task));
        });
        bench.kill();
    }
    assert_eq!(starts(&place).len(), 2, "nothing was started twice");
}

#[test]
fn a_task_whose_program_was_not_started_begins_as_if_nothing_had_happened() {
    let place = Place::new();
    let program = "hear; text on; await end; finish ok";
    let bench = Bench::open(&place, place.settings(program));
    let (first, second) = bench.run(async {
        let first = bench.start(within("c", "one")).await;
        bench.until(&first, |task| text(task, "assistant-response").is_some()).await;
        let second = bench.start(within("c", "two")).await;
        bench.until(&second, |task| status_text(task).starts_with("Waiting:")).await;
        (first, second)
    });
    bench.kill();
    place.allow("end");
    let bench = Bench::open(&place, place.settings(program));
    bench.run(async {
        assert_eq!(reason(&bench.ended(&first).await), "interrupted");
        assert_eq!(bench.ended(&second).await.status.state, TaskState::Completed);
    });
    assert_eq!(prompts(&place), ["one", "two"]);
}

#[test]
fn a_next_turn_that_was_not_started_is_not_taken_for_the_one_before() {
    let place = Place::new();
    // The second turn waits behind another task of the repository when the server is killed.
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let bench = Bench::open(&place, resuming(&place, program));
    let id = bench.run(async {
        let id = bench.start("one").await;
        bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
        let blocker = bench.start("between").await;
        bench.until(&blocker, |task| status_text(task).starts_with("Waiting:")).await;
        bench.start(Said(Message { task_id: Some(id.clone()), ..Said::from("two").0 })).await;
        place.allow("end-1");
        bench.until(&id, |task| status_text(task).starts_with("Waiting:")).await;
        bench.wait_for(|| (starts(&place).len() == 2).then_some(())).await;
        id
    });
    bench.kill();
    for run in 2..6 {
        place.allow(&format!("end-{run}"));
    }
    let bench = Bench::open(&place, resuming(&place, program));
    bench.run(bench.ended(&id));
    let prompts = prompts(&place);
    assert!(prompts.contains(&"two".to_owned()), "{prompts:?}");
    assert!(!prompts.contains(&format!("{GO_ON}\n\none")), "{prompts:?}");
}

#[test]
fn what_was_spent_before_and_after_is_counted_once() {
    for (scope, first, second) in [("run", 100, 40), ("session", 100, 140)] {
        let place = Place::new();
        let program = format!(
            r#"tokens={first}; [ $run = 1 ] || tokens={second}
            tell "{{\"kind\":\"usage\",\"scope\":\"{scope}\",\"input_tokens\":$tokens,\"output_tokens\":1}}"
            text on; [ $run = 1 ] && await never; finish ok"#
        );
        let bench = Bench::open(&place, resuming(&place, &program));
        let id = bench.run(async {
            let id = bench.start("build it").await;
            bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
            id
        });
        bench.kill();
        let bench = Bench::open(&place, resuming(&place, &program));
        let task = bench.run(bench.ended(&id));
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(usage(&task)["inputTokens"], 140, "{scope}");
    }
}

#[test]
fn a_message_is_found_whatever_ids_the_client_gives() {
    let place = Place::new();
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let bench = Bench::open(&place, resuming(&place, program));
    let id = bench.run(async {
        let same = |text: &str, task| Said(Message { message_id: "m".into(), task_id: task, ..Said::from(text).0 });
        let id = bench.start(same("one", None)).await;
        bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
        bench.start(same("two", Some(id.clone()))).await;
        place.allow("end-1");
        bench.until(&id, |task| text(task, "assistant-response").is_some_and(|text| text.ends_with("on2"))).await;
        id
    });
    bench.kill();
    place.allow("end-3");
    let bench = Bench::open(&place, resuming(&place, program));
    bench.run(bench.ended(&id));
    assert_eq!(prompts(&place), ["one".to_owned(), "two".to_owned(), format!("{GO_ON}\n\ntwo")]);
}

#[test]
fn a_session_is_not_taken_up_by_another_program() {
    let program = "text on; await never";
    let named =
        |place: &Place, name: &str| Worker::new(Resuming::new(place.asking(&format!("{BEGIN} {program}"))).named(name));
    // The operator has changed the agent's program, or which of its programs does what.
    for is_known in [false, true] {
        let place = Place::new();
        let settings = |routine: &str, mid: &str| {
            let worker = |name| named(&place, name);
            let workers = ByDifficulty {
                complex: worker(mid),
                mid: worker(mid),
                routine: worker(routine),
                classifier: Classifier::default(),
            };
            let workers = Workers::ByDifficulty(Box::new(workers));
            Settings { workers, ..Settings::new("coder", worker(mid), place.work()) }
        };
        let bench = Bench::open(&place, settings("first", "second"));
        let id = bench.run(async {
            let id = bench.start("fix a typo").await;
            bench.until(&id, |task| text(task, "assistant-response").is_some()).await;
            id
        });
        bench.kill();
        let now = if is_known { settings("second", "first") } else { settings("third", "second") };
        let bench = Bench::open(&place, now);
        let task = bench.run(bench.ended(&id));
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
        assert!(status_text(&task).ends_with("send the message again in the same context"), "{}", status_text(&task));
        assert_eq!(starts(&place).len(), 1);
    }
}

#[test]
fn what_is_allowed_for_the_task_is_allowed_in_its_later_runs() {
    let place = Place::new();
    let program = "ask \"r$run\" Bash; hear; text \"on$run\"; await \"end-$run\"; finish ok";
    let bench = Bench::open(&place, resuming(&place, program));
    let id = bench.run(async {
        let asked = bench.send("one").await;
        bench.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("always").0 })).await;
        bench.until(&asked.id, |task| text(task, "assistant-response").is_some()).await;
        // The next turn of the same task, and the one that is recovered after it.
        bench.start(Said(Message { task_id: Some(asked.id.clone()), ..Said::from("two").0 })).await;
        place.allow("end-1");
        let goes_on = |task: &switchboard_a2a::Task| text(task, "assistant-response").unwrap().ends_with("on2");
        bench.until(&asked.id, goes_on).await;
        asked.id
    });
    bench.kill();
    place.allow("end-3");
    let bench = Bench::open(&place, resuming(&place, program));
    let task = bench.run(bench.ended(&id));
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(decisions(&place), ["allow", "allow", "allow"]);
    assert_eq!(task.history.iter().filter(|message| message.joined_text().starts_with("Approve:")).count(), 1);
}

#[test]
fn tasks_of_a_conversation_go_on_in_their_order() {
    let place = Place::new();
    let program = "text \"on$run\"; await \"end-$run\"; finish ok";
    let bench = Bench::open(&place, resuming(&place, program));
    let texts = ["one", "two", "three", "four", "five"];
    let ids = bench.run(async {
        let mut ids = Vec::new();
        for text in texts {
            ids.push(bench.start(within("c", text)).await);
        }
        bench.until(&ids[0], |task| text(task, "assistant-response").is_some()).await;
        ids
    });
    bench.kill();
    for run in 2..8 {
        place.allow(&format!("end-{run}"));
    }
    let bench = Bench::open(&place, resuming(&place, program));
    bench.run(async {
        for id in &ids {
            assert_eq!(bench.ended(id).await.status.state, TaskState::Completed);
        }
    });
    let expected = ["one", &format!("{GO_ON}\n\none"), "two", "three", "four", "five"];
    assert_eq!(prompts(&place), expected);
}
