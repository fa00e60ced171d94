//! What a tree of tasks has cost is the sum of what each of its tasks reports of itself. Nothing of it counts twice: not
//! after a crash of the parent, not when a call is repeated, not when an agent reports again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_engine::event::{ChildUsage, Event, Usage};
use switchboard_engine::fold::{Fold, USAGE_KEY};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::reason::Reason;
use switchboard_engine::store::{ListFilter, Store};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;
use crate::settled::question_of;

fn used(cost_usd: f64) -> Usage {
    Usage { input_tokens: 10, output_tokens: 5, cost_usd }
}

/// `leaf` costs a quarter; everything else calls it twice under one key, and then waits, unless it was recovered.
fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "leaf" {
            task.usage(used(0.125)).await?;
            task.usage(used(0.25)).await?;
            return Ok(task.complete_with("done").await?);
        }
        let failed = |error: Error| AgentError::new(error.to_string());
        for _ in 0..2 {
            let called = task.call(Call::new(AGENT, message("leaf")).keyed("1")).await?;
            task.release_permit_while(called.end()).await?.map_err(failed)?;
        }
        task.usage(used(0.5)).await?;
        if turn.cause == Cause::Recovered {
            return Ok(task.complete_with("done").await?);
        }
        task.status("half").await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    })
    .recovering(Recovery::Resume)
}

/// What a task says that it has used, and that its tree has: under the old names, and under `own` and `tree`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reported {
    cost_usd: f64,
    own: Usage,
    tree: Usage,
}

fn reported(task: &Task) -> Reported {
    task.metadata.as_ref().and_then(|metadata| metadata.get(USAGE_KEY)).unwrap().read().unwrap()
}

fn cost(task: &Task) -> f64 {
    let reported = reported(task);
    assert!((reported.own.cost_usd - reported.cost_usd).abs() < f64::EPSILON, "{reported:?}");
    reported.cost_usd
}

#[test]
fn a_child_counts_once_however_often_it_is_called_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    let parent = kernel.run(async {
        let sent = kernel.send("work").await;
        loop {
            let task = kernel.get(sent.id()).await.unwrap();
            if status_text(&task) == "half" {
                return sent.id().clone();
            }
            tokio::task::yield_now().await;
        }
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let ended = kernel.reach(&parent, TaskState::Completed).await;
        assert!((cost(&ended) - 0.5).abs() < f64::EPSILON, "its own, without the child's: {}", cost(&ended));
        assert_eq!(reported(&ended).tree, Usage { input_tokens: 20, output_tokens: 10, cost_usd: 0.75 });
        let last = kernel.log(&parent).await.last().unwrap().line.clone();
        let last: serde_json::Value = serde_json::from_slice(&last).unwrap();
        let told = &last["statusUpdate"]["metadata"][USAGE_KEY]["tree"]["costUsd"];
        assert_eq!(told, &serde_json::json!(0.75), "readers of the stream are told the same: {last}");
        let agent = Caller { id: "~script@local".into(), ..Caller::local() };
        let filter = ListFilter { page_size: 10, ..ListFilter::default() };
        let mut page = kernel.engine.list(&Address::Root, &agent, filter).await.unwrap();
        assert_eq!(page.total, 1, "the calls of both runs are one task");
        let child = page.next().await.unwrap().unwrap().task;
        assert!((cost(&child) - 0.25).abs() < f64::EPSILON, "the newest report stands for all: {}", cost(&child));
        assert_eq!(reported(&child).tree, reported(&child).own, "it has called nothing");
    });
}

/// Calls itself one level down, three times, until the last level; only that one costs anything.
fn levels() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let below: u32 = turn.text().parse().unwrap_or(0);
        let Some(below) = below.checked_sub(1) else {
            task.usage(used(0.25)).await?;
            return Ok(task.complete_with("done").await?);
        };
        let failed = |error: Error| AgentError::new(error.to_string());
        for _ in 0..3 {
            let called = task.call(Call::new(AGENT, message(&below.to_string()))).await?;
            task.release_permit_while(called.end()).await?.map_err(failed)?;
        }
        Ok(task.fail_because(Reason::AgentError, None, "in vain").await?)
    })
}

#[test]
fn a_tree_is_summed_over_its_levels_however_its_root_ends() {
    let folder = tempfile::tempdir().unwrap();
    let delegation = DelegationLimits { revisit: 2, ..DelegationLimits::default() };
    let kernel = Kernel::with_settings(folder.path(), levels(), Settings { delegation, ..Settings::default() });
    kernel.run(async {
        let sent = kernel.send("2").await;
        let ended = kernel.reach(sent.id(), TaskState::Failed).await;
        assert_eq!(reported(&ended).own, Usage::default());
        assert_eq!(reported(&ended).tree, Usage { input_tokens: 90, output_tokens: 45, cost_usd: 2.25 });
    });
}

/// `leaf` and `holder` work until their bells, and a leaf costs a quarter. Everything else calls a leaf and asks; if it was
/// put away meanwhile, it goes on once it is answered, with `later` not before the second bell.
fn asking(bells: &[Arc<Notify>; 2]) -> Script {
    let bells = bells.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let [leaf, holder] = bells.clone();
        async move {
            match turn.text().as_str() {
                "leaf" => {
                    task.working().await?;
                    leaf.notified().await;
                    task.usage(used(0.25)).await?;
                }
                "holder" | "later" => holder.notified().await,
                _ if turn.cause != Cause::Begin => {}
                _ => {
                    let _called = task.call(Call::new(AGENT, message("leaf"))).await?;
                    task.ask("well?").await?;
                }
            }
            Ok(task.complete_with("done").await?)
        }
    })
    .recovering(Recovery::Resume)
}

/// Waits until so many tasks are in memory: one that has ended leaves it after all that follows from its end.
async fn in_memory(kernel: &Kernel, count: usize) {
    while kernel.engine.tasks_in_memory() != count {
        tokio::task::yield_now().await;
    }
}

async fn leaf_works(kernel: &Kernel) {
    loop {
        let live = kernel.engine.live_tasks(TaskKey(0), 10).await.unwrap();
        if live.iter().any(|task| task.task.is_child() && task.state == TaskState::Working) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_child_that_ends_while_its_parent_cannot_write_counts() {
    for (while_it, running_tasks) in [("is answered later", 10), ("waits for a permit", 1), ("is canceled", 10)] {
        let folder = tempfile::tempdir().unwrap();
        let bells = <[Arc<Notify>; 2]>::default();
        let settings = Settings { running_tasks, ..Settings::default() };
        let kernel = Kernel::with_settings(folder.path(), asking(&bells), settings);
        kernel.run(async {
            let root = kernel.send("root").await;
            kernel.reach(root.id(), TaskState::InputRequired).await;
            leaf_works(&kernel).await;
            let mut holder = None;
            if running_tasks == 1 {
                // The one that gets the permit of the child, before the parent that was answered after it was sent.
                holder = Some(kernel.send("holder").await);
                kernel.say(root.id(), "go").await.unwrap();
            }
            bells[0].notify_one();
            in_memory(&kernel, 1 + usize::from(holder.is_some())).await;
            bells[1].notify_one();
            let ended = match while_it {
                "is canceled" => kernel.cancel(root.id()).await.unwrap(),
                "is answered later" => {
                    kernel.say(root.id(), "go").await.unwrap();
                    kernel.reach(root.id(), TaskState::Completed).await
                }
                _ => kernel.reach(root.id(), TaskState::Completed).await,
            };
            assert_eq!(reported(&ended).own, Usage::default(), "{while_it}");
            assert_eq!(reported(&ended).tree, used(0.25), "{while_it}");
        });
    }
}

#[test]
fn a_child_counts_though_its_parent_was_not_in_memory() {
    let ways = ["answered", "answered after a restart", "answered before", "settled", "decided", "canceled", "expired"];
    for way in ways {
        let folder = tempfile::tempdir().unwrap();
        let bells = <[Arc<Notify>; 2]>::default();
        let settings = Settings { park: Duration::ZERO, ..Settings::default() };
        let expiry = settings.parked_expiry;
        let open = || {
            let mut below: Option<Arc<dyn Store>> = None;
            let kernel = Kernel::with(folder.path(), asking(&bells), settings.clone(), |store| {
                let store: Arc<dyn Store> = Arc::new(store);
                below = Some(store.clone());
                store
            });
            (kernel, below.unwrap())
        };
        let (mut kernel, mut store) = open();
        let root = kernel.run(async {
            let root = kernel.send("root").await.id().clone();
            kernel.reach(&root, TaskState::InputRequired).await;
            leaf_works(&kernel).await;
            in_memory(&kernel, 1).await;
            root
        });
        if way == "answered after a restart" {
            drop(store);
            kernel.kill();
            (kernel, store) = open();
            // The leaf is taken up.
            kernel.run(in_memory(&kernel, 1));
        }
        kernel.run(async {
            if way == "answered before" {
                kernel.say(&root, "later").await.unwrap();
                kernel.reach(&root, TaskState::Working).await;
            }
            bells[0].notify_one();
            in_memory(&kernel, usize::from(way == "answered before")).await;
            let question = question_of(&*store, &root).await;
            match way {
                "answered before" => bells[1].notify_one(),
                "settled" => kernel.engine.settled(&root, question).await.unwrap(),
                "decided" => {
                    let answer = ReviewAnswer { verdict: Verdict::Approve, message: message("go") };
                    kernel.engine.answer(&Caller::local(), &root, question, answer).await.unwrap();
                }
                "canceled" => drop(kernel.cancel(&root).await.unwrap()),
                "expired" => {
                    kernel.clock.advance(expiry);
                    kernel.engine.sweep().await;
                }
                _ => drop(kernel.say(&root, "go").await.unwrap()),
            }
            let ended = kernel.ended(&root).await;
            assert!(ended.metadata.as_ref().is_some_and(|all| all.get(USAGE_KEY).is_some()), "{way}: {ended:?}");
            assert_eq!((reported(&ended).own, reported(&ended).tree), (Usage::default(), used(0.25)), "{way}");
        });
    }
}

/// Calls a leaf without a key and waits for it; a recovered run does neither and ends at its bell. A leaf ends at the
/// other one, and a recovered one at once.
fn unkeyed(bells: &[Arc<Notify>; 2]) -> Script {
    let bells = bells.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let [leaf, root] = bells.clone();
        async move {
            let is_recovered = turn.cause == Cause::Recovered;
            match (turn.text().as_str(), is_recovered) {
                ("leaf", false) => {
                    task.usage(used(0.25)).await?;
                    task.working().await?;
                    leaf.notified().await;
                }
                ("leaf", true) => {}
                (_, false) => {
                    let called = task.call(Call::new(AGENT, message("leaf"))).await?;
                    let ended = task.release_permit_while(called.end()).await?;
                    ended.map_err(|error| AgentError::new(error.to_string()))?;
                    task.canceled().await;
                }
                (_, true) => root.notified().await,
            }
            Ok(task.complete_with("done").await?)
        }
    });
    script.recovering(Recovery::Resume)
}

#[test]
fn a_recovered_parent_counts_what_it_has_called_without_a_key() {
    for has_ended in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (bells, faults) = (<[Arc<Notify>; 2]>::default(), Faults::default());
        let kernel = Kernel::with_faults(folder.path(), unkeyed(&bells), Settings::default(), &faults);
        let root = kernel.run(async {
            let root = kernel.send("root").await;
            leaf_works(&kernel).await;
            if has_ended {
                // The end of the child is stored, and what it tells its parent is not.
                faults.fail_after(1);
                bells[0].notify_one();
                while faults.failed() == 0 {
                    tokio::task::yield_now().await;
                }
            }
            root.id().clone()
        });
        kernel.kill();
        let kernel = Kernel::open(folder.path(), unkeyed(&bells));
        kernel.run(async {
            while kernel.engine.live_tasks(TaskKey(0), 10).await.unwrap().len() > 1 {
                tokio::task::yield_now().await;
            }
            in_memory(&kernel, 1).await;
            bells[1].notify_one();
            let ended = kernel.reach(&root, TaskState::Completed).await;
            assert_eq!(reported(&ended).tree, used(0.25), "the child had ended before: {has_ended}");
        });
    }
}

/// Reports the cost that it is told, and asks; `both` reports the most there is and calls one that does the same.
fn boundless() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if let Cause::Answer { .. } = turn.cause {
            return Ok(task.complete_with("done").await?);
        }
        let most = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, cost_usd: f64::MAX };
        match turn.text().as_str() {
            "both" => {
                task.usage(most).await?;
                let called = task.call(Call::new(AGENT, message("one"))).await?;
                let ended = task.release_permit_while(called.end()).await?;
                ended.map_err(|error| AgentError::new(error.to_string()))?;
            }
            "one" => {
                task.usage(most).await?;
                return Ok(task.complete_with("done").await?);
            }
            cost => task.usage(used(cost.parse().unwrap())).await?,
        }
        task.ask("well?").await?;
        Ok(task.complete_with("done").await?)
    })
}

#[test]
fn whatever_is_reported_its_log_can_be_read_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let reports = [("inf", 0.0), ("-inf", 0.0), ("NaN", 0.0), ("-0.5", 0.0), ("0.5", 0.5), ("both", f64::MAX)];
    let kernel = Kernel::open(folder.path(), boundless());
    let ids: Vec<TaskId> = kernel.run(async {
        let mut ids = Vec::new();
        for (report, _) in reports {
            let sent = kernel.send(report).await;
            kernel.reach(sent.id(), TaskState::InputRequired).await;
            ids.push(sent.id().clone());
        }
        ids
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), boundless());
    kernel.run(async {
        for ((report, cost), id) in reports.into_iter().zip(ids) {
            kernel.say(&id, "go").await.unwrap();
            let Reported { own, tree, .. } = reported(&kernel.reach(&id, TaskState::Completed).await);
            let tokens = if report == "both" { (u64::MAX, u64::MAX) } else { (10, 5) };
            let expected = Usage { input_tokens: tokens.0, output_tokens: tokens.1, cost_usd: cost };
            assert_eq!((own, tree), (expected, expected), "{report}");
        }
    });
}

#[test]
fn a_log_from_before_there_were_trees_goes_on() {
    const OWN: &str = r#"{"inputTokens":7,"outputTokens":2,"costUsd":0.5}"#;
    let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}"#;
    let snapshot = format!("{task},\"metadata\":{{\"{USAGE_KEY}\":{OWN}}}}}\n{{\"first\":1}}");
    let of_snapshot = Fold::from_snapshot(snapshot.as_bytes()).unwrap();
    let mut of_events = Fold::from_snapshot(format!("{task}}}\n{{\"first\":1}}").as_bytes()).unwrap();
    of_events.apply(Seq(2), &Event::decode(format!("{{\"used\":{OWN}}}").as_bytes()).unwrap());
    for mut fold in [of_snapshot, of_events] {
        let child = ChildUsage { child: "child".into(), tree: used(0.25) };
        fold.apply(Seq(3), &Event::ChildUsed(child));
        let again = Fold::from_snapshot(&fold.snapshot()).unwrap();
        assert_eq!(again.kernel, fold.kernel);
        let Reported { cost_usd, own, tree } = reported(&again.task);
        assert_eq!((cost_usd, own), (0.5, Usage { input_tokens: 7, output_tokens: 2, cost_usd: 0.5 }));
        assert_eq!(tree, Usage { input_tokens: 17, output_tokens: 7, cost_usd: 0.75 });
    }
    let ended = Bytes::from(format!("{task}}}").replace("WORKING", "COMPLETED"));
    assert_eq!(Fold::from_snapshot(&ended).unwrap().kernel.used, None);
}
