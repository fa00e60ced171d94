//! An agent that waits for an answer and does something else meanwhile: nothing it does leaves the task behind.

use std::sync::Arc;

use switchboard_a2a::{Part, TaskState};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

/// Asks, and gives up in some way when told to, which it says first; holds where that is asked for.
fn impatient(go: &Arc<Notify>, gives_up: &Arc<Notify>, how: &'static str) -> Script {
    let (go, gives_up) = (go.clone(), gives_up.clone());
    Script::new(move |turn: Turn, task: TaskHandle| {
        let (go, gives_up) = (go.clone(), gives_up.clone());
        async move {
            if turn.text() == "hold" {
                task.working().await?;
                task.canceled().await;
                return Ok(());
            }
            if matches!(turn.cause, Cause::Answer { .. }) {
                return Ok(task.complete_with("answered").await?);
            }
            tokio::select! {
                answer = task.ask("well?") => { answer?; }
                () = go.notified() => gives_up.notify_one(),
            }
            match how {
                "fail" => Ok(task.fail("no answer came").await?),
                "return" => Ok(()),
                "error" => Err(AgentError::new("gone")),
                "text" => {
                    task.text("never mind").await?;
                    Ok(task.complete().await?)
                }
                _ => panic!("too long"),
            }
        }
    })
}

#[test]
fn what_an_agent_does_while_its_answer_waits_for_a_place_is_not_lost() {
    let endings = [
        ("fail", TaskState::Failed),
        ("return", TaskState::Completed),
        ("error", TaskState::Failed),
        ("text", TaskState::Completed),
        ("panic", TaskState::Failed),
    ];
    for (how, state) in endings {
        let folder = tempfile::tempdir().unwrap();
        let (go, gives_up) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let settings = Settings { running_tasks: 1, ..Settings::default() };
        let kernel = Kernel::with_settings(folder.path(), impatient(&go, &gives_up, how), settings);
        kernel.run(async {
            let first = kernel.send("go").await;
            assert_eq!(answer_task(&first).await.status.state, TaskState::InputRequired);
            let second = kernel.send("hold").await;
            kernel.reach(second.id(), TaskState::Working).await;
            kernel.say(first.id(), "yes").await.unwrap();
            let task = kernel.get(first.id()).await.unwrap();
            assert!(task.metadata.is_some_and(|all| all.get(QUEUE_POSITION_KEY).is_some()));
            go.notify_one();
            gives_up.notified().await;
            kernel.while_time_passes(kernel.cancel(second.id())).await.unwrap();
            assert_eq!(kernel.ended(first.id()).await.status.state, state, "{how}");
        });
    }
}

#[test]
fn an_ending_that_comes_after_a_cancel_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let (go, gives_up, heard) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (to_go, does_give_up, has_heard) = (go.clone(), gives_up.clone(), heard.clone());
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let (go, gives_up, heard) = (to_go.clone(), does_give_up.clone(), has_heard.clone());
        async move {
            tokio::select! {
                answer = task.ask("well?") => { answer?; }
                () = go.notified() => gives_up.notify_one(),
            }
            assert!(matches!(task.fail("late").await, Err(Stopped::Ended)));
            heard.notify_one();
            Ok(())
        }
    });
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        let sent = kernel.send("go").await;
        assert_eq!(answer_task(&sent).await.status.state, TaskState::InputRequired);
        faults.close_gate();
        let others = async {
            faults.until_held(1).await;
            go.notify_one();
            gives_up.notified().await;
            faults.open_gate();
        };
        let (canceled, ()) = tokio::join!(kernel.cancel(sent.id()), others);
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
        // Without its time being up: the clock stands still.
        heard.notified().await;
    });
}

#[test]
fn a_message_from_before_the_question_is_there_after_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let to_go = go.clone();
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let go = to_go.clone();
        async move {
            task.working().await?;
            go.notified().await;
            let (answer, earlier) = tokio::join!(task.ask("well?"), task.next_message());
            let words = format!("{} {}", answer?.joined_text(), earlier?.joined_text());
            Ok(task.complete_with(words).await?)
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        kernel.say(sent.id(), "early").await.unwrap();
        go.notify_one();
        // Whichever comes first, the message or the question.
        loop {
            let task = kernel.get(sent.id()).await.unwrap();
            if task.status.state == TaskState::InputRequired {
                break;
            }
            tokio::task::yield_now().await;
        }
        kernel.say(sent.id(), "yes").await.unwrap();
        assert_eq!(status_text(&kernel.ended(sent.id()).await), "yes early");
    });
}

#[test]
fn a_reply_over_the_limit_fails_instead_of_leaving_the_sender_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        Ok(task.reply(vec![Part::text("x".repeat(20_000))]).await?)
    })
    .with(|manifest| manifest.replies = Replies::Message);
    let settings = Settings { event_bytes: 8 << 10, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let task = answer_task(&kernel.send("go").await).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "too_large"));
    });
}
