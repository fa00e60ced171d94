//! One client: random operations one after the other, each acknowledgement into the journal.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::calls::{self, Answer, ECHO, PROBE, Refusal, Send, TaskFacts};
use crate::http::Connection;
use crate::journal::{Journal, told};
use crate::load::Signal;
use crate::random::Random;

/// How many chunks a streaming task makes.
const CHUNKS: usize = 50;

pub(super) struct Client {
    name: String,
    address: SocketAddr,
    random: Random,
    journal: Arc<Journal>,
    signal: Arc<Signal>,
    messages: u64,
}

impl Client {
    pub(super) fn new(
        name: String,
        address: SocketAddr,
        random: Random,
        journal: Arc<Journal>,
        signal: Arc<Signal>,
    ) -> Self {
        Self { name, address, random, journal, signal, messages: 0 }
    }

    /// Works until the server goes away. That is only right once the end was announced, and never after a silence.
    pub(super) fn run(mut self) {
        let lost = match Connection::open(self.address) {
            Err(error) => error,
            Ok(mut connection) => loop {
                if self.signal.is_stop() {
                    return;
                }
                if let Err(error) = self.operation(&mut connection) {
                    break error;
                }
            },
        };
        let silent = matches!(lost.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        if silent || !self.signal.is_dying() {
            self.journal.problem(format!("client {} lost its connection: {lost}", self.name));
        }
    }

    fn operation(&mut self, connection: &mut Connection) -> io::Result<()> {
        match self.random.between(0, 100) {
            0..20 => self.echo(connection),
            20..30 => self.later(connection, "hello"),
            30..35 => self.later(connection, "sleep:30"),
            35..43 => self.stream(connection, "stream"),
            43..50 => self.stream(connection, "streamy"),
            50..67 => self.ask(connection),
            67..80 => self.hold(connection),
            80..93 => self.keyed(connection),
            _ => self.direct_message(connection),
        }
    }

    fn message_id(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.name, self.messages)
    }

    fn message(&mut self, path: &'static str, text: &str) -> Send {
        Send::text(path, &self.message_id(), text)
    }

    /// A blocking send, answered with the finished task.
    fn echo(&mut self, connection: &mut Connection) -> io::Result<()> {
        let text = format!("echo {}", self.message_id());
        let send = self.message(ECHO, &text);
        let answer = send.call(connection)?;
        if let Some(facts) = self.task(&send, &answer) {
            self.expect(facts.state == "TASK_STATE_COMPLETED" && facts.text == text, || format!("{text}: {facts:?}"));
        }
        Ok(())
    }

    /// A send that does not wait, and a look at the task.
    fn later(&mut self, connection: &mut Connection, text: &str) -> io::Result<()> {
        let send = self.message(PROBE, text).immediately();
        let answer = send.call(connection)?;
        let Some(facts) = self.task(&send, &answer) else { return Ok(()) };
        let seen = calls::get(connection, PROBE, &facts.id)?;
        self.saw(PROBE, "get", seen);
        Ok(())
    }

    fn stream(&mut self, connection: &mut Connection, kind: &str) -> io::Result<()> {
        let send = self.message(PROBE, &format!("{kind}:{CHUNKS}"));
        let mut frames = Vec::new();
        let journal = self.journal.clone();
        let refused = send.stream(connection, |frame| {
            journal.frame(PROBE, frame.clone());
            frames.push(frame);
        })?;
        if let Some(refusal) = refused {
            self.refused("stream", &refusal);
            return Ok(());
        }
        let (state, text) = told(&frames);
        let whole = state == "TASK_STATE_COMPLETED" && text.lines().count() == CHUNKS;
        self.expect(whole, || format!("a stream of {CHUNKS} ended with {state} after {:?}", text.lines().last()));
        Ok(())
    }

    /// A question, and mostly its answer, half of the answers under a key.
    fn ask(&mut self, connection: &mut Connection) -> io::Result<()> {
        let send = self.message(PROBE, "ask");
        let answer = send.call(connection)?;
        let Some(facts) = self.task(&send, &answer) else { return Ok(()) };
        self.expect(facts.state == "TASK_STATE_INPUT_REQUIRED", || format!("ask: {facts:?}"));
        if self.random.between(0, 10) < 3 {
            return Ok(());
        }
        let text = format!("answer {}", self.message_id());
        let mut reply = self.message(PROBE, &text).to_task(&facts.id);
        if self.random.between(0, 2) == 0 {
            reply = reply.keyed(&self.message_id());
            self.journal.tried(&reply);
        }
        self.journal.touched(&facts.id);
        let answer = reply.call(connection)?;
        if let Some(key) = &reply.key {
            self.journal.answered(key, &answer);
        }
        if let Some(facts) = self.task(&reply, &answer) {
            let right = facts.state == "TASK_STATE_COMPLETED" && facts.text.ends_with(&format!("you said: {text}"));
            self.expect(right, || format!("{text}: {facts:?}"));
        }
        Ok(())
    }

    /// Work without end, and mostly its cancel.
    fn hold(&mut self, connection: &mut Connection) -> io::Result<()> {
        let send = self.message(PROBE, "hold").immediately();
        let answer = send.call(connection)?;
        let Some(facts) = self.task(&send, &answer) else { return Ok(()) };
        // Many go on after the restart, more than are taken up at a time.
        if self.random.between(0, 10) < 5 {
            return Ok(());
        }
        self.journal.touched(&facts.id);
        let canceled = calls::cancel(connection, PROBE, &facts.id)?;
        if let Some(facts) = self.saw(PROBE, "cancel", canceled) {
            self.expect(facts.state == "TASK_STATE_CANCELED", || format!("cancel: {facts:?}"));
        }
        Ok(())
    }

    /// A send under a key in a conversation of its own, repeated at once half of the time.
    fn keyed(&mut self, connection: &mut Connection) -> io::Result<()> {
        let key = self.message_id();
        let mut send = self.message(ECHO, &key).keyed(&key).in_context(&format!("context {key}"));
        if self.random.between(0, 2) == 0 {
            send = send.immediately();
        }
        self.journal.tried(&send);
        let answer = send.call(connection)?;
        self.journal.answered(&key, &answer);
        let first = self.task(&send, &answer);
        if self.random.between(0, 2) == 0 {
            let answer = send.call(connection)?;
            self.journal.answered(&key, &answer);
            let again = self.task(&send, &answer);
            let same = first.as_ref().map(|facts| &facts.id) == again.as_ref().map(|facts| &facts.id);
            self.expect(same, || format!("one key, two tasks: {first:?} and {again:?}"));
        }
        Ok(())
    }

    fn direct_message(&mut self, connection: &mut Connection) -> io::Result<()> {
        let key = self.message_id();
        let send = self.message(PROBE, "message").keyed(&key);
        self.journal.tried(&send);
        let answer = send.call(connection)?;
        self.journal.answered(&key, &answer);
        self.expect(matches!(answer, Answer::Message(_)), || format!("message: {answer:?}"));
        Ok(())
    }

    /// Writes an answer down; its task, if it is one.
    fn task(&self, send: &Send, answer: &Answer) -> Option<TaskFacts> {
        match answer {
            Answer::Task(facts) => {
                self.journal.saw(send.path, facts);
                Some(facts.clone())
            }
            Answer::Message(id) => {
                self.journal.problem(format!("a message {id} instead of a task for {}", send.params));
                None
            }
            Answer::Refused(refusal) => {
                self.refused("send", refusal);
                None
            }
        }
    }

    fn saw(&self, path: &'static str, what: &str, seen: Result<TaskFacts, Refusal>) -> Option<TaskFacts> {
        match seen {
            Ok(facts) => {
                self.journal.saw(path, &facts);
                Some(facts)
            }
            Err(refusal) => {
                self.refused(what, &refusal);
                None
            }
        }
    }

    fn refused(&self, what: &str, refusal: &Refusal) {
        self.journal.problem(format!("client {}: {what} was refused: {refusal:?}", self.name));
    }

    fn expect(&self, right: bool, problem: impl FnOnce() -> String) {
        if !right {
            self.journal.problem(problem());
        }
    }
}
