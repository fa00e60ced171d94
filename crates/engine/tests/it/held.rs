//! Agents that hold something alive while they work and while they wait: their permits, questions and usage.

use std::time::Duration;

use switchboard_a2a::{ContextId, Message, TaskState};
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::reason::{REASON_DETAIL_KEY, REASON_KEY, Reason};
use switchboard_engine::*;

use crate::kernel::*;

/// Asks, and repeats the answer.
fn asker() -> Script {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "quick" {
            return Ok(task.complete_with("done").await?);
        }
        let answer = task.ask("may I?").await?;
        Ok(task.complete_with(answer.joined_text()).await?)
    });
    let mut script = script.with(|manifest| manifest.park = Park::Never);
    script.answers = &["y", "n"];
    script
}

fn in_context(text: &str, context: &str) -> Message {
    Message { context_id: Some(ContextId::from(context)), ..message(text) }
}

#[test]
fn a_waiting_agent_keeps_its_place_and_the_queue_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    let kernel = Kernel::serving(folder.path(), Hosted::serving(AGENT, Served::new(asker()).switches(switches)));
    kernel.run(async {
        let first = kernel.send("ask").await;
        kernel.reach(first.id(), TaskState::InputRequired).await;
        let second = kernel.send("quick").await;
        let reason = loop {
            let waiting = kernel.get(second.id()).await.unwrap();
            assert_eq!(waiting.status.state, TaskState::Submitted);
            let metadata = waiting.metadata.unwrap();
            assert_eq!(metadata.get(QUEUE_POSITION_KEY).unwrap().as_str(), "1");
            let reason = metadata.get(QUEUE_REASON_KEY).unwrap().as_text().unwrap();
            // The agent counts as asking a moment after its question is stored.
            if reason != "the one slot of this agent is taken" {
                break reason;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(reason, "the one slot of this agent is taken by a task that waits for an answer");
        kernel.say(first.id(), "go").await.unwrap();
        kernel.reach(second.id(), TaskState::Completed).await;
    });
}

#[test]
fn a_stop_waits_for_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let day = Duration::from_secs(86_400);
    let settings = Settings { drain: day, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), asker(), settings);
    kernel.run(async {
        let asked = kernel.send("ask").await;
        kernel.reach(asked.id(), TaskState::InputRequired).await;
        kernel.stop_before(day).await;
    });
}

#[test]
fn an_answer_finds_the_one_question_of_its_conversation_and_other_messages_begin_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::hosting(folder.path(), asker());
    kernel.run(async {
        let asked = kernel.try_send(in_context("ask", "c")).await.unwrap();
        kernel.reach(asked.id(), TaskState::InputRequired).await;
        let elsewhere = kernel.try_send(in_context("y", "other")).await.unwrap();
        assert_ne!(elsewhere.id(), asked.id(), "another conversation's answer");
        let other = kernel.try_send(in_context("quick", "c")).await.unwrap();
        assert_ne!(other.id(), asked.id(), "no answer at all");
        let answer = kernel.try_send(in_context("y", "c")).await.unwrap();
        assert_eq!(answer.id(), asked.id());
        assert_eq!(status_text(&answer_task(&answer).await), "y");
        // With two questions open the kernel cannot say which is meant, and with none there is nothing to answer.
        let pair = [
            kernel.try_send(in_context("ask", "d")).await.unwrap(),
            kernel.try_send(in_context("ask", "d")).await.unwrap(),
        ];
        for asked in &pair {
            kernel.reach(asked.id(), TaskState::InputRequired).await;
        }
        let unclear = kernel.try_send(in_context("n", "d")).await.unwrap();
        assert!(pair.iter().all(|asked| asked.id() != unclear.id()));
        let late = kernel.try_send(in_context("y", "c")).await.unwrap();
        assert_ne!(late.id(), asked.id());
    });
}

#[test]
fn an_ending_says_why_and_what_it_cost() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        task.usage(Usage { input_tokens: 7, output_tokens: 2, cost_usd: 0.5 }).await?;
        match turn.text().as_str() {
            "fail" => task.fail_because(Reason::TimedOut, Some("too_slow"), "took too long").await?,
            "hold" => task.canceled().await,
            _ => task.complete_with("done").await?,
        }
        Ok(())
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        for text in ["fail", "fine", "hold"] {
            let sent = kernel.send(text).await;
            if text == "hold" {
                kernel.cancel(sent.id()).await.unwrap();
            }
            let task = answer_task(&sent).await;
            let usage = task.metadata.as_ref().unwrap().get(USAGE_KEY).unwrap().as_str().to_owned();
            let own = r#"{"inputTokens":7,"outputTokens":2,"costUsd":0.5}"#;
            let flat = own.trim_matches(['{', '}']);
            assert_eq!(usage, format!(r#"{{{flat},"own":{own},"tree":{own}}}"#), "a task without children is its tree");
            let log = kernel.log(sent.id()).await;
            let last = log.last().unwrap().frame(switchboard_a2a::Dialect::V1, false).unwrap();
            let last = String::from_utf8(last.to_vec()).unwrap();
            assert!(last.contains(r#""switchboard/usage":{"inputTokens":7"#), "{last}");
            if text == "fail" {
                assert_eq!(task.status.state, TaskState::Failed);
                assert_eq!(status_text(&task), "took too long");
                assert!(last.contains(&format!(r#""{REASON_KEY}":"timed_out""#)), "{last}");
                assert!(last.contains(&format!(r#""{REASON_DETAIL_KEY}":"too_slow""#)), "{last}");
            }
        }
    });
}

#[test]
fn what_a_task_notes_later_ones_of_its_conversation_find() {
    let folder = tempfile::tempdir().unwrap();
    let script = || {
        Script::new(|turn: Turn, task: TaskHandle| async move {
            let noted = task.noted().await?.and_then(|noted| noted.as_text()).unwrap_or_default();
            if turn.text() != "silent" {
                task.note(&turn.text()).await?;
            }
            Ok(task.complete_with(format!("{}: {noted}", turn.text())).await?)
        })
    };
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        for (text, context, answer) in [
            ("one", "c", "one: "),
            ("apart", "d", "apart: "),
            ("two", "c", "two: one"),
            ("silent", "c", "silent: two"),
            ("three", "c", "three: two"),
        ] {
            let sent = kernel.try_send(in_context(text, context)).await.unwrap();
            assert_eq!(status_text(&answer_task(&sent).await), answer);
            kernel.clock.advance(Duration::from_millis(5));
        }
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    let sent = kernel.run(kernel.try_send(in_context("four", "c"))).unwrap();
    assert_eq!(status_text(&kernel.run(answer_task(&sent))), "four: three", "also after a restart");
}

/// Tells what it has cost, asks, and holds on after the answer. Recovered, it says what it finds of its first message.
fn holds_after_the_answer() -> Script {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause == Cause::Recovered {
            let newest = format!("{} {:?}", turn.text(), turn.seq);
            let turn = task.turn_on(Seq(1), turn).await?;
            let hint = turn.metadata.as_ref().and_then(|all| all.get("hint")?.as_text()).unwrap_or_default();
            let found = format!("{newest}; {} {:?} {} {hint}", turn.text(), turn.seq, turn.profile().unwrap_or("none"));
            return Ok(task.complete_with(found).await?);
        }
        task.usage(Usage { input_tokens: 7, output_tokens: 2, cost_usd: 0.5 }).await?;
        task.ask("may I?").await?;
        task.status("on").await?;
        task.canceled().await;
        Ok(())
    });
    script.with(|manifest| manifest.park = Park::Never)
}

async fn answered(kernel: &Kernel) -> switchboard_a2a::TaskId {
    // Clients are known to give every message the same id.
    let same = |text: &str, task_id| Message { message_id: "m".into(), task_id, ..message(text) };
    let metadata = |json: &str| Some(serde_json::from_str(json).unwrap());
    let first =
        IncomingMessage { metadata: metadata(r#"{"profile":"slow","hint":"own"}"#), ..request(same("build", None)) };
    let sent = kernel.send_as(&Caller::local(), first).await.unwrap();
    kernel.reach(sent.id(), TaskState::InputRequired).await;
    let answer = same("y", Some(sent.id().clone()));
    let answer = IncomingMessage { metadata: metadata(r#"{"profile":"fast","hint":"later"}"#), ..request(answer) };
    kernel.send_as(&Caller::local(), answer).await.unwrap();
    while status_text(&kernel.get(sent.id()).await.unwrap()) != "on" {
        tokio::task::yield_now().await;
    }
    sent.id().clone()
}

#[test]
fn a_lost_turn_finds_its_message_by_number_with_what_came_along() {
    for (recovery, newest) in [(Recovery::Resume, "y Seq(4)"), (Recovery::Restart, "build Seq(1)")] {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::open(folder.path(), holds_after_the_answer());
        let id = kernel.run(answered(&kernel));
        kernel.kill();
        let kernel = Kernel::open(folder.path(), holds_after_the_answer().recovering(recovery));
        let task = kernel.run(kernel.reach(&id, TaskState::Completed));
        assert_eq!(status_text(&task), format!("{newest}; build Seq(1) slow own"));
    }
}

#[test]
fn an_ending_that_the_server_writes_says_what_the_work_cost() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), holds_after_the_answer());
    let id = kernel.run(answered(&kernel));
    kernel.kill();
    let kernel = Kernel::open(folder.path(), holds_after_the_answer());
    kernel.run(async {
        let task = kernel.ended(&id).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
        assert_eq!(last_usage(&kernel, &id).await, 7);
    });
    let folder = tempfile::tempdir().unwrap();
    let parks = holds_after_the_answer().with(|manifest| manifest.park = Park::Allowed);
    let kernel = Kernel::open(folder.path(), parks);
    kernel.run(async {
        let sent = kernel.send("ask").await;
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        kernel.cancel(sent.id()).await.unwrap();
        assert_eq!(last_usage(&kernel, sent.id()).await, 7, "of a task that no turn works on");
    });
}

/// The tokens that a task's last event tells of.
async fn last_usage(kernel: &Kernel, id: &switchboard_a2a::TaskId) -> u64 {
    let log = kernel.log(id).await;
    let frame = log.last().unwrap().frame(switchboard_a2a::Dialect::V1, false).unwrap();
    let frame: serde_json::Value = serde_json::from_slice(&frame).unwrap();
    frame["statusUpdate"]["metadata"][USAGE_KEY]["inputTokens"].as_u64().unwrap()
}
