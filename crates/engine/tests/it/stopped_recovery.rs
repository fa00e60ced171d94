//! A graceful stop while turns are being taken up again, or claimed: it is no crash of theirs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;
use tokio::sync::Semaphore;

use crate::faults::Faults;
use crate::kernel::*;

/// Works until it is stopped. Asked how to go on, it answers when it may. Clones share the counts.
#[derive(Clone)]
struct Slow {
    asked: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    may_answer: Arc<Semaphore>,
}

impl Slow {
    fn new() -> Self {
        Self { asked: Arc::default(), answered: Arc::default(), may_answer: Arc::new(Semaphore::new(0)) }
    }
}

impl Agent for Slow {
    fn manifest(&self) -> Manifest {
        Manifest::new("Slow", "Takes its time to say how it goes on")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        if turn.cause == Cause::Begin {
            task.status("at work").await?;
        }
        std::future::pending().await
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may_answer.acquire().await.unwrap().forget();
        self.answered.fetch_add(1, Ordering::SeqCst);
        Recovery::Resume
    }
}

/// Never stops by itself, and cannot go on.
fn busy() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        task.status(if turn.cause == Cause::Recovered { "busy again" } else { "busy" }).await?;
        std::future::pending().await
    })
}

/// One crash would be one too many.
fn no_crash_is_forgiven() -> Settings {
    Settings { max_recoveries: 0, ..Settings::default() }
}

fn two_agents(folder: &Path, slow: &Slow) -> Kernel {
    let agents = vec![Hosted::new("slow", slow.clone()), Hosted::new("busy", busy())];
    Kernel::serving_all(folder, agents, no_crash_is_forgiven())
}

async fn begin(kernel: &Kernel, agent: &str) -> TaskId {
    let sent = kernel.send_to(agent, "the work").await.unwrap();
    kernel.reach(sent.id(), TaskState::Working).await;
    sent.id().clone()
}

/// Begins to stop; the time that turns have to end does not pass yet.
async fn begin_to_stop(kernel: &Kernel) -> tokio::task::JoinHandle<()> {
    let engine = kernel.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown().await.unwrap() });
    kernel.engine.closing().cancelled().await;
    stopping
}

#[test]
fn tasks_that_are_stopped_again_and_again_while_they_are_taken_up_do_not_fail() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Slow::new();
    let kernel = two_agents(folder.path(), &slow);
    let ids = kernel.run(async { [begin(&kernel, "slow").await, begin(&kernel, "slow").await] });
    kernel.stop();
    for round in 1..=4 {
        let kernel = two_agents(folder.path(), &slow);
        kernel.run(async {
            while slow.asked.load(Ordering::SeqCst) < round * ids.len() {
                for id in &ids {
                    assert_eq!(kernel.get(id).await.unwrap().status.state, TaskState::Working, "round {round}");
                }
            }
            // It does not stop, so the time to end passes before anything is marked.
            begin(&kernel, "busy").await;
            let stopping = begin_to_stop(&kernel).await;
            slow.may_answer.add_permits(ids.len());
            while slow.answered.load(Ordering::SeqCst) < round * ids.len() {
                tokio::task::yield_now().await;
            }
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            kernel.while_time_passes(stopping).await.unwrap();
        });
        kernel.kill();
    }
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let oldest = "SELECT key FROM task ORDER BY key LIMIT 2";
    let count = format!("SELECT count(*) FROM task WHERE phase = 2 AND recoveries = 0 AND key IN ({oldest})");
    let as_they_were: i64 = database.query_row(&count, [], |row| row.get(0)).unwrap();
    assert_eq!(as_they_were, 2, "interrupted, and recovered from no crash");
}

#[test]
fn a_turn_whose_recovery_waits_for_the_disk_when_the_stop_comes_has_not_crashed() {
    let folder = tempfile::tempdir().unwrap();
    let resuming = || busy().recovering(Recovery::Resume);
    let kernel = Kernel::with_settings(folder.path(), resuming(), no_crash_is_forgiven());
    let ids = kernel.run(async {
        let (one, two) = (kernel.send("the work").await, kernel.send("the work").await);
        for sent in [&one, &two] {
            kernel.reach(sent.id(), TaskState::Working).await;
        }
        [one.id().clone(), two.id().clone()]
    });
    kernel.stop();
    let faults = Faults::default();
    // Both are claimed. There is a permit for one of them, and it says once more that it is busy; that the other one waits
    // cannot be stored.
    let one_at_a_time = Settings { running_tasks: 1, ..no_crash_is_forgiven() };
    faults.fail_after(2);
    let kernel = Kernel::with_faults(folder.path(), resuming(), one_at_a_time, &faults);
    kernel.run(async {
        while faults.failed() < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let stopping = begin_to_stop(&kernel).await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        faults.fail(false);
        kernel.while_time_passes(stopping).await.unwrap();
    });
    kernel.kill();
    let kernel = Kernel::with_settings(folder.path(), resuming(), no_crash_is_forgiven());
    kernel.run(async {
        for id in &ids {
            while status_text(&kernel.reach(id, TaskState::Working).await) != "busy again" {
                tokio::task::yield_now().await;
            }
        }
    });
}

#[test]
fn an_answer_that_comes_after_the_stop_has_marked_its_turns_does_not_become_a_lost_one() {
    let folder = tempfile::tempdir().unwrap();
    let script = || {
        Script::new(|turn: Turn, task: TaskHandle| async move {
            match turn.text().as_str() {
                "ask" => task.ask("which?").await.map(drop)?,
                _ => task.status("at work").await?,
            }
            std::future::pending().await
        })
        .recovering(Recovery::Resume)
    };
    let kernel = Kernel::with_settings(folder.path(), script(), no_crash_is_forgiven());
    let asking = kernel.run(async { answer_task(&kernel.send("ask").await).await.id });
    kernel.stop();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script(), no_crash_is_forgiven(), &faults);
    let answered = kernel.run(async {
        let working = kernel.send("work").await;
        kernel.reach(working.id(), TaskState::Working).await;
        let answer = request(switchboard_a2a::Message { task_id: Some(asking.clone()), ..message("this") });
        let routed = kernel.engine.route(&Caller::local(), answer).await.unwrap();
        faults.close_gate();
        let engine = kernel.engine.clone();
        let sending = tokio::spawn(async move { engine.send(routed).await.map(drop) });
        faults.until_held(1).await;
        // The stop looks at all tasks at once, and waits for the mark of the one that works.
        faults.hold_next_append();
        let stopping = begin_to_stop(&kernel).await;
        kernel.while_time_passes(faults.until_append_held()).await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        faults.open_gate();
        let answered = sending.await.unwrap();
        faults.release_append();
        kernel.while_time_passes(stopping).await.unwrap();
        answered
    });
    kernel.kill();
    assert!(matches!(answered, Err(Error::Unavailable { .. })), "it can be sent again: {answered:?}");
    let kernel = Kernel::with_settings(folder.path(), script(), no_crash_is_forgiven());
    kernel.run(async {
        assert_eq!(kernel.get(&asking).await.unwrap().status.state, TaskState::InputRequired);
        kernel.say(&asking, "this").await.unwrap();
        while status_text(&kernel.reach(&asking, TaskState::Working).await) != "at work" {
            tokio::task::yield_now().await;
        }
    });
}
