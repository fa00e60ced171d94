//! Cancel against complete, ten thousand seeded interleavings: whoever wins, there is one ending and all agree on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use switchboard_a2a::TaskState;
use switchboard_engine::*;

use crate::kernel::*;

/// How many interleavings.
const ROUNDS: u64 = 10_000;

/// A small generator; its seed names the interleaving.
#[derive(Clone)]
struct Dice(Arc<AtomicU64>);

impl Dice {
    fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)))
    }

    fn roll(&self, sides: u64) -> u64 {
        let mut value = self.0.load(Ordering::Relaxed);
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.0.store(value, Ordering::Relaxed);
        value % sides
    }

    /// Lets others go first a few times.
    async fn dawdle(&self) {
        for _ in 0..self.roll(6) {
            tokio::task::yield_now().await;
        }
    }
}

#[test]
fn cancel_against_complete_has_one_winner_in_ten_thousand_interleavings() {
    let folder = tempfile::tempdir().unwrap();
    let seed = std::env::var("RACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let dice = Dice::seeded(turn.text().parse().unwrap());
        dice.dawdle().await;
        if dice.roll(2) == 0 {
            task.working().await?;
            dice.dawdle().await;
        }
        if dice.roll(3) == 0 {
            let _ = task.text("a piece").await;
            dice.dawdle().await;
        }
        Ok(task.complete_with("done").await?)
    });
    let scripts = [script.clone().early(), script];
    for (index, script) in scripts.into_iter().enumerate() {
        let folder = folder.path().join(index.to_string());
        let kernel = Arc::new(Kernel::open(&folder, script));
        let work = kernel.clone();
        kernel.run(async move {
            let mut racing = tokio::task::JoinSet::new();
            for round in 0..ROUNDS / 2 {
                while racing.len() >= 64 {
                    racing.join_next().await.unwrap().unwrap();
                }
                let kernel = work.clone();
                racing.spawn(async move { race(&kernel, seed + round).await });
            }
            while let Some(result) = racing.join_next().await {
                result.unwrap();
            }
        });
    }
}

async fn race(kernel: &Kernel, seed: u64) {
    let dice = Dice::seeded(seed ^ 0xabcd);
    let sent = kernel.send(&seed.to_string()).await;
    let id = sent.id().clone();
    dice.dawdle().await;
    let (canceled, waited) = tokio::join!(kernel.cancel(&id), answer_task(&sent));
    let stored = kernel.get(&id).await.unwrap().status.state;
    assert_eq!(waited.status.state, stored, "RACE_SEED={seed}: the waiter saw another ending");
    match canceled {
        Ok(task) => {
            assert_eq!((task.status.state, stored), (TaskState::Canceled, TaskState::Canceled), "RACE_SEED={seed}")
        }
        Err(Error::NotCancelable { state, .. }) => assert_eq!(state, stored, "RACE_SEED={seed}"),
        Err(error) => panic!("RACE_SEED={seed}: {error}"),
    }
    let log = kernel.log(&id).await;
    let endings = log.iter().filter(|event| event.kind.is_terminal()).count();
    assert_eq!(endings, 1, "RACE_SEED={seed}: {endings} endings");
    assert!(log.last().unwrap().kind.is_terminal(), "RACE_SEED={seed}: something after the ending");
}
