//! Agents that hold something alive while they work and while they wait: their places, their questions, their costs.

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
    let kernel = Kernel::serving(folder.path(), Hosted::new(AGENT, asker()).switches(switches));
    kernel.run(async {
        let first = kernel.send("ask").await;
        kernel.reach(first.id(), TaskState::InputRequired).await;
        let second = kernel.send("quick").await;
        let waiting = kernel.get(second.id()).await.unwrap();
        assert_eq!(waiting.status.state, TaskState::Submitted);
        let metadata = waiting.metadata.unwrap();
        assert_eq!(metadata.get(QUEUE_POSITION_KEY).unwrap().as_str(), "1");
        let reason = metadata.get(QUEUE_REASON_KEY).unwrap().as_text().unwrap();
        assert_eq!(reason, "the one place of this agent is taken by a task that waits for an answer");
        kernel.say(first.id(), "go").await.unwrap();
        kernel.reach(second.id(), TaskState::Completed).await;
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
        // With two questions open nobody can say which is meant, and with none there is nothing to answer.
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
            assert_eq!(usage, r#"{"inputTokens":7,"outputTokens":2,"costUsd":0.5}"#);
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
fn the_other_tasks_of_a_conversation_can_be_read_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let earlier = task.context_tasks(2).await;
        let said: Vec<String> = earlier.iter().map(|task| task.history[0].joined_text()).collect();
        Ok(task.complete_with(format!("{}: {}", turn.text(), said.join(", "))).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        for (text, context, answer) in [
            ("one", "c", "one: "),
            ("apart", "d", "apart: "),
            ("two", "c", "two: one"),
            ("three", "c", "three: two, one"),
            ("four", "c", "four: three, two"),
        ] {
            let sent = kernel.try_send(in_context(text, context)).await.unwrap();
            assert_eq!(status_text(&answer_task(&sent).await), answer);
            kernel.clock.advance(std::time::Duration::from_millis(5));
        }
    });
}
