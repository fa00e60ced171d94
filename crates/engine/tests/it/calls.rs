//! Child tasks: who owns and pays for them, what joins them after a crash, and when they run.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::event::EventKind;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::canceled_trees::until_none_lives;
use crate::kernel::*;

/// The first word says what to do: `call` hands the rest on, `owner` does so as the task's owner, `hold` waits for its
/// cancellation, `ask` asks. Everything else is done at once.
pub(crate) fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let text = turn.text();
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match verb {
            "call" => pass_on(&task, Call::new(AGENT, message(rest)).keyed("1")).await,
            "owner" => {
                let call = Call { run_as: CallOwner::Owner, ..Call::new(AGENT, message(rest)) };
                pass_on(&task, call.keyed("1")).await
            }
            "hold" => {
                task.working().await?;
                task.canceled().await;
                Err(Stopped::Canceled.into())
            }
            "ask" => Ok(task.complete_with(task.ask("which?").await?.joined_text()).await?),
            _ => Ok(task.complete_with(text).await?),
        }
    })
    .recovering(Recovery::Resume)
}

/// Says which task it has started, and ends with what that says.
async fn pass_on(task: &TaskHandle, call: Call) -> Result<(), AgentError> {
    let called = task.call(call).await?;
    task.status(called.id().as_str()).await?;
    let ended = task.release_permit_while(called.end()).await?;
    let SendResult::Task(ended) = ended.map_err(|error| AgentError::new(error.to_string()))? else {
        return Err(AgentError::new("a message instead of a task"));
    };
    let ended = ended.into_task().map_err(|error| AgentError::new(error.to_string()))?;
    Ok(task.complete_with(format!("{} {}", state_label(ended.status.state), status_text(&ended))).await?)
}

pub(crate) async fn live(kernel: &Kernel) -> Vec<LiveTaskSummary> {
    kernel.engine.live_tasks(TaskKey(0), 1_000).await.unwrap()
}

/// Waits until so many tasks are alive and all of them work.
pub(crate) async fn working(kernel: &Kernel, count: usize) -> Vec<LiveTaskSummary> {
    loop {
        let tasks = live(kernel).await;
        if tasks.len() == count && tasks.iter().all(|task| task.state == TaskState::Working) {
            return tasks;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_child_is_paid_for_by_the_caller_of_the_root_and_seen_by_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let delegation = DelegationLimits { revisit: 2, ..DelegationLimits::default() };
    let kernel = Kernel::with_settings(folder.path(), script(), Settings { delegation, ..Settings::default() });
    kernel.run(async {
        let root = kernel.send("owner call hold").await;
        let tasks = working(&kernel, 3).await;
        let owners: Vec<_> = tasks.iter().map(|task| task.task.owner.as_str()).collect();
        assert_eq!(owners, ["local", "local", "~script@local"]);
        assert!(tasks.iter().all(|task| task.task.payer().as_str() == "local"));
        let ancestors: Vec<_> = tasks.iter().map(|task| task.task.lineage.ancestors).collect();
        let below = |parent: usize| Some((tasks[parent].key, tasks[0].key));
        let found: Vec<_> = ancestors.iter().map(|above| above.map(|above| (above.parent, above.root))).collect();
        assert_eq!(found, [None, below(0), below(1)]);
        kernel.get(&tasks[1].task.id).await.unwrap();
        assert!(matches!(kernel.get(&tasks[2].task.id).await, Err(Error::TaskNotFound(_))));
        kernel.cancel(root.id()).await.unwrap();
        until_none_lives(&kernel).await;
        assert_eq!(kernel.get(&tasks[1].task.id).await.unwrap().status.state, TaskState::Canceled);
        let done = answer_task(&kernel.send("call call fine").await).await;
        assert_eq!(status_text(&done), "completed completed fine");
    });
}

#[test]
fn a_call_is_refused_for_an_agent_that_is_not_there_and_its_agent_can_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_, task: TaskHandle| async move {
        let refused = match task.call(Call::new("nowhere", message("hi"))).await {
            Err(CallError::Refused(error)) => error.to_string(),
            _ => "begun".to_owned(),
        };
        Ok(task.complete_with(refused).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let done = answer_task(&kernel.send("hi").await).await;
        assert_eq!(status_text(&done), "no agent \"nowhere\" here; there is: script");
    });
}

#[test]
fn a_call_that_is_repeated_after_a_crash_joins_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    let (root, before) = kernel.run(async {
        let root = kernel.send("call hold").await;
        (root.id().clone(), working(&kernel, 2).await)
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let named = before[1].task.id.as_str();
        // The second run names the child that it has joined.
        let mut count = 0;
        while count < 2 {
            let task = kernel.get(&root).await.unwrap();
            count = task.history.iter().filter(|message| message.joined_text() == named).count()
                + usize::from(status_text(&task) == named);
            tokio::task::yield_now().await;
        }
        let after = working(&kernel, 2).await;
        assert_eq!(after[1].task, before[1].task);
        kernel.cancel(&root).await.unwrap();
        until_none_lives(&kernel).await;
    });
}

#[test]
fn a_child_finds_room_and_goes_before_new_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (bell, order) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let (rung, begun) = (bell.clone(), order.clone());
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let (bell, begun) = (rung.clone(), begun.clone());
        async move {
            begun.lock().push(turn.text());
            if turn.text() == "root" {
                task.working().await?;
                bell.notified().await;
                return pass_on(&task, Call::new(AGENT, message("child"))).await;
            }
            Ok(task.complete_with("done").await?)
        }
    });
    let settings = Settings { running_tasks: 1, queued_turns: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let root = kernel.send("root").await;
        kernel.reach(root.id(), TaskState::Working).await;
        let late = kernel.send("late").await;
        assert!(matches!(kernel.try_send(message("later")).await, Err(Error::Unavailable { .. })));
        bell.notify_one();
        kernel.reach(root.id(), TaskState::Completed).await;
        kernel.reach(late.id(), TaskState::Completed).await;
        assert_eq!(*order.lock(), ["root", "child", "late"]);
    });
}

#[test]
fn the_turns_of_children_count_against_the_caller_of_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "root" {
            task.call(Call::new(AGENT, message("child"))).await?;
        }
        task.working().await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    });
    let settings = Settings { running_per_caller: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let root = kernel.send("root").await;
        kernel.reach(root.id(), TaskState::Working).await;
        let tasks = live(&kernel).await;
        assert_eq!((tasks[1].state, tasks[1].queue_position), (TaskState::Submitted, Some(1)));
        kernel.cancel(root.id()).await.unwrap();
        until_none_lives(&kernel).await;
    });
}

#[test]
fn a_child_has_the_earlier_of_its_own_and_its_parents_deadline() {
    for (own, parents, ends_after) in [(Some(10), None, 10), (None, Some(20), 20), (Some(30), Some(20), 20)] {
        let folder = tempfile::tempdir().unwrap();
        let script = Script::new(move |turn: Turn, task: TaskHandle| async move {
            if turn.text() == "root" {
                // The clock is at its start until the child holds.
                let deadline = own.map(|seconds: i64| Timestamp(1_800_000_000_000 + seconds * 1_000));
                let call = Call { deadline, run_as: CallOwner::Owner, ..Call::new(AGENT, message("child")) };
                let called = task.call(call).await?;
                task.status(called.id().as_str()).await?;
                task.release_permit_while(std::future::pending::<()>()).await?;
            }
            task.working().await?;
            task.canceled().await;
            Err(Stopped::Canceled.into())
        });
        let settings = Settings { deadline: parents.map(Duration::from_secs), ..Settings::default() };
        let kernel = Kernel::with_settings(folder.path(), script, settings);
        kernel.run(async {
            kernel.send("root").await;
            let child = working(&kernel, 2).await.remove(1).task.id;
            kernel.clock.advance(Duration::from_secs(ends_after - 1));
            assert_eq!(kernel.get(&child).await.unwrap().status.state, TaskState::Working);
            kernel.clock.advance(Duration::from_secs(1));
            let ended = kernel.ended(&child).await;
            assert_eq!((ended.status.state, reason(&ended).as_str()), (TaskState::Failed, "timed_out"));
        });
    }
}

#[test]
fn a_question_of_a_child_is_answered_once_by_the_turn_that_called() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() != "root" {
            let first = task.ask("which?").await?.joined_text();
            let second = task.ask("and then?").await?.joined_text();
            return Ok(task.complete_with(format!("{first} {second}")).await?);
        }
        let mut called = task.call(Call::new(AGENT, message("child"))).await?;
        let mut answers = ["left", "right"].into_iter();
        let refused = |error: Error| AgentError::new(error.to_string());
        while let Some(events) = called.next().await.map_err(refused)? {
            for event in events {
                if event.kind == EventKind::Status(TaskState::InputRequired)
                    && let Some(answer) = answers.next()
                {
                    for _ in 0..2 {
                        called.answer(message(answer), Some(answer)).await.map_err(refused)?;
                    }
                }
            }
        }
        let SendResult::Task(ended) = called.end().await.map_err(refused)? else { return Ok(()) };
        Ok(task.complete_with(status_text(&ended.into_task().map_err(refused)?)).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        assert_eq!(status_text(&answer_task(&kernel.send("root").await).await), "left right");
    });
}

#[test]
fn a_turn_may_call_and_answer_while_the_server_drains() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(Notify::new());
    let script = |bell: &Arc<Notify>| {
        let bell = bell.clone();
        let run = move |turn: Turn, task: TaskHandle| {
            let bell = bell.clone();
            async move {
                if turn.text() != "root" {
                    return Ok(task.complete_with(task.ask("which?").await?.joined_text()).await?);
                }
                task.working().await?;
                bell.notified().await;
                let refused = |error: Error| AgentError::new(error.to_string());
                let mut called = task.call(Call::new(AGENT, message("child")).keyed("1")).await?;
                while let Some(events) = called.next().await.map_err(refused)? {
                    if events.iter().any(|event| event.kind == EventKind::Status(TaskState::InputRequired)) {
                        called.answer(message("this one"), Some("1")).await.map_err(refused)?;
                    }
                }
                let SendResult::Task(ended) = called.end().await.map_err(refused)? else { return Ok(()) };
                Ok(task.complete_with(status_text(&ended.into_task().map_err(refused)?)).await?)
            }
        };
        Script::new(run).recovering(Recovery::Resume)
    };
    let settings = Settings { drain: Duration::from_secs(86_400), ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(&bell), settings);
    let root = kernel.run(async {
        let root = kernel.send("root").await;
        kernel.reach(root.id(), TaskState::Working).await;
        let engine = kernel.engine.clone();
        let stopping = tokio::spawn(async move { engine.shutdown().await });
        kernel.engine.closing().cancelled().await;
        bell.notify_one();
        stopping.await.unwrap().unwrap();
        root.id().clone()
    });
    kernel.kill();
    // It has ended before the server did, or goes on with the same child.
    bell.notify_one();
    let kernel = Kernel::open(folder.path(), script(&bell));
    kernel.run(async {
        assert_eq!(status_text(&kernel.reach(&root, TaskState::Completed).await), "this one");
    });
}
