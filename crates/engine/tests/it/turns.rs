//! Turns: questions and answers, messages that wait, and what survives being put away.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use switchboard_a2a::TaskState;
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

fn asker() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let answer = match turn.cause {
            Cause::Answer { question } => {
                let question = question.expect("the question is told again").joined_text();
                assert_eq!(question, "which city?");
                let saved: String = turn.saved.expect("saved before the question").read().unwrap();
                assert_eq!(saved, "notes");
                format!("again: {}", turn.message.joined_text())
            }
            _ => {
                task.save(&"notes").await?;
                format!("direct: {}", task.ask("which city?").await?.joined_text())
            }
        };
        Ok(task.complete_with(answer).await?)
    })
}

#[test]
fn an_answer_arrives_as_a_return_value() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        let asked = kernel.send("weather").await;
        let task = answer_task(&asked).await;
        assert_eq!(task.status.state, TaskState::InputRequired);
        assert_eq!(status_text(&task), "which city?");
        let told = kernel.say(&task.id, "Bern").await.unwrap();
        let task = answer_task(&told).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(status_text(&task), "direct: Bern");
        let said: Vec<_> = task.history.iter().map(|message| message.joined_text()).collect();
        assert_eq!(said, ["weather", "which city?", "Bern"]);
        let times = kernel.log(&task.id).await;
        assert_eq!(times.last().unwrap().kind, EventKind::Status(TaskState::Completed));
    });
}

#[test]
fn an_agent_that_was_put_away_gets_its_answer_in_a_new_run() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let (script, runs) = asker().counted();
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    let id = kernel.run(async { answer_task(&kernel.send("weather").await).await.id });
    kernel.run(async {
        runs.until_none(|| ()).await;
        let told = kernel.say(&id, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bern");
    });
}

#[test]
fn an_agent_is_put_away_after_the_park_time_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let settings = Settings { parked_expiry: century, ..Settings::default() };
    let (script, runs) = asker().counted();
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    let (first, second) = kernel.run(async {
        let first = answer_task(&kernel.send("weather").await).await.id;
        let second = answer_task(&kernel.send("weather").await).await.id;
        // A run that still waits would take the answer itself.
        runs.until_none(|| kernel.clock.advance(Duration::from_secs(60))).await;
        (first, second)
    });
    kernel.run(async {
        let told = kernel.say(&first, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bern");
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        let told = kernel.say(&second, "Bonn").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bonn");
    });
}

#[test]
fn messages_to_a_running_task_wait_for_it_and_are_never_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.status("ready").await?;
        let first = task.next_message().await?.joined_text();
        while task.snapshot().history.len() < 3 {
            tokio::task::yield_now().await;
        }
        // A message that came before the question is not its answer.
        let answer = task.ask("well?").await?.joined_text();
        let second = task.next_message().await?.joined_text();
        Ok(task.complete_with(format!("{first}, {answer}, {second}")).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("begin").await;
        let id = sent.id().clone();
        kernel.reach(&id, TaskState::Working).await;
        kernel.say(&id, "one").await.unwrap();
        kernel.say(&id, "two").await.unwrap();
        kernel.reach(&id, TaskState::InputRequired).await;
        let told = kernel.say(&id, "three").await.unwrap();
        let task = answer_task(&told).await;
        assert_eq!(status_text(&task), "one, three, two");
    });
}

#[test]
fn completing_with_messages_unread_ends_the_turn_and_not_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause == Cause::Begin {
            task.status("ready").await?;
            while task.snapshot().history.len() < 3 {
                tokio::task::yield_now().await;
            }
        }
        let text = turn.text();
        Ok(task.complete_with(format!("done with {text}")).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("one").await;
        let id = sent.id().clone();
        kernel.reach(&id, TaskState::Working).await;
        kernel.say(&id, "two").await.unwrap();
        kernel.say(&id, "three").await.unwrap();
        let task = kernel.reach(&id, TaskState::Completed).await;
        assert_eq!(status_text(&task), "done with three");
        let said: Vec<_> = task.history.iter().map(|message| message.joined_text()).collect();
        assert!(said.contains(&"done with one".to_owned()) && said.contains(&"done with two".to_owned()), "{said:?}");
    });
}

#[test]
fn an_agent_that_must_not_be_parked_keeps_running_while_it_waits() {
    let folder = tempfile::tempdir().unwrap();
    let script = asker().with(|manifest| manifest.park = Park::Never);
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let task = answer_task(&kernel.send("weather").await).await;
        let told = kernel.say(&task.id, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "direct: Bern");
    });
}

#[test]
fn the_earlier_messages_of_a_conversation_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let earlier: Vec<_> = task.context_history(10).await.iter().map(|message| message.joined_text()).collect();
        let text = turn.text();
        Ok(task.complete_with(format!("{text} after [{}]", earlier.join("; "))).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let first = answer_task(&kernel.send("one").await).await;
        let mut next = message("two");
        next.context_id = Some(first.context_id.clone());
        let second = answer_task(&kernel.try_send(next).await.unwrap()).await;
        assert_eq!(second.context_id, first.context_id);
        assert_eq!(status_text(&second), "two after [one; one after []]");
    });
}

#[test]
fn an_agent_may_ask_and_return_and_a_quick_answer_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let returning = Arc::new(Notify::new());
    let (go, script_go) = (returning.clone(), returning);
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let go = script_go.clone();
        async move {
            if turn.cause != Cause::Begin {
                return Ok(task.complete_with(format!("answered with {}", turn.text())).await?);
            }
            let mut ask = Box::pin(task.ask("more?"));
            assert!(ask.as_mut().now_or_never().is_none());
            // Tidies up while the answer is already on its way.
            go.notified().await;
            Ok(())
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        let answer = kernel.say(sent.id(), "blue").await.unwrap();
        go.notify_one();
        let task = answer_task(&answer).await;
        assert_eq!((task.status.state, status_text(&task).as_str()), (TaskState::Completed, "answered with blue"));
    });
}

#[test]
fn a_handle_of_an_earlier_run_cannot_write_into_a_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Arc::new(std::sync::Mutex::new(None::<TaskHandle>));
    let keep = kept.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let keep = keep.clone();
        async move {
            if turn.cause == Cause::Begin {
                *keep.lock().unwrap() = Some(task.clone());
                task.ask("more?").await?;
                return Ok(());
            }
            task.status("second run").await?;
            task.canceled().await;
            Ok(())
        }
    });
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let (script, runs) = script.counted();
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let sent = kernel.send("go").await;
        answer_task(&sent).await;
        runs.until_none(|| ()).await;
        kernel.say(sent.id(), "answer").await.unwrap();
        while status_text(&kernel.get(sent.id()).await.unwrap()) != "second run" {
            tokio::task::yield_now().await;
        }
        let stale = kept.lock().unwrap().clone().unwrap();
        assert_eq!(stale.complete_with("from the run that was put away").await, Err(Stopped::Lost));
        assert_eq!(kernel.get(sent.id()).await.unwrap().status.state, TaskState::Working);
    });
}

#[test]
fn a_message_larger_than_the_uncommitted_limit_is_served_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        task.artifact(switchboard_a2a::Artifact::new(turn.message.parts)).await?;
        Ok(task.complete().await?)
    });
    let kernel = Kernel::open(folder.path(), script.early());
    kernel.run(async {
        let task = answer_task(&kernel.send(&"x".repeat(1 << 20)).await).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.artifacts[0].parts[0].as_text().unwrap().len(), 1 << 20);
    });
}

#[test]
fn an_early_agent_that_waits_first_does_not_hold_its_message_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.canceled().await;
        Ok(())
    });
    let kernel = Kernel::open(folder.path(), script.early());
    kernel.run(async {
        let sent = kernel.send("go").await;
        assert_eq!(kernel.get(sent.id()).await.unwrap().status.state, TaskState::Submitted);
        kernel.cancel(sent.id()).await.unwrap();
    });
}

#[test]
fn a_follow_ups_stream_begins_with_the_task_at_work_again() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        let task = answer_task(&kernel.send("weather").await).await;
        let told = kernel.say(&task.id, "Bern").await.unwrap();
        let SendStream::Task(Subscription { first: Some((_, first)), .. }) =
            told.stream(StreamEnd::Terminal, None).await
        else {
            panic!("no first frame")
        };
        assert_eq!((first.status.state, first.history.len()), (TaskState::Working, 3));
    });
}

#[test]
fn what_was_said_is_read_once_while_it_does_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        let earlier = task.context_history(100).await.len();
        Ok(task.complete_with(earlier.to_string()).await?)
    });
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        for turn in 0..20 {
            let mut said = message("hello");
            said.context_id = Some("conversation".into());
            let task = answer_task(&kernel.try_send(said).await.unwrap()).await;
            assert_eq!(status_text(&task), (turn * 2).to_string());
        }
    });
    assert!(faults.loads() < 40, "{} loads for 20 turns", faults.loads());
}
