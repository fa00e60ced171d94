//! A thousand streams over a network that breaks in every way we could think of. Whatever happens, a client that
//! follows a task sees every event once and in order, or is told that part of it is missing.

mod fault;
mod proxy;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Message, Role, SendResponse, StreamResponse, Task, TaskState, Version};
use switchboard_client::{CallContext, Client, Limits, Peer, Update, egress};
use switchboard_egress::Egress;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::world::{BINDINGS, CHUNKS_PER_STATUS, World, chunk, quick, say};
use fault::{Met, Trouble};
use proxy::{IDLE, Proxy, Seems};

/// With numbers, and half as many each without them and without the task at the beginning of a subscription.
const RUNS: u64 = 500;
const AT_ONCE: usize = 24;
const CHUNKS: usize = 200;

/// What a follower was told.
#[derive(Default)]
struct Told {
    tasks: usize,
    /// What pictures of the task have shown besides texts.
    shown: Vec<String>,
    events: Vec<String>,
    /// The texts as a reader has them who heeds that a chunk replaces those before it, and the replaced ones.
    texts: String,
    replaced: String,
    lost: u64,
    gaps: Vec<String>,
    /// The task as the events tell it, and as the client has it.
    folded: Option<Task>,
    came_to: Option<SendResponse>,
}

/// What all runs have met.
#[derive(Default)]
struct Sum {
    lost: u64,
    /// Runs with a gap.
    gaps: u64,
    runs: u64,
    failures: Vec<String>,
    met: Arc<Met>,
}

fn expected() -> Vec<String> {
    let mut events = Vec::new();
    for number in 1..=CHUNKS {
        events.push(chunk(number));
        if number % CHUNKS_PER_STATUS == 0 {
            events.push(format!("at {number}"));
        }
    }
    events.push("end".to_owned());
    events
}

fn all_texts() -> String {
    (1..=CHUNKS).map(chunk).collect()
}

/// Every fourth run in the same binding and version.
fn client(egress: &Egress, address: SocketAddr, seed: u64) -> Client {
    let mut peer = Peer::new(format!("http://{address}/a2a/counter"));
    peer.binding = Some(BINDINGS[(seed % 2) as usize]);
    peer.version = Some(if seed % 4 < 2 { Version::V1 } else { Version::V03 });
    peer.limits = Limits { idle: IDLE, total: Some(Duration::from_secs(600)), ..Limits::default() };
    peer.retries = quick(20);
    Client::new(egress.clone(), peer).unwrap()
}

async fn follow(client: &Client) -> Result<Told, String> {
    let text = |error: switchboard_client::ClientError| error.to_string();
    let mut told = Told::default();
    let mut followed = client.stream(&CallContext::default(), say(&CHUNKS.to_string())).await.map_err(text)?;
    while let Some(update) = followed.next().await.map_err(text)? {
        match update {
            Update::Lost { .. } => told.lost += 1,
            Update::Gap(gap) => told.gaps.push(gap.to_string()),
            Update::Event(event) => told.take(*event),
        }
    }
    told.came_to = followed.response();
    Ok(told)
}

fn texts(task: &Task) -> String {
    task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(|part| part.as_text()).collect()
}

impl Told {
    fn take(&mut self, event: StreamResponse) {
        match &event {
            StreamResponse::Task(task) => {
                self.tasks += 1;
                self.texts.push_str(&texts(task));
                let said = task.history.iter().filter(|message| message.role == Role::Agent);
                self.shown.extend(said.chain(&task.status.message).map(Message::joined_text));
                self.shown.extend(task.status.state.is_terminal().then(|| "end".to_owned()));
                self.folded = Some(task.clone());
                return;
            }
            StreamResponse::ArtifactUpdate(update) => {
                let text: String = update.artifact.parts.iter().filter_map(|part| part.as_text()).collect();
                if !update.append && self.may_be_replaced_by(&text) {
                    self.replaced.push_str(&std::mem::take(&mut self.texts));
                }
                self.texts.push_str(&text);
                self.events.push(text);
            }
            StreamResponse::StatusUpdate(update) if update.status.state.is_terminal() => {
                self.events.push("end".to_owned());
            }
            StreamResponse::StatusUpdate(update) => {
                self.events.extend(update.status.message.as_ref().map(|message| message.joined_text()));
            }
            StreamResponse::Message(_) => self.events.push("a message".to_owned()),
        }
        if let Some(task) = &mut self.folded {
            task.apply(&event);
        }
    }

    /// Whether the texts so far may give way to a chunk that is not appended without a gap. Two frames of the agent say
    /// so themselves when others have overtaken them, and if the connection is lost right after them, nothing is missing:
    /// its first chunk, and a picture of the task that is older than the one already told.
    fn may_be_replaced_by(&self, text: &str) -> bool {
        let is_older = self.texts.len() > text.len() && self.texts.starts_with(text);
        text == chunk(1) || is_older && all_texts().starts_with(&self.texts)
    }

    /// With numbers there is nothing that may be missing.
    fn is_all(&self) -> Result<(), String> {
        if let Some(gap) = self.gaps.first() {
            return Err(format!("a gap: {gap}"));
        }
        if self.tasks != 1 {
            return Err(format!("the task was told {} times", self.tasks));
        }
        let expected = expected();
        if self.events != expected {
            let at = self.events.iter().zip(&expected).position(|(told, expected)| told != expected);
            let at = at.unwrap_or(self.events.len().min(expected.len()));
            let told = &self.events[at.saturating_sub(2)..self.events.len().min(at + 4)];
            return Err(format!("of {} events, from {at} on: {told:?}", self.events.len()));
        }
        match self.came_to == self.folded.clone().map(SendResponse::Task) {
            true => Ok(()),
            false => Err(format!("what was told is not what it came to: {:?}", self.came_to)),
        }
    }

    /// Without numbers the texts are whole, or it is said that they are not. There is no excuse, and nothing is told
    /// twice, if nothing but connections was lost.
    fn is_all_or_owned_up(&self, has_rearranged: bool) -> Result<(), String> {
        let expected = all_texts();
        let Some(SendResponse::Task(task)) = &self.came_to else { return Err(format!("{:?}", self.came_to)) };
        if task.status.state != TaskState::Completed || texts(task) != expected {
            return Err(format!("it came to {task:?}"));
        }
        match (self.gaps.first(), has_rearranged) {
            (Some(gap), false) => Err(format!("a gap though nothing was rearranged: {gap}")),
            (None, _) if self.texts != expected => Err(format!("no gap, and the texts are {}", self.texts)),
            (None, false) if !self.replaced.is_empty() => Err(format!("it was told again after {}", self.replaced)),
            (None, false) => self.is_told_once(),
            _ => Ok(()),
        }
    }

    /// What else was said, each time once and in order, and nothing empty.
    fn is_told_once(&self) -> Result<(), String> {
        let expected = expected().into_iter().filter(|event| !event.starts_with('<'));
        let told = self.shown.iter().chain(&self.events).filter(|event| !event.starts_with('<'));
        match told.clone().eq(&expected.clone().collect::<Vec<_>>()) {
            true => Ok(()),
            false => Err(format!("besides the texts there came {:?}", told.collect::<Vec<_>>())),
        }
    }
}

async fn run(
    egress: Egress,
    server: SocketAddr,
    seed: u64,
    seems: Seems,
    met: Arc<Met>,
) -> (u64, u64, Result<(), String>) {
    let proxy = Proxy::start(server, seed, seems, met).await;
    let told = match follow(&client(&egress, proxy.address, seed)).await {
        Ok(told) => told,
        Err(problem) => return (0, 0, Err(problem)),
    };
    let judged = match seems {
        Seems::Numbered => told.is_all(),
        Seems::Plain | Seems::Mute => told.is_all_or_owned_up(proxy.has_rearranged()),
    };
    (told.lost, u64::from(!told.gaps.is_empty()), judged)
}

async fn all(seems: Seems, count: u64) -> Sum {
    let world = World::open().await;
    let (server, egress, room) = (world.address, egress().unwrap(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut sum = Sum { runs: count, ..Sum::default() };
    let mut runs = JoinSet::new();
    for seed in 0..count {
        let (egress, room, met) = (egress.clone(), room.clone(), sum.met.clone());
        runs.spawn(async move {
            let _permit = room.acquire().await.unwrap();
            (seed, run(egress, server, seed, seems, met).await)
        });
    }
    while let Some(ended) = runs.join_next().await {
        let (seed, (lost, gaps, judged)) = ended.unwrap();
        (sum.lost, sum.gaps) = (sum.lost + lost, sum.gaps + gaps);
        sum.failures.extend(judged.err().map(|problem| format!("seed {seed}: {problem}")));
    }
    sum
}

impl Sum {
    /// No run went wrong, though the network did in every way.
    fn judge(&self) {
        let (runs, failures) = (self.runs, &self.failures);
        assert!(failures.is_empty(), "{} of {runs}:\n{}", failures.len(), failures.join("\n"));
        for trouble in Trouble::ALL {
            let count = self.met.count(trouble);
            assert!(count >= runs / 10, "only {count} streams had the trouble {trouble:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_numbers_nothing_is_ever_missing() {
    let sum = all(Seems::Numbered, RUNS).await;
    sum.judge();
    assert!(sum.lost > sum.runs, "only {} connections were lost", sum.lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_numbers_what_is_missing_is_told() {
    let sum = all(Seems::Plain, RUNS / 2).await;
    sum.judge();
    assert!(sum.lost > sum.runs / 2, "only {} connections were lost", sum.lost);
    assert!((sum.runs / 20..sum.runs).contains(&sum.gaps), "{} runs with a gap", sum.gaps);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_the_task_at_the_beginning_of_a_subscription_what_is_missing_is_told() {
    let sum = all(Seems::Mute, RUNS / 2).await;
    sum.judge();
    assert!(sum.lost > sum.runs / 2, "only {} connections were lost", sum.lost);
    assert!(sum.met.stripped() > sum.runs / 4, "only {} subscriptions began without it", sum.met.stripped());
    assert!((sum.runs / 20..sum.runs).contains(&sum.gaps), "{} runs with a gap", sum.gaps);
}
