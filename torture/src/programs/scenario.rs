//! The scenario of one task: what its program is told to do, and what its caller does to it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::HANG_GUARD;
use crate::calls::{self, Answer, Send, TaskFacts};
use crate::http::Connection;
use crate::programs::census;
use crate::programs::workspace::{PATHS, Workspace};
use crate::random::Random;

/// How often a task is looked at, and a server that is away is called.
const PAUSE: Duration = Duration::from_millis(30);

/// Where the server is now: it is killed and started again elsewhere.
pub struct Reach(Mutex<SocketAddr>);

impl Reach {
    /// It is there.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self(Mutex::new(address))
    }

    /// It is elsewhere.
    pub fn moved(&self, address: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }

    /// Calls it, again and again if it is away.
    pub fn call<T>(&self, mut call: impl FnMut(&mut Connection) -> io::Result<T>) -> anyhow::Result<T> {
        let begun = Instant::now();
        loop {
            let address = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match Connection::open(address).and_then(|mut connection| call(&mut connection)) {
                Ok(answer) => return Ok(answer),
                Err(error) if begun.elapsed() > HANG_GUARD => return Err(error.into()),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// What a caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// Waits for the end.
    Wait,
    /// Cancels after a while.
    Cancel,
    /// Answers the question.
    Answer(&'static str),
    /// Does not answer the question, and cancels.
    Ignore,
    /// Kills the program.
    KillProgram,
    /// Kills what the program has started.
    KillTool,
}

/// The scenario of one task.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its number.
    pub number: u64,
    path: &'static str,
    text: String,
    conduct: Conduct,
    /// When its caller does something, after it has begun.
    moment: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The task.
    pub id: String,
    /// `TASK_STATE_…`
    pub state: String,
    /// Its whole status.
    pub said: String,
}

impl Scenario {
    /// One that is the same for the same seed.
    #[must_use]
    pub fn random(number: u64, random: &mut Random) -> Self {
        let conduct = match random.between(0, 100) {
            0..40 => Conduct::Wait,
            40..65 => Conduct::Cancel,
            65..72 => Conduct::Answer("y"),
            72..76 => Conduct::Answer("no, not now"),
            76..84 => Conduct::Ignore,
            84..93 => Conduct::KillProgram,
            _ => Conduct::KillTool,
        };
        let mut words = Vec::new();
        match conduct {
            Conduct::Answer(_) | Conduct::Ignore => words.push("asks"),
            Conduct::KillTool => words.push("tool"),
            _ => {}
        }
        let mut sometimes = |word: &'static str, percent: u64| {
            if random.between(0, 100) < percent {
                words.push(word);
            }
        };
        sometimes("changes", 50);
        for (word, percent) in [("tool", 40), ("holds", 15), ("wiped", 15), ("lingers", 8), ("deaf", 5)] {
            sometimes(word, percent);
        }
        for (word, percent) in [("longline", 6), ("garbage", 6), ("flood", 6), ("breaks", 6)] {
            sometimes(word, percent);
        }
        if let Some(word) = ["mute", "quits", "fails"].get(random.between(0, 20) as usize) {
            words.push(word);
        }
        let path = PATHS[(number % PATHS.len() as u64) as usize];
        let time = random.between(50, 800);
        let text = format!("for=0.{time:03}; {}", words.join(" "));
        Self { number, path, text, conduct, moment: Duration::from_millis(random.between(0, 900)) }
    }

    /// Whether what it did need not have ended otherwise.
    #[must_use]
    pub fn is_proper(&self, state: &str, was_server_killed: bool) -> bool {
        let told = |word: &str| self.text.contains(word);
        let fails = ["mute", "quits", "fails"].iter().any(|word| told(word));
        let usual = if fails { "TASK_STATE_FAILED" } else { "TASK_STATE_COMPLETED" };
        state == usual
            || match self.conduct {
                Conduct::Wait | Conduct::Answer(_) | Conduct::KillTool => false,
                Conduct::Cancel | Conduct::Ignore => state == "TASK_STATE_CANCELED",
                Conduct::KillProgram => state == "TASK_STATE_FAILED",
            }
            || (was_server_killed && state == "TASK_STATE_FAILED")
    }

    /// Sends it and does to it what is to be done, until it has ended.
    pub fn run(&self, workspace: &Workspace, reach: &Reach) -> anyhow::Result<Ended> {
        let name = format!("scenario-{}", self.number);
        let send = Send::text(self.path, &name, &self.text).keyed(&name).immediately();
        let answer = reach.call(|connection| send.call(connection))?;
        let Answer::Task(task) = answer else { anyhow::bail!("{name} was answered with {answer:?}") };
        let begun = Instant::now();
        let mut asked_at = None;
        let mut is_done = false;
        loop {
            let question = json!({ "id": task.id });
            let read = reach.call(|connection| calls::rpc(connection, self.path, "1.0", "GetTask", &question))?;
            let read = read.map_err(|refusal| anyhow::anyhow!("{name} cannot be read: {refusal:?}"))?;
            let task = TaskFacts::read(&read);
            if task.is_terminal() {
                return Ok(Ended { id: task.id, state: task.state, said: read["status"].to_string() });
            }
            anyhow::ensure!(begun.elapsed() < HANG_GUARD, "{self:?} does not end: {task:?}");
            if task.state == "TASK_STATE_INPUT_REQUIRED" {
                asked_at.get_or_insert_with(Instant::now);
            }
            let since = if self.conduct == Conduct::Ignore { asked_at } else { Some(begun) };
            if !is_done && since.is_some_and(|since| since.elapsed() >= self.moment) {
                is_done = self.act(&task.id, asked_at.is_some(), workspace, reach)?;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Does it; says whether that could be done.
    fn act(&self, id: &str, is_asked: bool, workspace: &Workspace, reach: &Reach) -> anyhow::Result<bool> {
        match self.conduct {
            Conduct::Wait => {}
            Conduct::Cancel | Conduct::Ignore => {
                // It may have ended meanwhile, which is an error with a name; what comes of it is seen later.
                let _ = reach.call(|connection| calls::cancel(connection, self.path, id))?;
            }
            Conduct::Answer(_) if !is_asked => return Ok(false),
            Conduct::Answer(word) => {
                let name = format!("answer-{}", self.number);
                let answer = Send::text(self.path, &name, word).to_task(id).keyed(&name).immediately();
                reach.call(|connection| answer.call(connection))?;
            }
            Conduct::KillProgram | Conduct::KillTool => {
                let Some(program) = workspace.program_of(id) else { return Ok(false) };
                let own = census::all().into_iter().filter(|process| process.marker.as_ref() == Some(&program.marker));
                let wants_root = self.conduct == Conduct::KillProgram;
                // Before it has become the program it is none yet.
                let mut own = own.filter(|process| !process.command.contains("exec-child"));
                let Some(target) = own.find(|process| match wants_root {
                    true => process.pid == program.pid,
                    false => process.command.starts_with("sleep 3600"),
                }) else {
                    return Ok(false);
                };
                census::kill(target.pid);
            }
        }
        Ok(true)
    }
}
