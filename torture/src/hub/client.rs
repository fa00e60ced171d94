//! Clients of the hub: messages to the agents behind it, whatever is killed meanwhile. What the hub acknowledges is
//! written down; a connection that is lost is opened again.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::calls::{self, Answer, Send, TaskFacts};
use crate::http::Connection;
use crate::random::Random;

/// How many clients work at the same time.
const CLIENTS: u64 = 6;
/// Between two attempts to reach a hub that is being started again.
const PAUSE: Duration = Duration::from_millis(5);
/// Where the agents are.
const PATHS: [&str; 2] = ["/a2a/left", "/a2a/right"];

/// What the hub acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The last that was told of each task, by its id.
    pub(super) tasks: BTreeMap<String, Told>,
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
    pub(super) fn start(hub: SocketAddr, random: &Random) -> Self {
        let journal = Arc::<Mutex<Journal>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let clients = (0..CLIENTS)
            .map(|number| {
                let (journal, is_over) = (journal.clone(), is_over.clone());
                let client = Client { number, hub, random: random.fork(number), journal, is_over, messages: 0 };
                std::thread::spawn(move || client.run())
            })
            .collect();
        Self { journal, is_over, clients }
    }

    /// Every client ends after what it is doing.
    pub(super) fn stop(self) -> Journal {
        self.is_over.store(true, Ordering::SeqCst);
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
    random: Random,
    journal: Arc<Mutex<Journal>>,
    is_over: Arc<AtomicBool>,
    messages: u64,
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
        while !self.is_over.load(Ordering::SeqCst) {
            match self.random.between(0, 10) {
                0..3 => self.send(&mut connection, "hello", false)?,
                3..5 => self.send(&mut connection, "stream:20", false)?,
                5..6 => self.send(&mut connection, "sleep:20", true)?,
                6..8 => self.ask(&mut connection)?,
                _ => self.hold(&mut connection)?,
            }
        }
        Ok(())
    }

    /// A message under a key, which a client whose connection is lost sends again.
    fn message(&mut self, text: &str) -> Send {
        self.messages += 1;
        let id = format!("{}-{}", self.number, self.messages);
        let place = usize::try_from(self.random.between(0, 2)).unwrap_or_default();
        Send::text(PATHS[place], &id, text).keyed(&id)
    }

    fn send(&mut self, connection: &mut Connection, text: &str, immediately: bool) -> io::Result<()> {
        let send = self.message(text);
        let send = if immediately { send.immediately() } else { send };
        self.task(connection, &send).map(|_| ())
    }

    /// A question of the agent, mostly answered.
    fn ask(&mut self, connection: &mut Connection) -> io::Result<()> {
        let send = self.message("ask");
        let Some(asked) = self.task(connection, &send)? else { return Ok(()) };
        if asked.state != "TASK_STATE_INPUT_REQUIRED" || self.random.between(0, 10) < 3 {
            return Ok(());
        }
        let answer = Send { path: send.path, ..self.message("again").to_task(&asked.id) };
        if let Answer::Task(facts) = answer.call(connection)? {
            self.saw(send.path, facts);
        }
        Ok(())
    }

    /// Work without end, and mostly its cancellation.
    fn hold(&mut self, connection: &mut Connection) -> io::Result<()> {
        let send = self.message("hold").immediately();
        let Some(task) = self.task(connection, &send)? else { return Ok(()) };
        if self.random.between(0, 10) < 3 {
            return Ok(());
        }
        if let Ok(facts) = calls::cancel(connection, send.path, &task.id)? {
            self.saw(send.path, facts);
        }
        Ok(())
    }

    fn task(&self, connection: &mut Connection, send: &Send) -> io::Result<Option<TaskFacts>> {
        match send.call(connection)? {
            Answer::Task(facts) => {
                self.saw(send.path, facts.clone());
                Ok(Some(facts))
            }
            // It is full, or the agent cannot be reached: nothing was acknowledged.
            answer if answer.is_retryable() => Ok(None),
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

fn lock(journal: &Mutex<Journal>) -> std::sync::MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}
