//! Questions that are settled elsewhere: the turn goes on without an answer, and of a settlement, an answer, a cancel and
//! the question timeout exactly one ends the wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use switchboard_a2a::{Message, Role, TaskId, TaskState};
use switchboard_engine::store::Store;
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::races::Dice;

/// Asks, in memory or by returning; says what it went on with.
fn asker() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        match &turn.cause {
            Cause::Begin if turn.text() == "return" => {
                return Ok(task.say(TaskState::InputRequired, Some(Message::text(Role::Agent, "well?")), None).await?);
            }
            Cause::Begin if turn.text() == "without words" => {
                return Ok(task.say(TaskState::InputRequired, None, None).await?);
            }
            Cause::Begin => match task.ask("well?").await {
                Ok(answer) => task.complete_with(format!("answered {}", answer.joined_text())).await?,
                Err(Stopped::Settled) if turn.text() == "handle" => task.complete_with("settled in memory").await?,
                Err(stopped) => return Err(stopped.into()),
            },
            Cause::Settled { question } => {
                let question = question.as_ref().map(Message::joined_text).unwrap_or_default();
                task.complete_with(format!("settled: {question} {}", turn.text())).await?;
            }
            Cause::Answer { .. } => task.complete_with(format!("answered {}", turn.text())).await?,
            Cause::Next => task.complete_with(format!("then {}", turn.text())).await?,
            Cause::Recovered => task.complete_with("recovered").await?,
        }
        Ok(())
    })
}

/// The number of the first question, whatever has happened since.
pub(crate) async fn question_of(store: &dyn Store, id: &TaskId) -> Seq {
    let is_question = |line: &String| line.contains("_REQUIRED\"");
    Seq(raw_lines(store, id).await.iter().position(is_question).unwrap() as u64 + 1)
}

/// A kernel and the store below it.
fn opened(folder: &std::path::Path, settings: Settings, faults: Option<Faults>) -> (Kernel, Arc<dyn Store>) {
    let mut below: Option<Arc<dyn Store>> = None;
    let kernel = Kernel::with(folder, asker(), settings, |store| {
        let store = Arc::new(store);
        below = Some(store.clone());
        match faults {
            Some(faults) => Arc::new(FaultyStore { store, hooks: faults }),
            None => store,
        }
    });
    (kernel, below.unwrap())
}

#[test]
fn a_settled_question_lets_the_turn_go_on_wherever_its_agent_is() {
    let folder = tempfile::tempdir().unwrap();
    let (kernel, store) = opened(folder.path(), Settings::default(), None);
    let left = kernel.run(async {
        for (text, expected) in [
            ("handle", "settled in memory"),
            ("propagate", "settled: well? propagate"),
            ("return", "settled: well? return"),
            ("without words", "settled:  without words"),
        ] {
            let sent = kernel.send(text).await;
            kernel.reach(sent.id(), TaskState::InputRequired).await;
            let question = question_of(&*store, sent.id()).await;
            let wrong = kernel.engine.settled(sent.id(), Seq(question.0 - 1)).await;
            assert!(matches!(wrong, Err(Error::QuestionClosed { .. })), "{wrong:?}");
            kernel.engine.settled(sent.id(), question).await.unwrap();
            let late = kernel.say(sent.id(), "late").await;
            let task = kernel.ended(sent.id()).await;
            if late.is_ok() {
                assert_eq!(status_text(&task), "then late", "an answer that comes too late is a message");
            } else {
                assert_eq!(status_text(&task), expected);
            }
            let again = kernel.engine.settled(sent.id(), question).await;
            assert!(matches!(again, Err(Error::QuestionClosed { .. })), "{again:?}");
        }
        let sent = kernel.send("without words").await;
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        kernel.say(sent.id(), "yes").await.unwrap();
        assert_eq!(
            status_text(&kernel.ended(sent.id()).await),
            "answered yes",
            "no words, and a question all the same"
        );
        let sent = kernel.send("handle").await;
        kernel.reach(sent.id(), TaskState::InputRequired).await;
        (sent.id().clone(), question_of(&*store, sent.id()).await)
    });
    drop(store);
    kernel.stop();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        kernel.engine.settled(&left.0, left.1).await.unwrap();
        assert_eq!(status_text(&kernel.ended(&left.0).await), "settled: well? handle");
    });
}

/// Asks, waits until the test has closed its question, tries to settle it, and says what came of both. Once it knows that a
/// question was settled, it tries to settle that one again.
fn late_settler(closed: Arc<Notify>) -> Script {
    Script::new(move |turn: Turn, task: TaskHandle| {
        let closed = Arc::clone(&closed);
        async move {
            let Cause::Begin = turn.cause else { return Ok(task.complete_with("another run").await?) };
            let mut asked = std::pin::pin!(task.ask("well?"));
            assert!(futures_util::poll!(asked.as_mut()).is_pending());
            closed.notified().await;
            let settled = task.settle().await;
            assert!(matches!(settled, Err(Error::QuestionClosed { .. })), "{settled:?}");
            let answer = match asked.await {
                Err(Stopped::Settled) => {
                    assert!(!task.settle().await.unwrap(), "there is no question any more");
                    "none".to_owned()
                }
                answer => answer?.joined_text(),
            };
            task.complete_with(answer).await?;
            Ok(())
        }
    })
}

#[test]
fn what_is_closed_already_is_not_settled_and_not_waited_for() {
    let parks = [Duration::ZERO, Duration::from_secs(3_600)];
    for (park, expected) in parks.into_iter().flat_map(|park| ["none", "yes"].map(|expected| (park, expected))) {
        // A run that is put away leaves the sign to the next one, so each has its own.
        let (folder, closed) = (tempfile::tempdir().unwrap(), Arc::new(Notify::new()));
        let settings = Settings { park, ..Settings::default() };
        let mut below: Option<Arc<dyn Store>> = None;
        let kernel = Kernel::with(folder.path(), late_settler(Arc::clone(&closed)), settings, |store| {
            let store: Arc<dyn Store> = Arc::new(store);
            below = Some(Arc::clone(&store));
            store
        });
        let store = below.unwrap();
        kernel.run(async {
            let sent = kernel.send("go").await;
            kernel.reach(sent.id(), TaskState::InputRequired).await;
            match expected {
                "none" => kernel.engine.settled(sent.id(), question_of(&*store, sent.id()).await).await.unwrap(),
                answer => drop(kernel.say(sent.id(), answer).await.unwrap()),
            }
            closed.notify_one();
            let text = status_text(&kernel.ended(sent.id()).await);
            // With no time in memory, what closes the question begins another run.
            assert!(text == expected || park.is_zero() && text == "another run", "{text}");
        });
        drop(store);
        kernel.stop();
    }
}

const ROUNDS: u64 = 300;
/// The question timeout of the race.
const EXPIRY: Duration = Duration::from_secs(60);

#[test]
fn one_of_settlement_answer_cancel_and_timeout_ends_a_wait() {
    let seed = std::env::var("RACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    for park in [Duration::ZERO, Duration::from_secs(3_600)] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { park, parked_expiry: EXPIRY, ..Settings::default() };
        let (kernel, store) = opened(folder.path(), settings, Some(Faults::dawdle(seed)));
        let winners = Mutex::new([0; 4]);
        kernel.run(async {
            let rounds = stream::iter(0..ROUNDS).map(|round| race(&kernel, &*store, seed + round, &winners));
            rounds.buffer_unordered(8).collect::<Vec<()>>().await;
        });
        let winners = winners.into_inner();
        assert!(winners.iter().all(|wins| *wins > 0), "no race: {winners:?}");
    }
}

async fn race(kernel: &Kernel, store: &dyn Store, seed: u64, winners: &Mutex<[u32; 4]>) {
    let dice = Dice::seeded(seed);
    let sent = kernel.send(["handle", "propagate", "return"][dice.roll(3) as usize]).await;
    let id = sent.id();
    answer_task(&sent).await;
    let question = question_of(store, id).await;
    let settle = |salt: u64| async move {
        Dice::seeded(seed ^ salt).dawdle().await;
        kernel.engine.settled(id, question).await.is_ok()
    };
    let answer = |salt: u64| async move {
        Dice::seeded(seed ^ salt).dawdle().await;
        kernel.say(id, &format!("answer {salt}")).await.is_ok()
    };
    let cancel = async {
        Dice::seeded(seed ^ 5).dawdle().await;
        if dice.roll(3) == 0 {
            let _ = kernel.cancel(id).await;
        }
    };
    let expire = async {
        Dice::seeded(seed ^ 6).dawdle().await;
        if dice.roll(3) == 0 {
            kernel.clock.advance(EXPIRY);
            kernel.engine.sweep().await;
        }
    };
    let (settled, answered, (), ()) = tokio::join!(
        async { tokio::join!(settle(1), settle(2)) },
        async { tokio::join!(answer(3), answer(4)) },
        cancel,
        expire,
    );
    let task = kernel.ended(id).await;
    let lines = raw_lines(store, id).await;
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("\"settled\""), usize::from(settled.0 || settled.1), "RACE_SEED={seed}: {lines:?}");
    assert!(!(settled.0 && settled.1), "RACE_SEED={seed}: settled twice");
    let told = usize::from(answered.0) + usize::from(answered.1);
    assert_eq!(count("{\"received\""), 1 + told, "RACE_SEED={seed}: {lines:?}");
    let ends = lines.iter().filter(|line| line.starts_with("{\"statusUpdate\"") && is_terminal(line)).count();
    assert!(ends == 1 && is_terminal(lines.last().unwrap()), "RACE_SEED={seed}: {lines:?}");
    // The event after the question says what has ended the wait, and the turn goes on from that.
    let next = &lines[question.0 as usize];
    let text = status_text(&task);
    let winner = if next == "\"settled\"" {
        0
    } else if next.starts_with("{\"received\"") {
        1
    } else if next == "\"cancelRequested\"" {
        2
    } else {
        assert_eq!(reason(&task), "input_expired", "RACE_SEED={seed}: {next}");
        3
    };
    winners.lock()[winner] += 1;
    if told == 0 && winner == 0 && task.status.state == TaskState::Completed {
        assert!(text.starts_with("settled"), "RACE_SEED={seed}: {text}");
    }
}

fn is_terminal(line: &str) -> bool {
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|state| line.contains(&format!("TASK_STATE_{state}")))
}

/// Every event of a task, the kernel's own included.
async fn raw_lines(store: &dyn Store, id: &TaskId) -> Vec<String> {
    let row = store.row(id).await.unwrap().unwrap();
    let rows = store.read(row.key, Seq(0), usize::MAX).await.unwrap();
    let text = |row: &store::EventRow| String::from_utf8(row.events.to_vec()).unwrap();
    rows.iter().flat_map(|row| text(row).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}
