//! Child tasks: who owns and pays for them, what joins them after a crash, and what a cancellation of their parent reaches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, TaskState, Timestamp};
use switchboard_engine::event::EventKind;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::races::Dice;

/// How many interleavings of calls and cancellations are tried; `RACE_ROUNDS=10000` tries more.
const ROUNDS: u64 = 500;
/// Children that are alive after this were not reached.
const HANGS_AFTER: Duration = Duration::from_secs(300);

/// The first word says what to do: `call` hands the rest on, `owner` does so as the task's owner, `hold` waits for its
/// cancellation, `ask` asks. Everything else is done at once.
fn script() -> Script {
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

async fn live(kernel: &Kernel) -> Vec<LiveTaskSummary> {
    kernel.engine.live_tasks(TaskKey(0), 1_000).await.unwrap()
}

/// Waits until so many tasks are alive and all of them work.
async fn working(kernel: &Kernel, count: usize) -> Vec<LiveTaskSummary> {
    loop {
        let tasks = live(kernel).await;
        if tasks.len() == count && tasks.iter().all(|task| task.state == TaskState::Working) {
            return tasks;
        }
        tokio::task::yield_now().await;
    }
}

async fn until_none_lives(kernel: &Kernel) {
    let gone = async {
        while !live(kernel).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let left = tokio::time::timeout(HANGS_AFTER, gone).await;
    assert!(left.is_ok(), "still alive: {:?}", live(kernel).await);
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

/// Calls a child and asks, without a wait for it.
fn asking_script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "root" {
            task.call(Call::new(AGENT, message("child"))).await?;
            task.ask("well?").await?;
        }
        task.working().await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    })
}

/// Cancels a task whose child works, on a store that fails after the first append: the child is not reached.
async fn cancel_only_the_root(kernel: &Kernel, faults: &Faults) -> TaskId {
    let root = kernel.send("root").await.id().clone();
    kernel.reach(&root, TaskState::InputRequired).await;
    while live(kernel).await.iter().any(|task| task.state == TaskState::Submitted) {
        tokio::task::yield_now().await;
    }
    faults.fail_after(1);
    assert!(matches!(kernel.cancel(&root).await, Err(Error::Unavailable { .. })));
    root
}

#[test]
fn children_that_a_cancellation_has_not_reached_are_reached_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), asking_script(), Settings::default(), &faults);
    kernel.run(async {
        let root = cancel_only_the_root(&kernel, &faults).await;
        faults.fail(false);
        assert_eq!(live(&kernel).await.len(), 1, "the root is canceled, its child is not");
        assert!(matches!(kernel.cancel(&root).await, Err(Error::NotCancelable { .. })));
        until_none_lives(&kernel).await;
    });
}

#[test]
fn children_that_a_cancellation_has_not_reached_before_a_crash_are_reached_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script(), Settings::default(), &faults);
    kernel.run(async {
        let root = kernel.send("call hold").await;
        working(&kernel, 2).await;
        faults.fail_after(1);
        assert!(matches!(kernel.cancel(root.id()).await, Err(Error::Unavailable { .. })));
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(until_none_lives(&kernel));
}

#[test]
fn a_child_whose_parent_was_canceled_just_before_a_crash_does_not_go_on_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), asking_script(), Settings::default(), &faults);
    kernel.run(async {
        cancel_only_the_root(&kernel, &faults).await;
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), asking_script().recovering(Recovery::Resume));
    kernel.run(until_none_lives(&kernel));
}

#[test]
fn a_canceled_tree_has_the_grace_and_no_longer_however_deaf_its_agents_are() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        task.working().await?;
        let left: usize = turn.text().parse().unwrap();
        let _called = match left.checked_sub(1) {
            Some(below) => Some(task.call(Call::new(AGENT, message(&below.to_string()))).await?),
            None => None,
        };
        std::future::pending().await
    });
    let delegation = DelegationLimits { revisit: 3, ..DelegationLimits::default() };
    let settings = Settings { delegation, ..Settings::default() };
    let (grace, moment) = (settings.cancel_grace, Duration::from_millis(1));
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let root = kernel.send("2").await.id().clone();
        working(&kernel, 3).await;
        let canceling = kernel.cancel(&root);
        let passing = async {
            // The sweep, and the grace of each of the three.
            kernel.advance(4, grace - moment).await;
            while kernel.clock.sleepers() < 4 && live(&kernel).await.len() == 3 {
                tokio::task::yield_now().await;
            }
            assert_eq!(live(&kernel).await.len(), 3, "they may still report what they have used");
            kernel.clock.advance(moment);
        };
        let (canceled, ()) = tokio::join!(canceling, passing);
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
        until_none_lives(&kernel).await;
    });
}

#[test]
fn a_deep_tree_is_canceled() {
    const DEPTH: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        task.working().await?;
        let left: usize = turn.text().parse().unwrap();
        if left > 0 {
            let called = task.call(Call::new(AGENT, message(&(left - 1).to_string()))).await?;
            task.release_permit_while(called.end()).await?.map_err(|error| AgentError::new(error.to_string()))?;
        }
        task.canceled().await;
        Err(Stopped::Canceled.into())
    });
    let delegation = DelegationLimits { max_depth: DEPTH, revisit: DEPTH, ..DelegationLimits::default() };
    let kernel = Kernel::with_settings(folder.path(), script, Settings { delegation, ..Settings::default() });
    kernel.run(async {
        let root = kernel.send(&(DEPTH - 1).to_string()).await;
        while live(&kernel).await.len() < DEPTH {
            tokio::task::yield_now().await;
        }
        kernel.cancel(root.id()).await.unwrap();
        until_none_lives(&kernel).await;
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

/// Calls up to three children and waits for all of them.
fn racing_script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let text = turn.text();
        if text == "hold" {
            task.canceled().await;
            return Err(Stopped::Canceled.into());
        }
        let Some(seed) = text.strip_prefix("tree ") else { return Ok(task.complete_with("done").await?) };
        let dice = Dice::seeded(seed.parse().unwrap());
        let mut children = Vec::new();
        for number in 0..1 + dice.roll(3) {
            dice.dawdle().await;
            let text = match dice.roll(4) {
                0 => "quick".to_owned(),
                1 => format!("tree {}", dice.roll(1 << 20)),
                _ => "hold".to_owned(),
            };
            let call = Call::new(AGENT, message(&text));
            let call = if dice.roll(2) == 0 { call.keyed(number.to_string()) } else { call };
            children.push(task.call(call).await?);
        }
        for child in &children {
            task.release_permit_while(child.end()).await?.map_err(|error| AgentError::new(error.to_string()))?;
        }
        Ok(task.complete_with("done").await?)
    })
    .recovering(Recovery::Resume)
}

fn rounds() -> (u64, u64) {
    let read =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise);
    (read("RACE_ROUNDS", ROUNDS), read("RACE_SEED", 11))
}

#[test]
fn no_child_outlives_the_cancellation_of_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let (rounds, seed) = rounds();
    let kernel = Kernel::with_faults(folder.path(), racing_script(), Settings::default(), &Faults::dawdle(seed));
    kernel.run(async { cancel_trees(&[&kernel], seed, rounds).await });
}

#[test]
fn no_child_outlives_the_cancellation_of_its_parent_by_another_node() {
    let folder = tempfile::tempdir().unwrap();
    let (rounds, seed) = rounds();
    let nodes = Kernel::two_nodes(folder.path(), &racing_script(), &Settings::default(), |store| {
        Arc::new(FaultyStore { store: Arc::new(store), hooks: Faults::dawdle(seed) })
    });
    nodes[0].run(async { cancel_trees(&[&nodes[0], &nodes[1]], seed, rounds).await });
}

/// Begins trees and cancels them at some moment, several at a time. At the end no task is alive.
async fn cancel_trees(nodes: &[&Kernel], seed: u64, rounds: u64) {
    let play = |round: u64| async move {
        let dice = Dice::seeded(seed.wrapping_add(round));
        let any = || nodes[dice.roll(nodes.len() as u64) as usize];
        let root: TaskId = any().send(&format!("tree {}", seed + round)).await.id().clone();
        for _ in 0..dice.roll(12) {
            dice.dawdle().await;
        }
        match any().cancel(&root).await {
            Ok(_) | Err(Error::NotCancelable { state: TaskState::Completed, .. }) => {}
            Err(error) => panic!("RACE_SEED={seed}, round {round}: {error}"),
        }
    };
    futures_util::StreamExt::for_each_concurrent(futures_util::stream::iter(0..rounds), 16, play).await;
    until_none_lives(nodes[0]).await;
}
