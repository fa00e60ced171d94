//! The moments in which a turn leaves its task: whatever happens in the same moment, the task is not left behind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use switchboard_a2a::TaskState;
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

#[test]
fn a_cancel_while_the_agent_asks_and_returns_ends_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let (go, said) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (to_go, has_said) = (go.clone(), said.clone());
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let (go, said) = (to_go.clone(), has_said.clone());
        async move {
            go.notified().await;
            assert!(Box::pin(task.ask("well?")).now_or_never().is_none());
            said.notify_one();
            Ok(())
        }
    });
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        let sent = kernel.send("go").await;
        faults.close_gate();
        let asked_and_returned = async {
            faults.until_held(1).await;
            go.notify_one();
            said.notified().await;
            faults.open_gate();
        };
        let (canceled, ()) = tokio::join!(kernel.cancel(sent.id()), asked_and_returned);
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
    });
}

#[test]
fn an_agent_is_not_put_away_while_its_ending_is_being_stored() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let to_go = go.clone();
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let go = to_go.clone();
        async move {
            tokio::select! {
                answer = task.ask("well?") => { answer?; }
                () = go.notified() => {}
            }
            Ok(task.fail("no answer came").await?)
        }
    });
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        let sent = kernel.send("go").await;
        assert_eq!(answer_task(&sent).await.status.state, TaskState::InputRequired);
        faults.close_gate();
        go.notify_one();
        faults.until_held(1).await;
        // The sweeper and the agent's time in memory, which is over now.
        kernel.advance(2, Duration::from_secs(600)).await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        faults.open_gate();
        assert_eq!(kernel.ended(sent.id()).await.status.state, TaskState::Failed);
    });
}

#[test]
fn an_agent_that_panics_when_it_is_dropped_does_not_hold_its_task() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "dropped");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        let _bomb = Bomb;
        task.working().await?;
        std::future::pending().await
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let canceled = kernel.while_time_passes(kernel.cancel(sent.id())).await;
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
    });
}

/// Completes its first turn when told to and holds the next ones.
fn completes_once(go: &Arc<Notify>) -> Script {
    let go = go.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let go = go.clone();
        async move {
            task.working().await?;
            if turn.cause == Cause::Begin {
                go.notified().await;
                return Ok(task.complete_with("done").await?);
            }
            assert_eq!(turn.cause, Cause::Next);
            task.status(turn.text()).await?;
            task.canceled().await;
            Ok(())
        }
    })
}

#[test]
fn a_message_for_a_task_that_is_full_still_gets_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let settings = Settings { task_bytes: 16 << 10, event_bytes: 8 << 10, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), completes_once(&go), settings);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        kernel.say(sent.id(), &"x".repeat(7_000)).await.unwrap();
        let mut length = 7_900;
        while kernel.say(sent.id(), &"x".repeat(length)).await.is_err() {
            length -= 1;
        }
        go.notify_one();
        // The next turn's first words do not fit any more, and that is how it ends.
        let task = kernel.ended(sent.id()).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "too_large"));
    });
}

/// Where no turn may wait, a message is refused until the place is given up.
async fn sent_at_last(kernel: &Kernel) -> Submitted {
    loop {
        if let Ok(sent) = kernel.try_send(message("second")).await {
            return sent;
        }
        tokio::task::yield_now().await;
    }
}

/// A message to the first task is on its way into the log, and the last words of the task's turn wait behind it: its place
/// is free, and a second task takes it. Then both messages are through.
async fn message_in_the_last_moment(
    kernel: &Kernel,
    faults: &Faults,
    go: &Notify,
    first: &Submitted,
    before_they_are: impl FnOnce(),
) -> Submitted {
    faults.close_gate();
    let others = async {
        faults.until_held(1).await;
        go.notify_one();
        let opened = async {
            faults.until_held(2).await;
            before_they_are();
            faults.open_gate();
        };
        tokio::join!(sent_at_last(kernel), opened).0
    };
    let (told, second) = tokio::join!(kernel.say(first.id(), "more"), others);
    told.unwrap();
    second
}

#[test]
fn a_turn_for_a_message_in_the_last_moment_waits_for_a_place_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let settings = Settings { running_tasks: 1, queued_turns: 0, ..Settings::default() };
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), completes_once(&go), settings, &faults);
    kernel.run(async {
        let first = kernel.send("first").await;
        kernel.reach(first.id(), TaskState::Working).await;
        let second = message_in_the_last_moment(&kernel, &faults, &go, &first, || {}).await;
        kernel.reach(second.id(), TaskState::Working).await;
        while kernel.get(first.id()).await.unwrap().metadata.is_none_or(|all| all.get(QUEUE_POSITION_KEY).is_none()) {
            tokio::task::yield_now().await;
        }
        kernel.while_time_passes(kernel.cancel(second.id())).await.unwrap();
        while status_text(&kernel.get(first.id()).await.unwrap()) != "more" {
            tokio::task::yield_now().await;
        }
        kernel.cancel(first.id()).await.unwrap();
    });
}

#[test]
fn messages_to_running_tasks_do_not_get_past_the_running_cap() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let settings = Settings { running_tasks: 2, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), completes_once(&go), settings);
    kernel.run(async {
        let mut tasks = Vec::new();
        for _ in 0..6 {
            let sent = kernel.send("go").await;
            kernel.say(sent.id(), "more").await.unwrap();
            tasks.push(sent);
        }
        let mut holding = 0;
        while holding < 2 {
            go.notify_waiters();
            holding = 0;
            for sent in &tasks {
                holding += usize::from(status_text(&kernel.get(sent.id()).await.unwrap()) == "more");
            }
        }
        for _ in 0..1_000 {
            go.notify_waiters();
            tokio::task::yield_now().await;
        }
        for sent in &tasks[2..] {
            let task = kernel.get(sent.id()).await.unwrap();
            assert!(task.metadata.is_some_and(|all| all.get(QUEUE_POSITION_KEY).is_some()), "it runs beyond the cap");
        }
    });
}

#[test]
fn a_turn_that_cannot_be_queued_is_not_tried_again_without_a_pause() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let settings = Settings { running_tasks: 1, queued_turns: 0, ..Settings::default() };
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), completes_once(&go), settings, &faults);
    kernel.run(async {
        let first = kernel.send("first").await;
        kernel.reach(first.id(), TaskState::Working).await;
        // The turn's last words are still stored; that the next turn waits is not.
        let second = message_in_the_last_moment(&kernel, &faults, &go, &first, || faults.fail_after(1)).await;
        while faults.failed() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert!(faults.failed() < 10, "{} appends were tried while the clock stood still", faults.failed());
        faults.fail(false);
        kernel.while_time_passes(kernel.cancel(second.id())).await.unwrap();
        let served = async {
            while status_text(&kernel.get(first.id()).await.unwrap()) != "more" {
                tokio::task::yield_now().await;
            }
        };
        kernel.while_time_passes(served).await;
    });
}

#[test]
fn a_listener_beside_a_turn_that_completes_does_not_take_the_next_turns_message() {
    let folder = tempfile::tempdir().unwrap();
    let go = Arc::new(Notify::new());
    let to_go = go.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let go = to_go.clone();
        async move {
            if turn.cause == Cause::Next {
                return Ok(task.complete_with(turn.text()).await?);
            }
            task.working().await?;
            go.notified().await;
            task.complete_with("done").await?;
            assert!(matches!(task.next_message().await, Err(Stopped::Ended)));
            Ok(())
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        kernel.say(sent.id(), "more").await.unwrap();
        go.notify_one();
        assert_eq!(status_text(&kernel.ended(sent.id()).await), "more");
    });
}

#[test]
fn a_message_whose_commit_is_under_way_when_the_stop_comes_gets_its_drain_time() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move { Ok(task.complete_with(turn.text()).await?) });
    let faults = Faults::default();
    let settings = Settings { drain: Duration::from_secs(3600), ..Settings::default() };
    let kernel = Kernel::with_faults(folder.path(), script, settings, &faults);
    kernel.run(async {
        faults.close_gate();
        let stop = async {
            faults.until_held(1).await;
            let opened = async {
                while !kernel.engine.closing().is_cancelled() {
                    tokio::task::yield_now().await;
                }
                faults.open_gate();
            };
            let passing = async {
                loop {
                    kernel.clock.advance(Duration::from_millis(20));
                    // The drain time must not be over before the turn and its commit.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                (stopped, ()) = async { tokio::join!(kernel.engine.shutdown(), opened) } => stopped.unwrap(),
                () = passing => {}
            }
        };
        let (sent, ()) = tokio::join!(kernel.try_send(message("in time")), stop);
        assert_eq!(status_text(&answer_task(&sent.unwrap()).await), "in time");
    });
}
