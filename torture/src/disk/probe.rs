//! One client that writes until it is refused, looks at how, and comes back when there is room.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use anyhow::Context;

use crate::calls::{self, Answer, ECHO, PROBE, Refusal, Send, TaskFacts};
use crate::compare::Problems;
use crate::http::Connection;
use crate::journal::Journal;
use crate::server::Server;

/// Large enough to fill a small disk soon, and not to fit into what is left of a full one.
const TEXT_BYTES: usize = 64 << 10;
/// More than any of the disks holds.
const MOST_SENDS: usize = 1_000;

/// A task and what its cancel was answered.
type Canceled = (String, std::io::Result<Result<TaskFacts, Refusal>>);

pub(super) struct Probe {
    address: SocketAddr,
    pub(super) journal: Journal,
    problems: Problems,
    messages: u64,
    asked: Vec<String>,
    held: Vec<String>,
    stopping: Option<JoinHandle<Canceled>>,
}

impl Probe {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            journal: Journal::default(),
            problems: Problems::new(),
            messages: 0,
            asked: Vec::new(),
            held: Vec::new(),
            stopping: None,
        }
    }

    pub(super) fn expect(&mut self, right: bool, problem: &str) {
        if !right {
            self.problems.push(problem.to_owned());
        }
    }

    pub(super) fn found(&mut self, problems: impl IntoIterator<Item = String>) {
        self.problems.extend(problems);
    }

    pub(super) fn problems(self) -> Problems {
        self.problems
    }

    fn connection(&self) -> std::io::Result<Connection> {
        Connection::open(self.address)
    }

    fn message(&mut self, path: &'static str, text: &str) -> Send {
        self.messages += 1;
        Send::text(path, &format!("message {}", self.messages), text)
    }

    /// A send under a key, so that a refused one can be sent again.
    fn keyed(&mut self, text: &str) -> std::io::Result<Answer> {
        let send = self.message(ECHO, text);
        let key = send.message_id().replace(' ', "-");
        let send = send.keyed(&key).in_context(&format!("context {key}"));
        self.journal.tried(&send);
        let answer = send.call(&mut self.connection()?)?;
        self.journal.answered(&key, &answer);
        if let Answer::Task(facts) = &answer {
            self.journal.saw(ECHO, facts);
        }
        Ok(answer)
    }

    /// While all is well: tasks that wait, and tasks that work.
    pub(super) fn prepare(&mut self) -> anyhow::Result<()> {
        for (text, count) in [("ask", 4), ("hold", 4)] {
            for _ in 0..count {
                let send = self.message(PROBE, text);
                let send = if text == "hold" { send.immediately() } else { send };
                match send.call(&mut self.connection()?)? {
                    Answer::Task(facts) => {
                        self.journal.saw(PROBE, &facts);
                        let waiting = if text == "ask" { &mut self.asked } else { &mut self.held };
                        waiting.push(facts.id);
                    }
                    other => self.problems.push(format!("{text}: {other:?}")),
                }
            }
        }
        Ok(())
    }

    /// Sends until the disk is full.
    pub(super) fn fill(&mut self) -> anyhow::Result<()> {
        let text = "x".repeat(TEXT_BYTES);
        for _ in 0..MOST_SENDS {
            if let Answer::Refused(refusal) = self.keyed(&text)? {
                self.typed("the send that found the disk full", &refusal);
                return Ok(());
            }
        }
        anyhow::bail!("{MOST_SENDS} sends of {TEXT_BYTES} bytes and the disk is not full");
    }

    /// Nothing can be written: every operation that writes says so, in both bindings, and reads go on.
    pub(super) fn refuses(&mut self, server: &Server, reason: &str) -> anyhow::Result<()> {
        let text = "y".repeat(TEXT_BYTES);
        match self.keyed(&text)? {
            Answer::Refused(refusal) => self.typed("a send", &refusal),
            other => self.problems.push(format!("a send was accepted: {other:?}")),
        }
        let (status, said) = server.ready()?;
        let not_ready = status == 503 && said.contains("reason") && said.contains(reason);
        self.expect(not_ready, &format!("/readyz says {status} {said}"));
        self.rest(&text)?;
        // A short message may still fit on a full disk; the blanks do not.
        let long = format!("streamy:2000{}", " ".repeat(TEXT_BYTES));
        let refused = self.message(PROBE, &long).stream(&mut self.connection()?, |_| {});
        match refused.context("a stream when nothing can be written")? {
            Some(refusal) => self.typed("a stream", &refusal),
            None => self.problems.push("a stream of 2000 was accepted".to_owned()),
        }
        // A few bytes may still fit on a full disk, so these may succeed.
        if let Some(task) = self.asked.pop() {
            self.answer(&task, true)?;
        }
        if let Some(task) = self.held.pop() {
            self.stop_later(task);
        }
        if let Some(task) = self.held.first().cloned() {
            let read = calls::get(&mut self.connection()?, PROBE, &task)?;
            self.expect(read.is_ok(), &format!("a task cannot be read: {read:?}"));
        }
        Ok(())
    }

    fn rest(&mut self, text: &str) -> anyhow::Result<()> {
        let send = self.message(ECHO, text);
        let headers = [("a2a-version", "1.0")];
        let mut connection = self.connection()?;
        let response = connection.send("POST", "/a2a/echo/message:send", &headers, &send.params.to_string())?;
        let (status, wait) = (response.status, response.header("retry-after").is_some());
        let body = response.text()?;
        let typed = status == 503 && wait && body.contains("retryAfterMs");
        self.expect(typed, &format!("REST says {status}, Retry-After: {wait}, {body:.300}"));
        Ok(())
    }

    /// There is room: a send is accepted.
    pub(super) fn accepts(&mut self) -> anyhow::Result<()> {
        let answer = self.keyed("small again")?;
        let done = matches!(&answer, Answer::Task(facts) if facts.state == "TASK_STATE_COMPLETED");
        self.expect(done, &format!("a send when there is room: {answer:?}"));
        Ok(())
    }

    /// There is room: what waited is answered, what worked is canceled.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        for task in std::mem::take(&mut self.asked) {
            self.answer(&task, false)?;
        }
        self.stopped()?;
        for task in std::mem::take(&mut self.held) {
            self.stop(&task)?;
        }
        Ok(())
    }

    fn answer(&mut self, task: &str, may_fail: bool) -> anyhow::Result<()> {
        let send = self.message(PROBE, "an answer").to_task(task);
        self.journal.touched(task);
        match send.call(&mut self.connection()?).context("an answer to a question")? {
            Answer::Task(facts) => self.ended(&facts, "TASK_STATE_COMPLETED", may_fail),
            Answer::Refused(refusal) if may_fail => {
                self.typed("an answer", &refusal);
                self.asked.push(task.to_owned());
            }
            other => self.problems.push(format!("an answer: {other:?}")),
        }
        Ok(())
    }

    /// A cancel is answered when the task has ended, and the end may have to wait for room.
    fn stop_later(&mut self, task: String) {
        let address = self.address;
        self.journal.touched(&task);
        self.stopping = Some(std::thread::spawn(move || {
            let canceled =
                Connection::open(address).and_then(|mut connection| calls::cancel(&mut connection, PROBE, &task));
            (task, canceled)
        }));
    }

    /// What became of that cancel: done, or a typed error, after which it is worth another try.
    fn stopped(&mut self) -> anyhow::Result<()> {
        let Some(stopping) = self.stopping.take() else { return Ok(()) };
        let Ok((task, canceled)) = stopping.join() else { anyhow::bail!("the cancel panicked") };
        match canceled.context("a cancel that was asked for when nothing could be written")? {
            Ok(facts) => self.ended(&facts, "TASK_STATE_CANCELED", false),
            Err(refusal) => {
                self.typed("a cancel", &refusal);
                self.stop_again(&task)?;
            }
        }
        Ok(())
    }

    /// The first request to stop may have been stored, and the end too by now: then there is nothing left to cancel.
    fn stop_again(&mut self, task: &str) -> anyhow::Result<()> {
        const ENDED_ALREADY: i64 = -32002;
        match calls::cancel(&mut self.connection()?, PROBE, task).context("a second cancel")? {
            Ok(facts) => self.ended(&facts, "TASK_STATE_CANCELED", false),
            Err(refusal) if refusal.code == ENDED_ALREADY => match calls::get(&mut self.connection()?, PROBE, task)? {
                Ok(facts) => self.ended(&facts, "TASK_STATE_CANCELED", false),
                Err(refusal) => self.problems.push(format!("a task that was canceled: {refusal:?}")),
            },
            Err(refusal) => self.problems.push(format!("a second cancel: {refusal:?}")),
        }
        Ok(())
    }

    fn stop(&mut self, task: &str) -> anyhow::Result<()> {
        self.journal.touched(task);
        match calls::cancel(&mut self.connection()?, PROBE, task).context("a cancel")? {
            Ok(facts) => self.ended(&facts, "TASK_STATE_CANCELED", false),
            Err(refusal) => self.problems.push(format!("a cancel: {refusal:?}")),
        }
        Ok(())
    }

    /// While nothing can be written the task may also be told as it was.
    fn ended(&mut self, facts: &TaskFacts, state: &str, may_fail: bool) {
        self.journal.saw(PROBE, facts);
        if may_fail && !facts.is_terminal() {
            self.journal.touched(&facts.id);
        } else if facts.state != state {
            self.problems.push(format!("{state} was expected of {facts:?}"));
        }
    }

    fn typed(&mut self, what: &str, refusal: &Refusal) {
        self.expect(refusal.is_retryable(), &format!("{what} was refused with {refusal:?}"));
    }
}
