//! Two nodes on one store: messages, answers, cancels, claims and terminal events from both sides, by seed. Whatever the
//! interleaving, a task has one terminal event, its log no gap, nothing acknowledged is lost, and both nodes read the same.

mod planted;
mod takeover;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use switchboard_a2a::{Role, Task, TaskId, TaskState};
use switchboard_engine::store::Store;
use switchboard_engine::*;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::races::Dice;

/// How many interleavings the test command tries; `RACE_ROUNDS=10000` tries more.
const ROUNDS: u64 = 500;

/// A task that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(300);

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// What the agent saw.
#[derive(Clone, Default)]
struct Seen {
    /// How often each message of each task was worked on.
    runs: Arc<Mutex<HashMap<(TaskId, Seq), u32>>>,
    /// Its questions, each with the answer that the same run was given.
    answers: Arc<Mutex<Vec<(TaskId, String, String)>>>,
}

/// Works, asks and ends as the text of the message makes it.
fn script(seen: Seen) -> Script {
    Script::new(move |turn: Turn, task: TaskHandle| {
        *seen.runs.lock().entry((task.id().clone(), turn.seq)).or_default() += 1;
        work(turn, task, seen.clone())
    })
    .recovering(Recovery::Resume)
}

async fn work(turn: Turn, task: TaskHandle, seen: Seen) -> Result<(), AgentError> {
    let dice = dice_of(&turn.text());
    for _ in 0..dice.roll(5) {
        dice.dawdle().await;
        match dice.roll(4) {
            0 => task.working().await?,
            1 => task.text("a piece ").await?,
            2 => task.save(&dice.roll(9)).await?,
            _ => {
                let question = format!("question {}", uuid::Uuid::new_v4());
                let answer = task.ask(question.as_str()).await?;
                seen.answers.lock().push((task.id().clone(), question, answer.joined_text()));
            }
        }
    }
    dice.dawdle().await;
    match dice.roll(4) {
        0 => Ok(task.fail("no").await?),
        _ => Ok(task.complete_with("done").await?),
    }
}

fn dice_of(text: &str) -> Dice {
    Dice::seeded(text.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))))
}

/// What is wrong with a task, and its seed.
#[derive(Debug)]
#[expect(dead_code, reason = "a test that fails prints them")]
enum Problem {
    /// It has not ended in time. That proves nothing: the machine may be slow.
    Hangs(String),
    /// It has broken a rule, or a call was refused that may not be.
    Judged(String),
}

/// The nodes, and the store that they share.
pub(super) struct Nodes {
    nodes: [Kernel; 2],
    store: Arc<dyn Store>,
    seen: Seen,
}

impl Nodes {
    fn open(folder: &std::path::Path, settings: &Settings, seed: u64, planted: planted::Bug) -> Self {
        let mut opened: Option<Arc<dyn Store>> = None;
        let seen = Seen::default();
        let nodes = Kernel::two_nodes(folder, &script(seen.clone()), settings, |store| {
            let store = Arc::new(store);
            opened.get_or_insert_with(|| store.clone());
            let faults = Faults::dawdle(seed);
            let faulty = Arc::new(FaultyStore { store: store.clone(), hooks: faults });
            planted::wrap(planted, faulty, store)
        });
        Self { nodes, store: opened.unwrap(), seen }
    }

    /// One of them.
    fn any(&self, dice: &Dice) -> &Kernel {
        &self.nodes[dice.roll(2) as usize]
    }

    /// Both of them, the one first or the other.
    fn both(&self) -> [&Kernel; 2] {
        [&self.nodes[0], &self.nodes[1]]
    }

    /// Many tasks, several at a time; the first thing that is wrong, if anything is.
    fn play_all(&self, seeds: impl Iterator<Item = u64>) -> Result<(), Problem> {
        let play = |seed| async move {
            match tokio::time::timeout(HANGS_AFTER, self.play(seed)).await {
                Ok(played) => played.map_err(|problem| Problem::Judged(format!("RACE_SEED={seed}: {problem}"))),
                Err(_) => Err(Problem::Hangs(format!("RACE_SEED={seed}"))),
            }
        };
        self.run(stream::iter(seeds).map(play).buffer_unordered(16).try_collect())
    }

    /// One task from its first message to its end; what is wrong with it, if anything is.
    async fn play(&self, seed: u64) -> Result<(), String> {
        let dice = Dice::seeded(seed ^ 0x5eed);
        let first = format!("first {seed}");
        let sent =
            self.any(&dice).try_send(message(&first)).await.map_err(|error| format!("the first message: {error}"))?;
        let id = sent.id().clone();
        let acknowledged = Mutex::new(vec![first]);
        let (messages, answers, cancel, stream) = tokio::join!(
            self.follow_up(&id, Dice::seeded(seed ^ 1), &acknowledged),
            self.answer_until_it_ends(&id, Dice::seeded(seed ^ 2), &acknowledged),
            self.cancel_perhaps(&id, Dice::seeded(seed ^ 3)),
            self.follow(&id, Dice::seeded(seed ^ 4)),
        );
        messages?;
        answers?;
        let seen = stream?;
        self.judge(&id, &acknowledged.into_inner(), cancel?, &seen).await
    }

    async fn say(&self, node: &Kernel, id: &TaskId, text: String, said: &Mutex<Vec<String>>) -> Result<bool, String> {
        match node.say(id, &text).await {
            Ok(_) => {
                said.lock().push(text.clone());
                for node in self.both() {
                    let task = node.get(id).await.map_err(|error| error.to_string())?;
                    if !has_message(&task, &text) {
                        return Err(format!("a read fell behind the acknowledged message {text:?}"));
                    }
                }
                Ok(true)
            }
            // It has ended or is being canceled.
            Err(Error::Unsupported(_)) => Ok(false),
            Err(error) => Err(format!("a message was refused: {error}")),
        }
    }

    async fn follow_up(&self, id: &TaskId, dice: Dice, said: &Mutex<Vec<String>>) -> Result<(), String> {
        for number in 0..dice.roll(4) {
            dice.dawdle().await;
            self.say(self.any(&dice), id, format!("message {number} {}", dice.roll(1_000)), said).await?;
        }
        Ok(())
    }

    async fn answer_until_it_ends(&self, id: &TaskId, dice: Dice, said: &Mutex<Vec<String>>) -> Result<(), String> {
        for number in 0.. {
            let task = self.any(&dice).get(id).await.map_err(|error| error.to_string())?;
            if task.status.state.is_terminal() {
                return Ok(());
            }
            if task.status.state.is_interrupted() {
                self.say(self.any(&dice), id, format!("answer {number} {}", dice.roll(1_000)), said).await?;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn cancel_perhaps(&self, id: &TaskId, dice: Dice) -> Result<Option<TaskState>, String> {
        if dice.roll(3) > 0 {
            return Ok(None);
        }
        for _ in 0..dice.roll(8) {
            dice.dawdle().await;
        }
        match self.any(&dice).cancel(id).await {
            Ok(task) => Ok(Some(task.status.state)),
            Err(Error::NotCancelable { state, .. }) => Ok(Some(state)),
            Err(error) => Err(format!("a cancel was refused: {error}")),
        }
    }

    /// Everything that one reader sees, from the first event on.
    async fn follow(&self, id: &TaskId, dice: Dice) -> Result<Vec<u64>, String> {
        let log = self.any(&dice).log(id).await;
        Ok(log.iter().map(|event| event.seq.0).collect())
    }

    async fn judge(
        &self,
        id: &TaskId,
        acknowledged: &[String],
        canceled: Option<TaskState>,
        seen: &[u64],
    ) -> Result<(), String> {
        let check = |holds: bool, what: String| if holds { Ok(()) } else { Err(what) };
        let mut readings = Vec::new();
        for node in self.both() {
            let task = node.get(id).await.map_err(|error| error.to_string())?;
            let log = node.log(id).await;
            let lines: Vec<_> = log.iter().map(|event| (event.seq.0, event.line.clone())).collect();
            readings.push((serde_json::to_string(&task).unwrap(), lines, task, log));
        }
        check(readings[0].0 == readings[1].0, format!("two readings: {}\n{}", readings[0].0, readings[1].0))?;
        check(readings[0].1 == readings[1].1, "two logs".to_owned())?;
        let (_, lines, task, log) = &readings[0];
        let sent: Vec<u64> = lines.iter().map(|(seq, _)| *seq).collect();
        check(sent == seen, format!("a stream had {seen:?} of {sent:?}"))?;
        let endings = log.iter().filter(|event| event.kind.is_terminal()).count();
        check(endings == 1, format!("{endings} terminal events"))?;
        check(
            log.last().is_some_and(|event| event.kind.is_terminal()),
            "something after the terminal event".to_owned(),
        )?;
        if let Some(state) = canceled {
            check(task.status.state == state, format!("canceled as {state:?}, ended as {:?}", task.status.state))?;
        }
        for text in acknowledged {
            let times = task.history.iter().filter(|message| message.joined_text() == *text).count();
            check(times == 1, format!("{text:?} is there {times} times"))?;
        }
        let rising =
            log.iter().filter_map(|event| status_time(&event.line)).is_sorted_by(|before, after| before < after);
        check(rising, "status times do not rise".to_owned())?;
        let repeated =
            self.seen.runs.lock().iter().find(|((task, _), runs)| task == id && **runs > 1).map(|((_, seq), _)| *seq);
        check(repeated.is_none(), format!("two turns on message {repeated:?}"))?;
        for (_, question, answer) in self.seen.answers.lock().iter().filter(|(task, ..)| task == id) {
            let after = task.history.iter().skip_while(|message| message.joined_text() != *question);
            let right = after.skip(1).find(|message| message.role == Role::User).map(|message| message.joined_text());
            check(
                right.as_ref() == Some(answer),
                format!("{answer:?} was given to {question:?} instead of {right:?}"),
            )?;
        }
        self.check_numbers(id).await
    }

    /// The rows of the log follow each other without a gap.
    async fn check_numbers(&self, id: &TaskId) -> Result<(), String> {
        let row = self.store.row(id).await.unwrap().unwrap();
        let mut next = 1;
        for row in self.store.read(row.key, Seq(0), usize::MAX).await.unwrap() {
            if row.first_seq.0 != next {
                return Err(format!("event {next} is missing"));
            }
            next += u64::from(row.count);
        }
        if row.last_seq.0 + 1 == next { Ok(()) } else { Err("the row does not know the last event".to_owned()) }
    }

    /// Runs work while the clock goes on, so that whatever waits for time gets it.
    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.nodes[0].run(async {
            let mut work = std::pin::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => return done,
                    () = tokio::time::sleep(Duration::from_millis(1)) => self.nodes[0].clock.advance(Duration::from_millis(300)),
                }
            }
        })
    }
}

fn has_message(task: &Task, text: &str) -> bool {
    task.history.iter().any(|message| message.joined_text() == text)
}

fn status_time(line: &[u8]) -> Option<String> {
    let frame: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(frame["statusUpdate"]["status"]["timestamp"].as_str()?.to_owned())
}

#[test]
fn two_nodes_agree_on_every_task_whatever_the_interleaving() {
    let folder = tempfile::tempdir().unwrap();
    let seed = from_environment("RACE_SEED", 11);
    let rounds = from_environment("RACE_ROUNDS", ROUNDS);
    for (index, settings) in variants().into_iter().enumerate() {
        let nodes = Nodes::open(&folder.path().join(index.to_string()), &settings, seed | 1, planted::Bug::None);
        let seeds = (0..rounds / 4).map(|round| seed.wrapping_add(round));
        nodes.play_all(seeds).unwrap();
    }
}

/// Agents that are put away at once or kept while they wait, and turns that start at once or queue.
fn variants() -> [Settings; 4] {
    let variant = |park, running_tasks| Settings { park, running_tasks, ..Settings::default() };
    let (never, long) = (Duration::ZERO, Duration::from_secs(600));
    [variant(never, 1_000), variant(long, 1_000), variant(never, 2), variant(long, 2)]
}
