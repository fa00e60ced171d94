//! The order of recovery, and how many tasks are recovered at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

/// Works until it is canceled. Its last word stands, so that no progress hides how often it was taken up.
fn holding() -> Script {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause != Cause::Recovered {
            task.status("begun").await?;
        }
        task.canceled().await;
        Err(Stopped::Canceled.into())
    });
    script.recovering(Recovery::Resume)
}

fn one_place(folder: &std::path::Path, script: Script) -> Kernel {
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    Kernel::serving(folder, Hosted::serving(AGENT, Served::new(script).switches(switches)))
}

async fn position(kernel: &Kernel, id: &TaskId) -> Option<String> {
    Some(kernel.get(id).await.unwrap().metadata?.get(QUEUE_POSITION_KEY)?.as_str().to_owned())
}

/// Waits until a task has the place that one of these waits for.
async fn all_wait(kernel: &Kernel, ids: &[TaskId]) {
    for (index, id) in ids.iter().enumerate() {
        while position(kernel, id).await != Some((index + 1).to_string()) {
            tokio::task::yield_now().await;
        }
    }
}

#[test]
fn who_had_begun_goes_on_first_and_the_others_keep_their_order_before_all_that_come_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut kernel = one_place(folder.path(), holding());
    let mut waiting = Vec::new();
    let begun = kernel.run(async {
        let begun = kernel.send("first").await;
        kernel.reach(begun.id(), TaskState::Working).await;
        for _ in 0..5 {
            waiting.push(kernel.send("later").await.id().clone());
        }
        begun.id().clone()
    });
    // The order is the same whether the process before was lost or stopped in order.
    for end in [Kernel::kill, Kernel::stop, Kernel::stop, Kernel::kill, Kernel::stop] {
        end(kernel);
        kernel = one_place(folder.path(), holding());
        kernel.run(async {
            let new = kernel.send("new").await;
            waiting.push(new.id().clone());
            all_wait(&kernel, &waiting).await;
            assert_eq!(position(&kernel, &begun).await, None);
            assert_eq!(kernel.get(&begun).await.unwrap().status.state, TaskState::Working);
        });
    }
}

#[test]
fn a_turn_that_finds_no_place_uses_up_no_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let two = Switches { max_running: Some(2), ..Switches::default() };
    let kernel = Kernel::serving(folder.path(), Hosted::serving(AGENT, Served::new(holding()).switches(two)));
    let (first, second) = kernel.run(async {
        let (first, second) = (kernel.send("first").await, kernel.send("second").await);
        for sent in [&first, &second] {
            kernel.reach(sent.id(), TaskState::Working).await;
        }
        (first.id().clone(), second.id().clone())
    });
    kernel.kill();
    // Progress of the one that has the place, so that it is not given up either.
    let speaking = |round: usize| {
        let script = Script::new(move |_: Turn, task: TaskHandle| async move {
            task.status(format!("on {round}")).await?;
            task.canceled().await;
            Err(Stopped::Canceled.into())
        });
        script.recovering(Recovery::Resume)
    };
    let kernel = |round| {
        let settings = Settings { running_tasks: 1, max_recoveries: 1, ..Settings::default() };
        Kernel::with_settings(folder.path(), speaking(round), settings)
    };
    for round in 0..6 {
        let kernel = kernel(round);
        kernel.run(async {
            all_wait(&kernel, std::slice::from_ref(&second)).await;
            while status_text(&kernel.get(&first).await.unwrap()) != format!("on {round}") {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(kernel.run(kernel.get(&first)).unwrap().status.state, TaskState::Working);
        kernel.kill();
    }
    let kernel = kernel(6);
    kernel.run(async {
        all_wait(&kernel, std::slice::from_ref(&second)).await;
        kernel.cancel(&first).await.unwrap();
        while position(&kernel, &second).await.is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(kernel.get(&second).await.unwrap().status.state, TaskState::Working);
    });
}

#[test]
fn who_had_not_begun_to_work_waits_for_those_that_had_though_it_is_older() {
    let folder = tempfile::tempdir().unwrap();
    let two = Switches { max_running: Some(2), ..Switches::default() };
    let kernel = Kernel::serving(folder.path(), Hosted::serving(AGENT, Served::new(holding()).switches(two)));
    let ids = kernel.run(async {
        let mut ids = Vec::new();
        for text in ["idle", "works"] {
            let sent = kernel.send(text).await;
            kernel.reach(sent.id(), TaskState::Working).await;
            ids.push(sent.id().clone());
        }
        ids
    });
    kernel.kill();
    let mut script = holding();
    script.queues = "idle";
    let kernel = one_place(folder.path(), script);
    kernel.run(async {
        all_wait(&kernel, &ids[..1]).await;
        assert_eq!(position(&kernel, &ids[1]).await, None, "it works");
        kernel.cancel(&ids[1]).await.unwrap();
        while position(&kernel, &ids[0]).await.is_some() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_task_that_cannot_be_read_keeps_no_other_from_going_on() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::serving(folder.path(), Hosted::new(AGENT, holding()));
    let (broken, good) = kernel.run(async {
        let (broken, good) = (kernel.send("first").await, kernel.send("second").await);
        for sent in [&broken, &good] {
            kernel.reach(sent.id(), TaskState::Working).await;
        }
        (broken.id().clone(), good.id().clone())
    });
    kernel.kill();
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let spoil = "UPDATE event SET blob = x'ff' WHERE task_key = (SELECT min(key) FROM task)";
    assert!(database.execute(spoil, []).unwrap() > 0);
    drop(database);
    let ending = Script::new(|_: Turn, task: TaskHandle| async move { Ok(task.complete_with("done").await?) });
    let kernel = Kernel::serving(folder.path(), Hosted::new(AGENT, ending.recovering(Recovery::Resume)));
    kernel.run(async {
        kernel.reach(&good, TaskState::Completed).await;
        assert_eq!(answer_task(&kernel.send("new").await).await.status.state, TaskState::Completed);
        assert!(kernel.get(&broken).await.is_err());
    });
}

/// Counts how many of its tasks are asked about at a time. Clones share the counts.
#[derive(Clone, Default)]
struct Counting {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

impl Agent for Counting {
    fn manifest(&self) -> Manifest {
        Manifest::new("Counting", "Counts")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        match turn.cause {
            Cause::Recovered => drop(self.resumed.fetch_add(1, Ordering::SeqCst)),
            _ => task.status("at work").await?,
        }
        std::future::pending().await
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        // Until there are two, and long enough for more.
        while self.most.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        Recovery::Resume
    }
}

#[test]
fn tasks_of_many_agents_are_recovered_no_more_at_a_time_than_those_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::default();
    let names = ["one", "two", "three", "four"];
    let open = || {
        let agents = names.iter().map(|name| Hosted::new(*name, counting.clone())).collect();
        Kernel::serving_all(folder.path(), agents, Settings { parallel_recoveries: 2, ..Settings::default() })
    };
    let kernel = open();
    kernel.run(async {
        for name in names.into_iter().cycle().take(12) {
            let sent = kernel.send_to(name, "go").await.unwrap();
            kernel.reach(sent.id(), TaskState::Working).await;
        }
    });
    kernel.kill();
    let kernel = open();
    kernel.run(async {
        while counting.resumed.load(Ordering::SeqCst) < 12 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(counting.most.load(Ordering::SeqCst), 2);
}
