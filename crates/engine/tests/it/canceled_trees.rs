//! What the cancellation of a task reaches: its live children, theirs, those that are being created meanwhile, and those that
//! a crash has left.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;

use crate::calls::{live, script, working};
use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::races::Dice;

/// How many interleavings of calls and cancellations are tried; `RACE_ROUNDS=10000` tries more.
const ROUNDS: u64 = 500;
/// Children that are alive after this were not reached.
const HANGS_AFTER: Duration = Duration::from_secs(300);

pub(crate) async fn until_none_lives(kernel: &Kernel) {
    let gone = async {
        while !live(kernel).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let left = tokio::time::timeout(HANGS_AFTER, gone).await;
    assert!(left.is_ok(), "still alive: {:?}", live(kernel).await);
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
