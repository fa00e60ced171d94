//! Answers and the questions they belong to: each decides one question, once.

use serde_json::{Value, json};
use switchboard_a2a::{Message, Part, TaskState};

use crate::approvals::written;
use crate::fixture::Fixture;
use crate::harness::*;

const ASKS_TWICE: &str = "hear; ask r1 Bash; hear; ask r2 Edit; hear; finish ok";

#[test]
fn data_decides_the_question_it_names() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(ASKS_TWICE));
    harness.run(async {
        let first = harness.send("go").await;
        let id = question(&first)["approvalId"].clone();
        let second = harness.reply(&first, json!({"approvalId": id, "decision": "deny", "reason": "use rg"})).await;
        let id = question(&second)["approvalId"].clone();
        let done = harness.reply(&second, json!({"approvalId": id, "decision": "allow"})).await;
        assert_eq!(done.status.state, TaskState::Completed);
        assert_eq!(
            written(&fixture),
            [
                json!({"kind": "approval", "request": "r1", "decision": "deny", "reason": "use rg"}),
                json!({"kind": "approval", "request": "r2", "decision": "allow"}),
            ]
        );
    });
}

#[test]
fn an_answer_that_is_unclear_decides_nothing_and_the_question_stays() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send("go").await;
        for unclear in ["yes, but not in /etc", "what does it do?", "maybe"] {
            let again = harness.reply(&asked, unclear).await;
            let expected = "That was neither a yes nor a no.\nApprove: Use Bash for r1?";
            assert!(status_text(&again).starts_with(expected), "{}", status_text(&again));
            assert_eq!(question(&again)["approvalId"], question(&asked)["approvalId"]);
        }
        let again = harness.reply(&asked, json!({"decision": "perhaps"})).await;
        assert_eq!(question(&again)["approvalId"], question(&asked)["approvalId"]);
        assert_eq!(written(&fixture), Vec::<Value>::new());
        assert_eq!(harness.reply(&asked, "y").await.status.state, TaskState::Completed);
    });
}

#[test]
fn an_answer_to_another_question_is_refused_as_expired() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings(ASKS_TWICE));
    harness.run(async {
        let first = harness.send("go").await;
        let old = question(&first)["approvalId"].clone();
        let second = harness.reply(&first, json!({"approvalId": old, "decision": "deny"})).await;
        let again = harness.reply(&second, json!({"approvalId": old, "decision": "allow"})).await;
        let expected = format!(
            "The approval {} has expired; this is the one that is open.\nApprove: Use Edit for r2?",
            old.as_str().unwrap()
        );
        assert!(status_text(&again).starts_with(&expected), "{}", status_text(&again));
        assert_eq!(question(&again)["approvalId"], question(&second)["approvalId"]);
        assert_eq!(written(&fixture).len(), 1, "only the first was decided");
        assert_eq!(harness.reply(&again, "n").await.status.state, TaskState::Completed);
        assert_eq!(written(&fixture)[1]["decision"], "deny");
    });
}

#[test]
fn the_same_answer_twice_does_nothing_the_second_time() {
    let fixture = Fixture::new();
    let program =
        "note starts \"$(cat \"$NOTES/starts\" 2>/dev/null)x\"; hear; ask r1 Bash; hear; await end; finish Removed.";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        let answer = json!({"approvalId": question(&asked)["approvalId"], "decision": "allow"});
        let twice = |answer: &Value| Said(Message { task_id: Some(asked.id.clone()), ..Said::from(answer.clone()).0 });
        harness.start(twice(&answer)).await;
        harness.wait_for(|| (written(&fixture).len() == 1).then_some(())).await;
        harness.start(twice(&answer)).await;
        fixture.allow("end");
        let done = harness.ended(&asked.id).await;
        assert_eq!(done.status.state, TaskState::Completed, "{}", status_text(&done));
        assert_eq!((written(&fixture).len(), fixture.noted("starts").as_deref()), (1, Some("x")));
        let told = harness.told(&asked.id).await;
        assert!(told.iter().any(|told| told.contains("was answered already; nothing was done")), "{told:?}");
        assert!(told.iter().any(|told| told.contains("Removed.")), "{told:?}");
        assert!(harness.try_send(twice(&answer).0).await.is_err(), "the task has ended");
    });
}

#[test]
fn an_answer_with_the_conversation_alone_finds_its_question() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send(within("c", "go")).await;
        let done = harness.send(within("c", "y")).await;
        assert_eq!((&done.id, done.status.state), (&asked.id, TaskState::Completed));
        let asked = harness.send(within("c", "go")).await;
        let id = question(&asked)["approvalId"].clone();
        let answer = || Said::from(json!({"approvalId": id, "decision": "deny"}));
        let elsewhere = harness.send(answer().within("other")).await;
        assert_ne!(elsewhere.id, asked.id);
        assert_eq!(elsewhere.status.state, TaskState::Rejected);
        let done = harness.send(answer().within("c")).await;
        assert_eq!((&done.id, done.status.state), (&asked.id, TaskState::Completed));
        let decisions: Vec<Value> =
            fixture.heard().iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
        assert_eq!((&decisions[1]["decision"], &decisions[3]["decision"]), (&json!("allow"), &json!("deny")));
    });
}

#[test]
fn an_answer_of_the_programs_own_is_offered_and_taken() {
    let fixture = Fixture::new();
    let program = r#"hear; tell '{"kind":"approval_required","request":7,"tool":"Plan","prompt":"Go","choices":[{"id":"later","label":"Later"},{"id":"sure","label":"Sure","kind":"allow_always"}]}'
        hear; finish ok"#;
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let asked = harness.send("go").await;
        assert!(status_text(&asked).ends_with("It also takes later."), "{}", status_text(&asked));
        let options = question(&asked)["options"].clone();
        assert_eq!(options[3], json!({"id": "later", "label": "Later"}));
        assert_eq!(harness.reply(&asked, "later").await.status.state, TaskState::Completed);
        let expected = json!({"kind": "approval", "request": 7, "decision": "choose", "choice": "later"});
        assert_eq!(written(&fixture), [expected]);
    });
}

#[test]
fn a_no_is_a_no_whatever_a_program_calls_its_own_answers() {
    let fixture = Fixture::new();
    let ask = r#"{"kind":"approval_required","request":"r","choices":[{"id":"n","label":"Go ahead"},{"id":"deny"}]}"#;
    let harness =
        Harness::open(&fixture, fixture.settings(&format!("hear; tell '{ask}'; hear; tell '{ask}'; hear; finish ok")));
    harness.run(async {
        let asked = harness.send("go").await;
        let text = status_text(&asked);
        assert!(text.ends_with("It also takes option-n (Go ahead), option-deny (deny)."), "{text}");
        let options = question(&asked)["options"].clone();
        assert_eq!(options[3], json!({"id": "option-n", "label": "Go ahead"}));
        let asked = harness.reply(&asked, "n").await;
        assert_eq!(harness.reply(&asked, json!({"optionId": "option-n"})).await.status.state, TaskState::Completed);
        let no = json!({"kind": "approval", "request": "r", "decision": "deny"});
        let own = json!({"kind": "approval", "request": "r", "decision": "choose", "choice": "n"});
        assert_eq!(written(&fixture), [no, own]);
    });
}

#[test]
fn a_second_yes_that_comes_while_no_question_is_open_decides_nothing_and_is_no_work() {
    let fixture = Fixture::new();
    let program = "hear; ask r1 Bash; hear; note first yes; await ask; ask r2 Edit; hear; finish Done.";
    let harness = Harness::open(&fixture, fixture.settings(program));
    harness.run(async {
        let first = harness.send(within("c", "go")).await;
        let again = |answer: Said| Said(Message { task_id: Some(first.id.clone()), ..answer.0 });
        harness.start(again("y".into())).await;
        harness.noted(&fixture, "first").await;
        for late in [Said::from("y"), Said::from("Yes."), Said::from(json!({"decision": "allow"}))] {
            harness.start(again(late)).await;
        }
        // One that names only the conversation would have to be work for it.
        let elsewhere = harness.send(within("c", "y")).await;
        assert_eq!(elsewhere.status.state, TaskState::Rejected);
        let expected = "\"y\" answers no question that is open in this conversation";
        assert!(status_text(&elsewhere).starts_with(expected), "{}", status_text(&elsewhere));
        fixture.allow("ask");
        let second = harness.until(&first.id, |task| task.status.state == TaskState::InputRequired).await;
        assert_eq!(question(&second)["tool"], "Edit");
        // Had one of the late answers decided it, that decision would come before this one.
        harness.start(again("n".into())).await;
        let done = harness.ended(&first.id).await;
        assert_eq!(ending(&done), (TaskState::Completed, "Done.".to_owned()), "its last word stays");
        let decisions: Vec<Value> = written(&fixture).iter().map(|line| line["decision"].clone()).collect();
        assert_eq!(decisions, ["allow", "deny"], "and no prompt after them");
        let told = harness.told(&first.id).await;
        let unasked = told.iter().filter(|told| told.starts_with("WORKING: No question was open when"));
        assert_eq!(unasked.count(), 3, "{told:?}");
    });
}

#[test]
fn a_yes_to_what_a_program_said_at_the_end_is_work() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; finish \"Shall I go on?\""));
    harness.run(async {
        for text in ["go", "yes"] {
            assert_eq!(harness.send(within("c", text)).await.status.state, TaskState::Completed);
        }
        assert_eq!(fixture.heard()[1], r#"{"kind":"prompt","text":"yes"}"#);
    });
}

#[test]
fn an_approval_that_would_begin_a_task_is_refused_as_expired() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send(within("c", "go")).await;
        let id = question(&asked)["approvalId"].as_str().unwrap().to_owned();
        harness.reply(&asked, "y").await;
        for late in [json!({"approvalId": id, "decision": "allow"}), json!({"decision": "allow"})] {
            let is_named = late.get("approvalId").is_some();
            let refused = harness.send(Said::from(late).within("c")).await;
            assert_eq!((refused.status.state, reason(&refused).as_str()), (TaskState::Rejected, "rejected"));
            let expected = if is_named {
                format!("the approval {id} is not open here: it has expired")
            } else {
                "an answer as data has to say what it answers: add the approvalId".to_owned()
            };
            assert!(status_text(&refused).starts_with(&expected), "{}", status_text(&refused));
        }
    });
}

/// Text and data in one message.
fn both(text: &str, data: Value) -> Said {
    let mut said = Said::from(data);
    said.0.parts.insert(0, Part::text(text));
    said
}

#[test]
fn work_that_speaks_of_a_decision_approves_nothing() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send(within("c", "go")).await;
        let decision = json!({"decision": "approve", "title": "use SQLite"});
        let works = [
            both("Write this decision down in DECISIONS.md", decision),
            both("Write this down", json!({"approvalId": question(&asked)["approvalId"], "decision": "allow"})),
            both("y", json!({"approvalId": "PO-1234", "decision": "approve"})),
        ];
        let mut begun = Vec::new();
        for work in works {
            begun.push(harness.start(work.within("c")).await);
        }
        let unnamed = harness.send(Said::from(json!({"decision": "allow"})).within("c")).await;
        assert_eq!(unnamed.status.state, TaskState::Rejected, "{}", status_text(&unnamed));
        for id in &begun {
            assert_ne!(id, &asked.id);
            harness.until(id, |task| status_text(task).starts_with("Waiting: another task")).await;
        }
        assert_eq!(question(&harness.get(&asked.id).await), question(&asked));
        assert_eq!(written(&fixture), Vec::<Value>::new());
        // With its task named it is taken for what it is, and decides nothing either.
        let again = harness.reply(&asked, both("Write this down", json!({"decision": "approve"}))).await;
        assert_eq!(question(&again), question(&asked));
        assert_eq!(harness.reply(&asked, json!({"decision": "deny"})).await.status.state, TaskState::Completed);
        assert_eq!(written(&fixture)[0]["decision"], "deny");
    });
}

#[test]
fn a_first_message_may_speak_of_decisions_and_approvals() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; finish ok"));
    harness.run(async {
        for (text, data) in [
            ("please do what the data says", json!({"decision": "deploy", "env": "prod"})),
            ("choose the database", json!({"approvalId": "PO-1234", "amount": 5})),
            ("please summarise these options", json!({"option": "A", "optionId": "7"})),
            ("write it down", json!({"decision": "allow"})),
        ] {
            let done = harness.send(both(text, data)).await;
            assert_eq!(ending(&done), (TaskState::Completed, "ok".to_owned()), "{text}");
            let heard = fixture.heard().pop().unwrap();
            assert!(heard.contains(text) && heard.contains("Data that came with the message"), "{heard}");
        }
    });
}

#[test]
fn an_answer_that_contradicts_itself_decides_nothing() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; ask r1 Bash; hear; finish ok"));
    harness.run(async {
        let asked = harness.send("go").await;
        let allow = json!({"approvalId": question(&asked)["approvalId"], "decision": "allow"});
        let mut another = Said::from(json!({"decision": "allow"}));
        another.0.parts.extend(Said::from(json!({"approvalId": "x", "decision": "deny"})).0.parts);
        for (answer, note) in [
            (both("n", allow.clone()), "That said several things that do not agree.\n"),
            (another, "The approval x has expired; this is the one that is open.\n"),
            (both("y", json!({"title": "use SQLite"})), "That was more than an answer, which is words alone"),
        ] {
            let again = harness.reply(&asked, answer).await;
            assert!(status_text(&again).starts_with(note), "{}", status_text(&again));
            assert_eq!(question(&again), question(&asked));
        }
        assert_eq!(written(&fixture), Vec::<Value>::new());
        assert_eq!(harness.reply(&asked, both("y", allow)).await.status.state, TaskState::Completed);
        assert_eq!(written(&fixture)[0]["decision"], "allow");
    });
}

#[test]
fn data_that_come_too_late_leave_the_ending_as_it_is() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; note began yes; await end; finish Done."));
    harness.run(async {
        let id = harness.start("go").await;
        harness.noted(&fixture, "began").await;
        for late in [json!({"decision": "later"}), json!({"approvalId": "x", "decision": "allow", "comment": "fine"})] {
            harness.start(Said(Message { task_id: Some(id.clone()), ..Said::from(late).0 })).await;
        }
        fixture.allow("end");
        assert_eq!(ending(&harness.ended(&id).await), (TaskState::Completed, "Done.".to_owned()));
    });
}

#[test]
fn a_bare_yes_while_another_task_runs_is_no_work() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, fixture.settings("hear; note began yes; await end; finish Done."));
    harness.run(async {
        let id = harness.start(within("c", "go")).await;
        harness.noted(&fixture, "began").await;
        let refused = harness.send(within("c", "y")).await;
        let expected = "\"y\" answers no question that is open in this conversation, and another task of it is running: \
                        say what to do";
        assert_eq!(ending(&refused), (TaskState::Rejected, expected.to_owned()));
        fixture.allow("end");
        assert_eq!(harness.ended(&id).await.status.state, TaskState::Completed);
    });
}

#[test]
fn a_no_that_says_what_to_do_is_work_where_no_question_is_open() {
    let fixture = Fixture::new();
    let harness =
        Harness::open(&fixture, fixture.settings("hear; note began yes; await end; tell '{\"kind\":\"done\"}'"));
    harness.run(async {
        let id = harness.start(within("c", "go")).await;
        harness.noted(&fixture, "began").await;
        let next = Message { task_id: Some(id.clone()), ..Said::from("no, use rg instead").0 };
        harness.start(Said(next)).await;
        let other = harness.start(within("c", "no, use grep instead")).await;
        harness.until(&other, |task| status_text(task).starts_with("Waiting: another task")).await;
        fixture.allow("end");
        for id in [&id, &other] {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
        let prompt = |text: &str| format!(r#"{{"kind":"prompt","text":"{text}"}}"#);
        let mut heard = fixture.heard();
        heard.sort();
        assert_eq!(heard, ["go", "no, use grep instead", "no, use rg instead"].map(prompt));
    });
}
