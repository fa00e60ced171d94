//! A hundred reviewers, the owner, a settlement and the time at once: one of them decides.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use switchboard_a2a::Message;
use switchboard_engine::*;

use super::{Gates, MINUTE, caller, says};
use crate::faults::Faults;
use crate::races::Dice;

/// How many questions are decided by a hundred at once.
const ROUNDS: u64 = 40;
#[test]
fn of_a_hundred_deciders_the_owner_a_settlement_and_the_time_one_decides() {
    let seed = std::env::var("RACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let gates = Gates::open(folder.path(), settings, Some(Faults::dawdle(seed)));
    let kinds = Mutex::new([0u32; 3]);
    gates.kernel.run(async {
        let rounds = stream::iter(0..ROUNDS).map(|round| decide_all(&gates, seed + round, &kinds));
        rounds.buffer_unordered(4).collect::<Vec<()>>().await;
    });
    let kinds = kinds.into_inner();
    assert!(kinds.iter().all(|wins| *wins > 0), "no race: {kinds:?}");
}

async fn decide_all(gates: &Gates, seed: u64, kinds: &Mutex<[u32; 3]>) {
    let dice = Dice::seeded(seed);
    let asked = gates.asked(["operator approve", "operator reject", "caller reject"][dice.roll(3) as usize]).await;
    let deciders = join_all((0..100u64).map(|number| {
        let asked = &asked;
        async move {
            let by = caller(&format!("decider {number}"), true, AgentScope::All);
            for _ in 0..4 {
                Dice::seeded(seed ^ (number << 8)).dawdle().await;
            }
            let verdict = if number % 2 == 0 { Verdict::Approve } else { Verdict::Reject };
            match gates.answer(&by, asked, says(verdict, &format!("decider {number}"))).await {
                Ok(()) => Some(number),
                Err(Error::QuestionClosed { .. } | Error::Unsupported(_)) => None,
                Err(error) => panic!("RACE_SEED={seed}: {error}"),
            }
        }
    }));
    let settle = async {
        for _ in 0..dice.roll(4) {
            dice.dawdle().await;
        }
        gates.kernel.engine.settled(&asked.0, asked.1).await.is_ok()
    };
    let owner = async {
        dice.dawdle().await;
        gates.kernel.say(&asked.0, "the owner").await.is_ok()
    };
    let time = async {
        dice.dawdle().await;
        if dice.roll(2) == 0 {
            gates.kernel.clock.advance(MINUTE);
            gates.kernel.engine.sweep().await;
        }
    };
    let (decided, settled, told, ()) = tokio::join!(deciders, settle, owner, time);
    let task = gates.kernel.ended(&asked.0).await;
    let winners: Vec<_> = decided.into_iter().flatten().collect();
    assert!(winners.len() + usize::from(settled) <= 1, "RACE_SEED={seed}: {winners:?}, settled {settled}");
    let texts = task.history.iter().chain(&task.status.message).map(Message::joined_text).collect::<Vec<_>>();
    let made = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
    let decisions = made("Approve: ") + made("Reject: ");
    let ways = decisions + made("settled") + made("told: ");
    assert_eq!(ways, 1, "RACE_SEED={seed}: {texts:?}");
    if let [winner] = winners[..] {
        let verdict = if winner % 2 == 0 { "Approve" } else { "Reject" };
        assert_eq!(made(&format!("{verdict}: decider {winner}")), 1, "RACE_SEED={seed}: {texts:?}");
    }
    assert_eq!(made("settled"), usize::from(settled), "RACE_SEED={seed}: {texts:?}");
    assert_eq!(made("the owner"), usize::from(told), "RACE_SEED={seed}: {texts:?}");
    let kind = if winners.len() == 1 { 0 } else { 1 + usize::from(!settled) };
    kinds.lock()[kind] += 1;
}
