//! Turns that wait for other turns and release their run permit meanwhile.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Task, TaskState};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::kernel::*;

/// `aside` waits for the bell without a place, `ready` has nothing to wait for, `hold` keeps its place until it is canceled.
fn script(bell: &Arc<Notify>) -> Script {
    let bell = bell.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let bell = bell.clone();
        async move {
            task.status("begun").await?;
            match turn.text().as_str() {
                "aside" => task.release_permit_while(bell.notified()).await?,
                "ready" => task.release_permit_while(async {}).await?,
                "hold" => {
                    task.canceled().await;
                    return Err(Stopped::Canceled.into());
                }
                _ => {}
            }
            Ok(task.complete_with("done").await?)
        }
    })
}

fn one_place(folder: &std::path::Path, bell: &Arc<Notify>) -> Kernel {
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    Kernel::serving(folder, Hosted::serving(AGENT, Served::new(script(bell)).switches(switches)))
}

fn position(task: &Task) -> Option<String> {
    Some(task.metadata.as_ref()?.get(QUEUE_POSITION_KEY)?.as_str().to_owned())
}

#[test]
fn a_turn_that_waits_for_another_leaves_its_place_and_comes_back_before_those_that_have_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(Notify::new());
    let kernel = one_place(folder.path(), &bell);
    kernel.run(async {
        let aside = kernel.send("aside").await;
        kernel.reach(aside.id(), TaskState::Working).await;
        assert_eq!(answer_task(&kernel.send("quick").await).await.status.state, TaskState::Completed);
        assert_eq!(kernel.get(aside.id()).await.unwrap().status.state, TaskState::Working);
        let holds = kernel.send("hold").await;
        kernel.reach(holds.id(), TaskState::Working).await;
        let late = kernel.send("hold").await;
        assert_eq!(position(&kernel.get(late.id()).await.unwrap()).as_deref(), Some("1"));
        bell.notify_one();
        let returning = loop {
            let task = kernel.get(aside.id()).await.unwrap();
            if position(&task).is_some() {
                break task;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(position(&returning).as_deref(), Some("1"), "before the one that has not begun");
        let reason = returning.metadata.unwrap().get(QUEUE_REASON_KEY).unwrap().as_text().unwrap();
        assert_eq!(reason, "the one slot of this agent is taken");
        assert_eq!(position(&kernel.get(late.id()).await.unwrap()).as_deref(), Some("2"));
        kernel.cancel(holds.id()).await.unwrap();
        kernel.reach(aside.id(), TaskState::Completed).await;
        kernel.reach(late.id(), TaskState::Working).await;
    });
}

#[test]
fn a_turn_that_is_canceled_aside_or_on_its_way_back_takes_no_place_along() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(Notify::new());
    let kernel = one_place(folder.path(), &bell);
    kernel.run(async {
        for is_returning in [false, true] {
            let aside = kernel.send("aside").await;
            kernel.reach(aside.id(), TaskState::Working).await;
            let holds = kernel.send("hold").await;
            kernel.reach(holds.id(), TaskState::Working).await;
            if is_returning {
                bell.notify_one();
                while position(&kernel.get(aside.id()).await.unwrap()).is_none() {
                    tokio::task::yield_now().await;
                }
            }
            assert_eq!(kernel.cancel(aside.id()).await.unwrap().status.state, TaskState::Canceled);
            kernel.cancel(holds.id()).await.unwrap();
            assert_eq!(answer_task(&kernel.send("quick").await).await.status.state, TaskState::Completed);
        }
    });
}

#[test]
fn a_turn_that_need_not_wait_keeps_its_permit_and_a_full_queue_releases_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(Notify::new());
    let kernel = one_place(folder.path(), &bell);
    kernel.run(async {
        for _ in 0..20 {
            assert_eq!(answer_task(&kernel.send("ready").await).await.status.state, TaskState::Completed);
        }
    });
    kernel.kill();
    let settings = Settings { running_tasks: 1, queued_turns: 0, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(&bell), settings);
    kernel.run(async {
        let aside = kernel.send("aside").await;
        kernel.reach(aside.id(), TaskState::Working).await;
        assert!(kernel.try_send(message("quick")).await.is_err(), "too many turns of its agent wait");
        bell.notify_one();
        kernel.reach(aside.id(), TaskState::Completed).await;
    });
    kernel.kill();
    let settings = Settings { running_tasks: 1, queued_turns: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(&bell), settings);
    kernel.run(async {
        let first = kernel.send("aside").await;
        kernel.reach(first.id(), TaskState::Working).await;
        let second = kernel.send("aside").await;
        kernel.reach(second.id(), TaskState::Working).await;
        while kernel.try_send(message("quick")).await.is_ok() {
            tokio::task::yield_now().await;
        }
        bell.notify_one();
        kernel.reach(first.id(), TaskState::Completed).await;
        assert_eq!(kernel.get(second.id()).await.unwrap().status.state, TaskState::Working);
        bell.notify_one();
        kernel.reach(second.id(), TaskState::Completed).await;
        assert_eq!(answer_task(&kernel.send("quick").await).await.status.state, TaskState::Completed);
    });
}

#[test]
fn a_shutdown_does_not_wait_for_turns_that_wait_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(Notify::new());
    let day = Duration::from_secs(86_400);
    let settings = Settings { running_tasks: 1, drain: day, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(&bell), settings);
    kernel.run(async {
        let aside = kernel.send("aside").await;
        kernel.reach(aside.id(), TaskState::Working).await;
        kernel.stop_before(day).await;
    });
}
