//! Races, by seed, with a point to yield at after each call of the store: cancel against complete in ten thousand
//! interleavings, and answers against agents that are put away, queued, or on their way out.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use switchboard_a2a::TaskState;
use switchboard_engine::*;

use crate::faults::Faults;
use crate::kernel::*;

/// How many interleavings.
const ROUNDS: u64 = 10_000;

/// A small generator; its seed names the interleaving.
#[derive(Clone)]
pub(crate) struct Dice(Arc<AtomicU64>);

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)))
    }

    pub(crate) fn roll(&self, sides: u64) -> u64 {
        let mut value = self.0.load(Ordering::Relaxed);
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.0.store(value, Ordering::Relaxed);
        value % sides
    }

    /// Lets others go first a few times.
    pub(crate) async fn dawdle(&self) {
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
        let faults = Faults::dawdle(seed.wrapping_mul(2) | 1);
        let kernel = Arc::new(Kernel::with_faults(&folder, script, Settings::default(), &faults));
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

/// What a run came to: whether it had heard of the cancel, and whether it could complete.
type Heard = Arc<Mutex<HashMap<String, (bool, Result<(), Stopped>)>>>;

#[test]
fn a_run_completes_unless_it_has_heard_of_the_cancel_and_the_canceler_is_told_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let seed = std::env::var("RACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3u64);
    let heard = Heard::default();
    let told = heard.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let told = told.clone();
        async move {
            let dice = Dice::seeded(turn.text().parse().unwrap());
            let mut has_heard = false;
            for _ in 0..dice.roll(8) {
                dice.dawdle().await;
                has_heard |= match dice.roll(4) {
                    0 => task.is_canceled(),
                    1 => task.canceled().now_or_never().is_some(),
                    2 => task.status("on").await == Err(Stopped::Canceled),
                    _ => task.save_committed(&1).await == Err(Stopped::Canceled),
                };
            }
            let completed = task.complete_with("done").await;
            told.lock().insert(turn.text(), (has_heard, completed.clone()));
            Ok(completed?)
        }
    });
    let faults = Faults::dawdle(seed);
    let kernel = Arc::new(Kernel::with_faults(folder.path(), script, Settings::default(), &faults));
    let work = kernel.clone();
    kernel.run(async move {
        let mut racing = tokio::task::JoinSet::new();
        let mut have_heard = 0;
        for round in 0..ROUNDS / 4 {
            while racing.len() >= 64 {
                have_heard += u64::from(racing.join_next().await.unwrap().unwrap());
            }
            let (kernel, heard) = (work.clone(), heard.clone());
            racing.spawn(async move { cancel_against_hearing(&kernel, seed + round, &heard).await });
        }
        while let Some(result) = racing.join_next().await {
            have_heard += u64::from(result.unwrap());
        }
        println!("{have_heard} of {} runs had heard of the cancel", ROUNDS / 4);
        assert!(have_heard > 0 && have_heard < ROUNDS / 4, "no race: {have_heard} had heard");
    });
}

/// Says whether the run had heard.
async fn cancel_against_hearing(kernel: &Kernel, seed: u64, heard: &Heard) -> bool {
    let dice = Dice::seeded(seed ^ 0xabcd);
    let id = kernel.send(&seed.to_string()).await.id().clone();
    for _ in 0..dice.roll(6) {
        dice.dawdle().await;
    }
    let canceled = kernel.cancel(&id).await;
    let state = kernel.ended(&id).await.status.state;
    // The commit that ends the task is seen by others before the run returns. A task that is canceled before its run
    // begins has none.
    let ran = heard.lock().get(&seed.to_string()).cloned();
    let was_canceled = canceled.is_ok();
    let expected = if was_canceled { TaskState::Canceled } else { TaskState::Completed };
    assert_eq!(state, expected, "RACE_SEED={seed}: {canceled:?}");
    let Some((has_heard, completed)) = ran else { return false };
    assert!(!has_heard || was_canceled, "RACE_SEED={seed}: it had heard of the cancel and completed all the same");
    assert_eq!(completed.is_ok(), !was_canceled, "RACE_SEED={seed}: the run was told {completed:?}");
    has_heard
}

/// Answers every question until the task ends, and says how often the agent ran.
#[test]
fn an_answer_always_finds_an_agent() {
    let seed = std::env::var("RACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7u64);
    for (park, cap, walks_out) in [
        (Duration::ZERO, 1_000, false),
        (Duration::ZERO, 2, false),
        (Duration::from_secs(600), 2, false),
        (Duration::from_secs(600), 1_000, true),
        (Duration::from_secs(600), 2, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { park, running_tasks: cap, ..Settings::default() };
        let faults = Faults::dawdle(seed);
        let kernel = Arc::new(Kernel::with_faults(folder.path(), counter(walks_out), settings, &faults));
        let work = kernel.clone();
        kernel.run(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..60 {
                let kernel = work.clone();
                tasks.spawn(async move { count_down(&kernel, seed + number).await });
            }
            while let Some(result) = tasks.join_next().await {
                result.unwrap();
            }
        });
    }
}

/// Asks for a smaller number until it is zero. One that walks out asks and returns without waiting.
fn counter(walks_out: bool) -> Script {
    Script::new(move |turn: Turn, task: TaskHandle| async move {
        let mut left: u64 = turn.text().parse().unwrap();
        while left > 0 {
            let dice = Dice::seeded(left);
            let mut ask = Box::pin(task.ask(left.to_string()));
            if walks_out {
                let asked = ask.as_mut().now_or_never();
                assert!(asked.is_none());
                dice.dawdle().await;
                return Ok(());
            }
            left = ask.await?.joined_text().parse().unwrap();
            dice.dawdle().await;
        }
        Ok(task.complete_with("done").await?)
    })
}

async fn count_down(kernel: &Kernel, seed: u64) {
    let dice = Dice::seeded(seed);
    let mut sent = kernel.send("12").await;
    loop {
        let task = answer_task(&sent).await;
        if task.status.state == TaskState::Completed {
            return;
        }
        assert_eq!(task.status.state, TaskState::InputRequired, "RACE_SEED={seed}: {}", status_text(&task));
        dice.dawdle().await;
        let left: u64 = status_text(&task).parse().unwrap();
        sent = kernel.say(&task.id, &(left - 1).to_string()).await.unwrap();
    }
}
