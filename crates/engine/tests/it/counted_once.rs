//! What a tree of tasks has cost is the sum of what each of its tasks reports of itself. Nothing of it counts twice: not
//! after a crash of the parent, not when a call is repeated, not when an agent reports again.

use switchboard_a2a::{Task, TaskState};
use switchboard_engine::event::Usage;
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::store::ListFilter;
use switchboard_engine::*;

use crate::kernel::*;

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

fn cost(task: &Task) -> f64 {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reported {
        cost_usd: f64,
    }
    let usage = task.metadata.as_ref().and_then(|metadata| metadata.get(USAGE_KEY));
    usage.unwrap().read::<Reported>().unwrap().cost_usd
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
        let agent = Caller { id: "~script@local".into(), ..Caller::local() };
        let filter = ListFilter { page_size: 10, ..ListFilter::default() };
        let mut page = kernel.engine.list(&Address::Root, &agent, filter).await.unwrap();
        assert_eq!(page.total, 1, "the calls of both runs are one task");
        let child = page.next().await.unwrap().unwrap().task;
        assert!((cost(&child) - 0.25).abs() < f64::EPSILON, "the newest report stands for all: {}", cost(&child));
    });
}
