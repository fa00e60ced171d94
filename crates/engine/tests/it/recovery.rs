//! Recovery after a crash and after a graceful shutdown.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

/// Saves its progress, then waits to be killed; a second run finishes from there.
fn resumable() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause == Cause::Recovered {
            let saved: u32 = turn.saved.map_or(0, |saved| saved.read().unwrap());
            return Ok(task.complete_with(format!("went on from {saved} with {}", turn.message.joined_text())).await?);
        }
        task.save(&41).await?;
        task.status("at work").await?;
        task.canceled().await;
        Ok(())
    })
    .recovering(Recovery::Resume)
}

#[test]
fn a_killed_turn_resumes_with_its_message_and_what_it_saved() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), resumable());
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        sent.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), resumable());
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Completed).await;
        assert_eq!(status_text(&task), "went on from 41 with the work");
    });
}

#[test]
fn lost_turns_without_a_place_are_asked_about_all_the_same() {
    asked_about_when_they_end(Kernel::kill);
}

#[test]
fn interrupted_turns_without_a_place_are_asked_about_all_the_same() {
    asked_about_when_they_end(Kernel::stop);
}

/// Turns that had begun and wait for a slot have to be told from those that had not, however their processes end.
fn asked_about_when_they_end(end: fn(Kernel)) {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), resumable());
    let ids = kernel.run(async {
        let mut ids = Vec::new();
        for _ in 0..4 {
            let sent = kernel.send("the work").await;
            kernel.reach(sent.id(), TaskState::Working).await;
            ids.push(sent.id().clone());
        }
        ids
    });
    end(kernel);
    let one_at_a_time = || Settings { running_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holds_when_recovered(), one_at_a_time());
    kernel.run(async {
        let waits =
            async |id| kernel.get(id).await.unwrap().metadata.is_some_and(|m| m.get(QUEUE_POSITION_KEY).is_some());
        let mut waiting = 0;
        while waiting < 3 {
            waiting = 0;
            for id in &ids {
                waiting += usize::from(waits(id).await);
            }
        }
    });
    end(kernel);
    // They were recovered, waited, and lost their process again: still lost turns, not new ones.
    let kernel = Kernel::with_settings(folder.path(), resumable(), one_at_a_time());
    kernel.run(async {
        for id in &ids {
            let task = kernel.reach(id, TaskState::Completed).await;
            assert_eq!(status_text(&task), "went on from 41 with the work");
        }
    });
}

fn holds_when_recovered() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        assert_eq!(turn.cause, Cause::Recovered);
        task.canceled().await;
        Ok(())
    })
    .recovering(Recovery::Resume)
}

#[test]
fn lost_turns_that_cannot_go_on_need_no_place_to_fail() {
    let folder = tempfile::tempdir().unwrap();
    let script = || resumable().recovering(Recovery::Fail("cannot go on".to_owned()));
    let kernel = Kernel::open(folder.path(), script());
    let ids = kernel.run(async {
        let (one, two) = (kernel.send("the work").await, kernel.send("the work").await);
        kernel.reach(one.id(), TaskState::Working).await;
        kernel.reach(two.id(), TaskState::Working).await;
        [one.id().clone(), two.id().clone()]
    });
    kernel.kill();
    let settings = Settings { running_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(), settings);
    kernel.run(async {
        for id in &ids {
            let task = kernel.while_time_passes(kernel.ended(id)).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
        }
    });
}

#[test]
fn a_queued_task_whose_agent_is_gone_fails_as_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), resumable(), settings);
    let id = kernel.run(async {
        let holding = kernel.send("the work").await;
        kernel.reach(holding.id(), TaskState::Working).await;
        kernel.send("the work").await.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::named("another", folder.path(), resumable());
    kernel.run(async {
        let task = kernel.while_time_passes(kernel.ended(&id)).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "interrupted"));
        assert!(status_text(&task).contains("no longer served"), "{}", status_text(&task));
    });
}

#[test]
fn a_turn_whose_agent_cannot_go_on_fails_as_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let script = || resumable().recovering(Recovery::Fail("cannot go on".to_owned()));
    let kernel = Kernel::open(folder.path(), script());
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        sent.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Failed).await;
        assert_eq!((reason(&task).as_str(), status_text(&task).as_str()), ("interrupted", "cannot go on"));
    });
}

#[test]
fn an_orderly_stop_leaves_the_task_as_it_is_and_tells_blocked_senders_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { drain: Duration::from_secs(10), ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), resumable(), settings.clone());
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let engine = kernel.engine.clone();
        let stopping = tokio::spawn(async move { engine.shutdown().await });
        let task = kernel.while_time_passes(answer_task(&sent)).await;
        assert_eq!(task.status.state, TaskState::Working, "never an error for a committed message");
        kernel.while_time_passes(stopping).await.unwrap().unwrap();
        assert!(matches!(kernel.try_send(message("late")).await.err().unwrap(), Error::Unavailable { .. }));
        sent.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::with_settings(folder.path(), resumable(), settings);
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Completed).await;
        assert_eq!(status_text(&task), "went on from 41 with the work");
    });
}

#[test]
fn a_stop_saves_what_its_run_has_said_is_to_be_saved_then_and_a_kill_does_not() {
    for (is_kept, end, saved) in
        [(true, Kernel::stop as fn(Kernel), 42), (false, Kernel::stop, 41), (true, Kernel::kill, 41)]
    {
        let folder = tempfile::tempdir().unwrap();
        let script = || {
            let script = Script::new(move |turn: Turn, task: TaskHandle| async move {
                if turn.cause == Cause::Recovered {
                    let saved: u32 = turn.saved.map_or(0, |saved| saved.read().unwrap());
                    return Ok(task.complete_with(format!("went on from {saved}")).await?);
                }
                let (older, newer) = (task.save_at_shutdown(|| 40), task.save_at_shutdown(|| 42));
                drop(older);
                let _kept = is_kept.then_some(newer);
                task.save(&41).await?;
                task.status("at work").await?;
                task.canceled().await;
                Ok(())
            });
            script.recovering(Recovery::Resume)
        };
        let kernel = Kernel::open(folder.path(), script());
        let id = kernel.run(async {
            let sent = kernel.send("the work").await;
            kernel.reach(sent.id(), TaskState::Working).await;
            sent.id().clone()
        });
        end(kernel);
        let kernel = Kernel::open(folder.path(), script());
        kernel.run(async {
            let task = kernel.reach(&id, TaskState::Completed).await;
            assert_eq!(status_text(&task), format!("went on from {saved}"));
        });
    }
}

#[test]
fn a_stop_answers_a_message_that_is_stored_with_its_task_even_if_it_might_have_become_a_reply() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_tasks: 1, drain: Duration::ZERO, ..Settings::default() };
    let script = || resumable().with(|manifest| manifest.replies = Replies::Either);
    let kernel = Kernel::with_settings(folder.path(), script(), settings);
    let id = kernel.run(async {
        let running = kernel.send("the work").await;
        while kernel.get(running.id()).await.is_err() {
            tokio::task::yield_now().await;
        }
        let queued = kernel.send("more work").await;
        assert!(kernel.get(queued.id()).await.is_err(), "it is not known yet whether it is a task");
        let stopped = kernel.while_time_passes(kernel.engine.shutdown());
        let (answer, stopped) = tokio::join!(answer_task(&queued), stopped);
        stopped.unwrap();
        assert_eq!(answer.status.state, TaskState::Submitted);
        queued.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async { kernel.reach(&id, TaskState::Working).await });
}

/// Says once that it is at work, and nothing more however often it is taken up again. Counts its runs.
fn silent(runs: &Arc<AtomicUsize>) -> Script {
    let runs = runs.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move {
            if turn.cause == Cause::Begin {
                task.status("at work").await?;
            }
            let next = task.next_message().await?;
            Ok(task.complete_with(next.joined_text()).await?)
        }
    });
    script.recovering(Recovery::Resume)
}

/// Serves a silent task once more until it has begun again, and then ends the process in this way.
fn one_process(folder: &Path, id: &TaskId, runs: &Arc<AtomicUsize>, end: fn(Kernel)) {
    let before = runs.load(Ordering::SeqCst);
    let kernel = Kernel::open(folder, silent(runs));
    kernel.run(async {
        while runs.load(Ordering::SeqCst) == before {
            kernel.reach(id, TaskState::Working).await;
        }
    });
    end(kernel);
}

fn begin_silent(folder: &Path, runs: &Arc<AtomicUsize>, end: fn(Kernel)) -> TaskId {
    let kernel = Kernel::open(folder, silent(runs));
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        sent.id().clone()
    });
    end(kernel);
    id
}

#[test]
fn a_task_that_never_gets_anywhere_is_given_up_after_three_recoveries() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let id = begin_silent(folder.path(), &runs, Kernel::kill);
    for _ in 0..3 {
        one_process(folder.path(), &id, &runs, Kernel::kill);
    }
    let kernel = Kernel::open(folder.path(), silent(&runs));
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Failed).await;
        assert_eq!(reason(&task), "recovery_limit");
    });
    assert_eq!(runs.load(Ordering::SeqCst), 4);
}

#[test]
fn a_silent_task_lives_through_ten_deploys() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let id = begin_silent(folder.path(), &runs, Kernel::stop);
    for _ in 0..10 {
        one_process(folder.path(), &id, &runs, Kernel::stop);
    }
    let kernel = Kernel::open(folder.path(), silent(&runs));
    kernel.run(async {
        kernel.say(&id, "done at last").await.unwrap();
        assert_eq!(status_text(&kernel.reach(&id, TaskState::Completed).await), "done at last");
    });
    assert_eq!(runs.load(Ordering::SeqCst), 12);
}

#[test]
fn deploys_between_crashes_neither_count_nor_make_them_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let id = begin_silent(folder.path(), &runs, Kernel::stop);
    for end in [Kernel::kill, Kernel::stop, Kernel::kill, Kernel::stop, Kernel::kill, Kernel::stop, Kernel::stop] {
        one_process(folder.path(), &id, &runs, end);
    }
    // The fourth crash, of which three are forgiven.
    one_process(folder.path(), &id, &runs, Kernel::kill);
    let kernel = Kernel::open(folder.path(), silent(&runs));
    kernel.run(async {
        assert_eq!(reason(&kernel.reach(&id, TaskState::Failed).await), "recovery_limit");
    });
    assert_eq!(runs.load(Ordering::SeqCst), 9);
}

#[test]
fn queued_tasks_and_requested_cancels_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_tasks: 1, ..Settings::default() };
    let script = || {
        Script::new(|turn: Turn, task: TaskHandle| async move {
            if turn.text() == "hold" {
                task.working().await?;
                return std::future::pending().await;
            }
            Ok(task.complete_with("done").await?)
        })
        .recovering(Recovery::Resume)
    };
    let kernel = Kernel::with_settings(folder.path(), script(), settings.clone());
    let (held, queued) = kernel.run(async {
        let held = kernel.send("hold").await;
        kernel.reach(held.id(), TaskState::Working).await;
        let queued = kernel.send("quick").await;
        let canceling = kernel.engine.clone();
        let id = held.id().clone();
        let cancel = tokio::spawn(async move { canceling.cancel(&Address::Root, &Caller::local(), &id).await.is_ok() });
        // The cancel is in the log once messages are refused; its grace never passes, for the clock stands still.
        while kernel.say(held.id(), "hello").await.is_ok() {}
        cancel.abort();
        (held.id().clone(), queued.id().clone())
    });
    kernel.kill();
    let kernel = Kernel::with_settings(folder.path(), script(), settings);
    kernel.run(async {
        assert_eq!(reason(&kernel.reach(&held, TaskState::Canceled).await), "canceled_by_caller");
        assert_eq!(status_text(&kernel.reach(&queued, TaskState::Completed).await), "done");
    });
}

#[test]
fn more_long_turns_than_recoveries_at_a_time_are_all_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let script = |runs: &Arc<AtomicUsize>| {
        let runs = runs.clone();
        Script::new(move |_turn: Turn, task: TaskHandle| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move {
                task.working().await?;
                task.canceled().await;
                Ok(())
            }
        })
        .recovering(Recovery::Resume)
    };
    let settings = Settings { parallel_recoveries: 2, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(&runs), settings.clone());
    kernel.run(async {
        for _ in 0..10 {
            let sent = kernel.send("the work").await;
            kernel.reach(sent.id(), TaskState::Working).await;
        }
    });
    kernel.kill();
    let kernel = Kernel::with_settings(folder.path(), script(&runs), settings);
    kernel.run(async {
        while runs.load(Ordering::SeqCst) < 20 {
            tokio::task::yield_now().await;
        }
    });
}

/// Panics when asked how to go on.
struct Shaky;

impl Agent for Shaky {
    fn manifest(&self) -> Manifest {
        Manifest::new("Shaky", "Panics when asked how to go on")
    }

    async fn run(&self, _turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.working().await?;
        task.canceled().await;
        Ok(())
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        panic!("no idea")
    }
}

#[test]
fn a_recover_that_panics_fails_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::hosting(folder.path(), Shaky);
    let id = kernel.run(async {
        let sent = kernel.send("the work").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        sent.id().clone()
    });
    kernel.kill();
    let kernel = Kernel::hosting(folder.path(), Shaky);
    kernel.run(async {
        let task = kernel.reach(&id, TaskState::Failed).await;
        assert_eq!(reason(&task), "interrupted");
        assert!(status_text(&task).contains("no idea"));
    });
}
