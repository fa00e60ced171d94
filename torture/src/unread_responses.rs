//! The attack of unread responses: one key asks for many large pages and reads none of them, while another key works.
//!
//! What the server keeps for such slow clients stays within the response budget of one caller, as its own metric tells, its
//! memory within two whole budgets, and the requests of the other key all succeed, about as fast as before. Latency is judged
//! against the idle server of the same run: absolute times depend on the machine, and are only printed.

mod measured;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::calls::{self, Answer, ECHO, Send};
use crate::compare::Problems;
use crate::delays::Delays;
use crate::http::Connection;
use crate::programs::census;
use crate::server::{ANY_PORT, Server, ServerSetup, folder, tail};
use crate::unread_responses::measured::{Measured, Peak, Phase};

/// The budget that the server is told.
const BUDGET_MIB: u64 = 128;
const PER_CALLER_MIB: u64 = 32;
/// Texts of the attacker, each of which is in its task twice: as the message and as the answer of `echo`.
const TEXTS: usize = 2;
const TEXT_BYTES: usize = 7 << 20;
/// Requests of the attacker whose responses are not read.
const UNREAD: usize = 150;
const PAGE: &str = "/a2a/echo/tasks?pageSize=100";

/// How often the other key calls each operation in a measurement.
const CALLS: usize = 400;
/// Other things run on this machine. A delay that is in the code is there at every try; bytes are not a matter of luck.
const TRIES: usize = 3;
/// Between two looks at the server's metrics and memory.
const PAUSE: Duration = Duration::from_millis(20);

/// What was measured.
#[derive(Default)]
pub struct Outcome {
    /// One for each try.
    pub measured: Vec<Measured>,
    /// What did not hold.
    pub problems: Problems,
}

/// The keys, and a task of the other one.
struct Callers {
    address: SocketAddr,
    attacker: String,
    other: String,
    admin: String,
    task: String,
}

/// Attacks a server and measures.
pub fn run(binary: &Path) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let workspace = folder(scratch.path(), "workspace")?;
    let limits = format!("{{ responseBytes: {BUDGET_MIB}MiB, responseBytesPerCaller: {PER_CALLER_MIB}MiB }}");
    std::fs::write(workspace.join("switchboard.yaml"), format!("limits: {limits}\n"))?;
    let log = scratch.path().join("server.log");
    let setup = ServerSetup { binary: binary.to_owned(), workspace, durability: "process", log, bind: ANY_PORT };
    measure(&setup).with_context(|| format!("the server's log ends with:\n{}\n", tail(&setup.log)))
}

fn measure(setup: &ServerSetup) -> anyhow::Result<Outcome> {
    let attacker = setup.create_key("attacker", &[])?;
    let (other, admin) = (setup.create_key("other", &[])?, setup.create_key("admin", &["--admin"])?);
    let server = setup.start()?;
    let address = server.address;
    let task = sent(&mut Connection::open_with_key(address, &other)?, "task", "hello")?;
    let callers = Callers { address, attacker, other, admin, task };
    let fresh_kib = census::memory(server.pid());
    let mut connection = Connection::open_with_key(address, &callers.attacker)?;
    for number in 0..TEXTS {
        sent(&mut connection, &format!("large-{number}"), &"x".repeat(TEXT_BYTES))?;
    }
    let mut outcome = Outcome::default();
    for number in 0..TRIES {
        let page_us = page(&mut connection)?;
        let idle = callers.phase(&server, &format!("idle-{number}"), 0)?;
        let attacked = callers.phase(&server, &format!("attacked-{number}"), UNREAD)?;
        let measured = Measured { idle, attacked, page_us, fresh_kib };
        let (kept, delayed) = (measured.kept_too_much(), measured.delayed());
        outcome.measured.push(measured);
        let is_last = !kept.is_empty() || delayed.is_empty();
        outcome.problems = kept.into_iter().chain(delayed).collect();
        if is_last {
            break;
        }
    }
    Ok(outcome)
}

/// Sends a text to the echo and waits for its end; the id of its task.
fn sent(connection: &mut Connection, message: &str, text: &str) -> anyhow::Result<String> {
    match Send::text(ECHO, message, text).call(connection)? {
        Answer::Task(task) if task.state == "TASK_STATE_COMPLETED" => Ok(task.id),
        answer => anyhow::bail!("{message} was answered with {:.200}", format!("{answer:?}")),
    }
}

/// How long a page takes that is read.
fn page(connection: &mut Connection) -> anyhow::Result<u64> {
    let begun = Instant::now();
    let response = connection.send("GET", PAGE, &[("a2a-version", "1.0")], "")?;
    let (status, text) = (response.status, response.text()?);
    let is_large = text.len() > TEXT_BYTES;
    anyhow::ensure!(status == 200 && is_large, "status {status}, {} bytes: {text:.200}", text.len());
    Ok(micros(begun))
}

fn micros(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Callers {
    /// Measures the other key's requests while so many responses are not read.
    fn phase(&self, server: &Server, name: &str, unread: usize) -> anyhow::Result<Phase> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| self.watch(server, &is_over));
            let called = self.attack(unread).and_then(|unread| {
                let called = self.call(name);
                drop(unread);
                called
            });
            is_over.store(true, Ordering::SeqCst);
            let peak = watching.join().map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
            let (get_task, send_message) = called?;
            Ok(Phase { get_task, send_message, peak })
        })
    }

    /// Asks for so many large pages; to be kept, and not read.
    fn attack(&self, unread: usize) -> anyhow::Result<Vec<Connection>> {
        let ask = |_| {
            let mut connection = Connection::open_with_key(self.address, &self.attacker)?;
            connection.send_only("GET", PAGE, &[("a2a-version", "1.0")], "")?;
            Ok(connection)
        };
        (0..unread).map(ask).collect()
    }

    /// The delays of the other key's `GetTask` and `SendMessage`, all of which must succeed.
    fn call(&self, name: &str) -> anyhow::Result<(Delays, Delays)> {
        let mut connection = Connection::open_with_key(self.address, &self.other)?;
        let (mut gets, mut sends) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
        for number in 0..CALLS {
            let begun = Instant::now();
            let read = calls::get(&mut connection, ECHO, &self.task)?;
            gets.push(micros(begun));
            read.map_err(|refusal| anyhow::anyhow!("{name}: GetTask was refused: {refusal:?}"))?;
            let begun = Instant::now();
            sent(&mut connection, &format!("{name}-{number}"), "hello")?;
            sends.push(micros(begun));
        }
        Ok((Delays::new(gets), Delays::new(sends)))
    }

    /// Looks at the server's metrics and memory until it is over.
    fn watch(&self, server: &Server, is_over: &AtomicBool) -> anyhow::Result<Peak> {
        let mut connection = Connection::open_with_key(self.address, &self.admin)?;
        let mut peak = Peak::default();
        while !is_over.load(Ordering::SeqCst) {
            let shown = connection.send("GET", "/metrics", &[], "")?.text()?;
            let now = Peak {
                response_bytes: gauge(&shown, "a2a_response_bytes")?,
                waiting_responses: gauge(&shown, "a2a_waiting_responses")?,
                memory_kib: census::memory(server.pid()),
            };
            peak = peak.or_more(now);
            std::thread::sleep(PAUSE);
        }
        Ok(peak)
    }
}

/// The value of a gauge without labels.
fn gauge(shown: &str, name: &str) -> anyhow::Result<u64> {
    let value = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = value.with_context(|| format!("no {name} in {shown:.500}"))?;
    let value: f64 = value.trim().parse().with_context(|| format!("{name} is {value:?}"))?;
    Ok(value as u64)
}
