//! Clients of the hub: messages to the agents behind it, whatever is killed meanwhile. What the hub acknowledges is
//! written down; a connection that is lost is opened again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::calls::{self, Answer, Refusal, Send, TaskFacts};
use crate::http::Connection;
use crate::random::Random;

/// How many clients work at the same time.
const CLIENTS: u64 = 6;
/// What is said of a task that has ended, or is about to, when it is sent an answer: the code and a part of the words.
const ENDED: (i64, &str) = (-32004, "takes no more messages");
/// Between two attempts to reach a hub that is being started again.
const PAUSE: Duration = Duration::from_millis(5);

/// An agent behind the hub.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agent {
    /// Where it is at the hub.
    pub(super) path: &'static str,
    pub(super) words: Words,
}

/// What an agent is told, to do the same as others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// It answers.
    pub(super) hello: &'static str,
    /// It answers in pieces.
    pub(super) stream: &'static str,
    /// It answers later.
    pub(super) sleep: &'static str,
    /// It asks.
    pub(super) ask: &'static str,
    /// It works until it is canceled.
    pub(super) hold: &'static str,
}

/// The words of `probe`.
pub(super) const PROBE: Words =
    Words { hello: "hello", stream: "stream:20", sleep: "sleep:20", ask: "ask", hold: "hold" };

/// The words of the agents in the interop tests.
pub(super) const BEHAVIOURS: Words =
    Words { hello: "echo hello", stream: "stream 20", sleep: "stream 100", ask: "ask", hold: "wait" };

/// What the hub acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The last that was told of each task, by its id.
    pub(super) tasks: BTreeMap<String, Told>,
    /// The tasks that a client wanted to be canceled, whether it heard of that or not.
    pub(super) canceled: BTreeSet<String>,
    /// What must not happen and did.
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) path: &'static str,
    pub(super) facts: TaskFacts,
}

/// The clients.
pub(super) struct Load {
    journal: Arc<Mutex<Journal>>,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(hub: SocketAddr, agents: &[Agent], random: &Random) -> Self {
        let journal = Arc::<Mutex<Journal>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let clients = (0..CLIENTS)
            .map(|number| {
                let (journal, is_over) = (journal.clone(), is_over.clone());
                let (agents, random) = (agents.to_vec(), random.fork(number));
                let client = Client { number, hub, agents, random, journal, is_over, messages: 0, unanswered: None };
                std::thread::spawn(move || client.run())
            })
            .collect();
        Self { journal, is_over, clients }
    }

    /// Every client ends after what it is doing.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Waits for the clients, which were told to end.
    pub(super) fn join(self) -> Journal {
        for client in self.clients {
            if client.join().is_err() {
                lock(&self.journal).problems.push("a client panicked".to_owned());
            }
        }
        lock(&self.journal).clone()
    }
}

struct Client {
    number: u64,
    hub: SocketAddr,
    agents: Vec<Agent>,
    random: Random,
    journal: Arc<Mutex<Journal>>,
    is_over: Arc<AtomicBool>,
    messages: u64,
    /// What it has sent without an answer.
    unanswered: Option<Send>,
}

impl Client {
    fn run(mut self) {
        while !self.is_over.load(Ordering::SeqCst) {
            if let Err(error) = self.work() {
                // A silence is not an end: the hang guard of the connection is over.
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                    lock(&self.journal).problems.push(format!("client {} waited in vain: {error}", self.number));
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Works until the load is over, or the hub goes away.
    fn work(&mut self) -> io::Result<()> {
        let mut connection = Connection::open(self.hub)?;
        if let Some(send) = self.unanswered.clone() {
            self.task(&mut connection, &send)?;
        }
        while !self.is_over.load(Ordering::SeqCst) {
            let place = self.random.between(0, self.agents.len() as u64);
            let agent = self.agents[usize::try_from(place).unwrap_or_default()];
            let words = agent.words;
            match self.random.between(0, 10) {
                0..3 => self.send(&mut connection, agent, words.hello, false)?,
                3..5 => self.send(&mut connection, agent, words.stream, false)?,
                5..6 => self.send(&mut connection, agent, words.sleep, true)?,
                6..8 => self.ask(&mut connection, agent)?,
                _ => self.hold(&mut connection, agent)?,
            }
        }
        Ok(())
    }

    /// A message under a key, which is sent again when its connection is lost.
    fn message(&mut self, agent: Agent, text: &str) -> Send {
        self.messages += 1;
        let id = format!("{}-{}", self.number, self.messages);
        Send::text(agent.path, &id, text).keyed(&id)
    }

    fn send(&mut self, connection: &mut Connection, agent: Agent, text: &str, immediately: bool) -> io::Result<()> {
        let send = self.message(agent, text);
        let send = if immediately { send.immediately() } else { send };
        self.task(connection, &send).map(|_| ())
    }

    /// A question of the agent, mostly answered.
    fn ask(&mut self, connection: &mut Connection, agent: Agent) -> io::Result<()> {
        let send = self.message(agent, agent.words.ask);
        let Some(asked) = self.task(connection, &send)? else { return Ok(()) };
        if asked.state != "TASK_STATE_INPUT_REQUIRED" || self.random.between(0, 10) < 3 {
            return Ok(());
        }
        let answer = self.message(agent, "again").to_task(&asked.id);
        self.task(connection, &answer).map(|_| ())
    }

    /// Work without end, and mostly its cancellation.
    fn hold(&mut self, connection: &mut Connection, agent: Agent) -> io::Result<()> {
        let send = self.message(agent, agent.words.hold).immediately();
        let Some(task) = self.task(connection, &send)? else { return Ok(()) };
        if self.random.between(0, 10) < 3 {
            return Ok(());
        }
        lock(&self.journal).canceled.insert(task.id.clone());
        if let Ok(facts) = calls::cancel(connection, send.path, &task.id)? {
            self.saw(send.path, facts);
        }
        Ok(())
    }

    fn task(&mut self, connection: &mut Connection, send: &Send) -> io::Result<Option<TaskFacts>> {
        self.unanswered = Some(send.clone());
        let answer = send.call(connection)?;
        self.unanswered = None;
        match answer {
            Answer::Task(facts) => {
                self.saw(send.path, facts.clone());
                Ok(Some(facts))
            }
            // It is full, or the agent cannot be reached: nothing was acknowledged.
            answer if answer.is_retryable() => Ok(None),
            // The task that asked has ended meanwhile.
            Answer::Refused(refusal) if send.is_answer() && has_ended(&refusal) => Ok(None),
            answer => {
                lock(&self.journal).problems.push(format!("{} was answered {answer:?}", send.params));
                Ok(None)
            }
        }
    }

    fn saw(&self, path: &'static str, facts: TaskFacts) {
        lock(&self.journal).tasks.insert(facts.id.clone(), Told { path, facts });
    }
}

fn has_ended(refusal: &Refusal) -> bool {
    let (code, words) = ENDED;
    refusal.code == code && refusal.message.contains(words)
}

fn lock(journal: &Mutex<Journal>) -> std::sync::MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_be_refused_only_because_its_task_has_ended() {
        for (code, message, expected) in [
            (-32004, "task 7 is completed and takes no more messages", true),
            (-32004, "task 7 is being canceled and takes no more messages", true),
            (-32004, "agent left is no longer served here", false),
            (-32602, "task 7 takes no more messages", false),
        ] {
            let refusal = Refusal { code, message: message.to_owned(), retry_after_ms: None };
            assert_eq!(has_ended(&refusal), expected, "{refusal:?}");
        }
    }
}
