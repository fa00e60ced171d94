//! Panics around an agent and not in it: in the check of its result, in what it saves at a stop, in the kernel's own code. No
//! task is left behind.

use std::sync::Arc;

use switchboard_a2a::{Task, TaskState};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

/// Cannot judge anything.
struct Broken;

impl ResultCheck for Broken {
    fn check(&self, _task: &Task, skill: &str) -> ResultVerdict {
        panic!("no idea what {skill} is")
    }
}

#[test]
fn a_task_whose_result_cannot_be_checked_for_a_panic_fails_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move { Ok(task.complete_with("done").await?) });
    for script in [script.clone(), script.early()] {
        let kernel =
            Kernel::serving(folder.path(), Hosted::serving(AGENT, Served::new(script).checked(Arc::new(Broken))));
        kernel.run(async {
            let mut asked = message("draw");
            asked.metadata = serde_json::from_str(r#"{"skill":"draw"}"#).unwrap();
            let sent = kernel.send_and_wait(asked).await.unwrap();
            let task = kernel.ended(sent.id()).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "panic"));
            assert!(status_text(&task).contains("no idea what draw is"), "{}", status_text(&task));
            // Without a skill there is nothing to check.
            assert_eq!(answer_task(&kernel.send("anything").await).await.status.state, TaskState::Completed);
        });
        kernel.kill();
    }
}

#[test]
fn a_stop_that_cannot_ask_a_run_what_to_save_marks_it_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let script = || {
        let script = Script::new(|turn: Turn, task: TaskHandle| async move {
            if turn.cause == Cause::Recovered {
                let saved: u32 = turn.saved.map_or(0, |saved| saved.read().unwrap());
                return Ok(task.complete_with(format!("went on from {saved}, stopped: {}", turn.was_stopped)).await?);
            }
            let _save = task.save_at_shutdown(|| -> u32 { panic!("cannot tell") });
            task.save(&41).await?;
            task.status("at work").await?;
            std::future::pending().await
        });
        script.recovering(Recovery::Resume)
    };
    let kernel = Kernel::open(folder.path(), script());
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        sent.id().clone()
    });
    kernel.stop();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Completed).await;
        assert_eq!(status_text(&task), "went on from 41, stopped: true");
    });
}

#[test]
fn a_turn_whose_driver_panics_is_taken_up_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let to_go = go.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let go = to_go.clone();
        async move {
            if turn.cause == Cause::Recovered {
                return Ok(task.complete_with("went on").await?);
            }
            task.status("at work").await?;
            go.notified().await;
            Ok(task.complete_with("done").await?)
        }
    });
    let faults = Faults::default();
    let script = script.recovering(Recovery::Resume);
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        faults.panic_at_append();
        go.notify_one();
        assert_eq!(status_text(&answer_task(&sent).await), "went on");
    });
}

#[test]
fn a_sender_whose_first_commit_panics_is_told_that_its_message_was_not_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move { Ok(task.complete_with("done").await?) });
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script.early(), Settings::default(), &faults);
    kernel.run(async {
        for _ in 0..2 {
            faults.panic_at_append();
            let refused = kernel.send_and_wait(message("go")).await.err().unwrap();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
        }
        assert_eq!(answer_task(&kernel.send("go").await).await.status.state, TaskState::Completed);
    });
}
