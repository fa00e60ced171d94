//! One client: tasks with webhooks one after the other, more webhooks on some of them, answers and cancels, until the
//! server goes away.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::calls::{self, PROBE, Refusal};
use crate::http::Connection;
use crate::random::Random;
use crate::webhooks::expected::Expected;
use crate::webhooks::judge::Version;

/// What all clients of a round share.
pub(super) struct Round {
    pub(super) address: SocketAddr,
    /// Where webhooks go.
    pub(super) receivers: Vec<SocketAddr>,
    /// The epoch of the server.
    pub(super) epoch: String,
    pub(super) expected: Arc<Expected>,
    /// A lost connection is no surprise any more.
    pub(super) dying: AtomicBool,
}

pub(super) struct Client {
    name: String,
    round: Arc<Round>,
    random: Random,
    messages: u64,
}

/// A task as its client knows it.
struct Known {
    message: String,
    id: String,
    state: String,
    stamp: String,
}

impl Client {
    pub(super) fn new(name: String, round: Arc<Round>, random: Random) -> Self {
        Self { name, round, random, messages: 0 }
    }

    /// Works until the server goes away. That is only right once the end was announced, and never after a silence.
    pub(super) fn run(mut self) {
        let lost = match Connection::open(self.round.address) {
            Err(error) => error,
            Ok(mut connection) => loop {
                if let Err(error) = self.operation(&mut connection) {
                    break error;
                }
            },
        };
        let silent = matches!(lost.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        if silent || !self.round.dying.load(Ordering::SeqCst) {
            self.round.expected.problem(format!("client {} lost its connection: {lost}", self.name));
        }
    }

    fn operation(&mut self, connection: &mut Connection) -> io::Result<()> {
        if !self.round.expected.is_full() && self.one_in(2) {
            return self.task(connection);
        }
        if self.one_in(4)
            && let Some((message, id)) = self.round.expected.take_ended(self.random.number())
        {
            let known = Known { message, id, state: String::new(), stamp: String::new() };
            let version = self.version();
            return self.set(connection, &known, version);
        }
        // A task of another caller: reading is what most clients do.
        calls::get(connection, PROBE, "no such task").map(drop)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.between(0, count) == 0
    }

    fn version(&mut self) -> Version {
        if self.one_in(2) { Version::V1 } else { Version::V03 }
    }

    fn message_id(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.name, self.messages)
    }

    /// A path of its own for each webhook, and one of the receivers for each path.
    fn hook(&mut self, message: &str, number: u32, version: Version) -> (String, Value) {
        let ending = if version == Version::V1 { "1.0" } else { "0.3" };
        let path = format!("/{message}/{number}/{ending}");
        let count = u64::try_from(self.round.receivers.len()).unwrap_or(1);
        let place = usize::try_from(self.random.between(0, count)).unwrap_or_default();
        let mut config = json!({ "url": format!("http://{}{path}", self.round.receivers[place]), "token": path });
        // The first one often has no name, the others always: version 0.3 would take them for the first.
        if number > 0 || self.one_in(2) {
            config["id"] = format!("{message}-{number}").into();
        }
        (path, config)
    }

    /// A task with a webhook from the start, and perhaps more of them.
    fn task(&mut self, connection: &mut Connection) -> io::Result<()> {
        let text = match self.random.between(0, 100) {
            0..25 => format!("progress:{}", self.random.between(2, 9)),
            25..50 => format!("streamy:{}", self.random.between(5, 60)),
            50..65 => format!("stream:{}", self.random.between(5, 120)),
            65..75 => format!("sleep:{}", self.random.between(20, 400)),
            75..88 => "hold".to_owned(),
            88..97 => "ask".to_owned(),
            _ => "hello".to_owned(),
        };
        let (message, version) = (self.message_id(), self.version());
        let (path, config) = self.hook(&message, 0, version);
        self.round.expected.ask(&message, &self.round.epoch, &path, version);
        let made = match self.random.between(0, 10) {
            0..3 if text != "hold" => self.stream(connection, &message, &text, version, &config)?,
            3..5 if text != "hold" => self.send(connection, &message, &text, version, &config, true)?,
            _ => self.send(connection, &message, &text, version, &config, false)?,
        };
        let Some(known) = made else { return Ok(()) };
        self.round.expected.made(&message, &known.id);
        self.round.expected.set(&path);
        if self.one_in(4) {
            let version = self.version();
            self.set(connection, &known, version)?;
        }
        match text.as_str() {
            "hold" if !self.one_in(4) => self.cancel(connection, &known),
            "ask" if known.state == "TASK_STATE_INPUT_REQUIRED" => self.answer(connection, &known),
            _ if calls::is_terminal(&known.state) => {
                self.round.expected.end(&message, &known.id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn send(
        &self,
        connection: &mut Connection,
        message: &str,
        text: &str,
        version: Version,
        config: &Value,
        blocking: bool,
    ) -> io::Result<Option<Known>> {
        let mut params = params(message, text, version, config);
        let method = match version {
            Version::V1 => {
                params["configuration"]["returnImmediately"] = (!blocking).into();
                "SendMessage"
            }
            Version::V03 => {
                params["configuration"]["blocking"] = blocking.into();
                "message/send"
            }
        };
        match calls::rpc(connection, PROBE, number(version), method, &params)? {
            Ok(answer) => Ok(Some(known(message, if version == Version::V1 { &answer["task"] } else { &answer }))),
            Err(refusal) => Ok(self.refused(method, &refusal)),
        }
    }

    fn stream(
        &self,
        connection: &mut Connection,
        message: &str,
        text: &str,
        version: Version,
        config: &Value,
    ) -> io::Result<Option<Known>> {
        let params = params(message, text, version, config);
        let method = if version == Version::V1 { "SendStreamingMessage" } else { "message/stream" };
        let mut seen: Option<Known> = None;
        let headers = [("a2a-version", number(version))];
        let refused = calls::stream(connection, PROBE, method, &params, &headers, |frame| {
            let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
            let result = &data["result"];
            match &mut seen {
                None => {
                    let first = known(message, if version == Version::V1 { &result["task"] } else { result });
                    // The server has said so, whatever comes of the stream.
                    self.round.expected.made(message, &first.id);
                    seen = Some(first);
                }
                Some(seen) => {
                    let status =
                        if version == Version::V1 { &result["statusUpdate"]["status"] } else { &result["status"] };
                    if status.is_object() {
                        (seen.state, seen.stamp) = state(status);
                    }
                }
            }
            true
        })?;
        Ok(match refused {
            Some(refusal) => self.refused(method, &refusal),
            None => seen,
        })
    }

    /// One more webhook for a task, and the youngest status there is after it.
    fn set(&mut self, connection: &mut Connection, task: &Known, version: Version) -> io::Result<()> {
        // Numbered by this client's messages, so that no two have the same path.
        self.messages += 1;
        let place = u32::try_from(self.messages).unwrap_or_default();
        let (path, mut config) = self.hook(&format!("{}-{}", task.message, self.name), place, version);
        let (method, params) = match version {
            Version::V1 => {
                config["taskId"] = task.id.as_str().into();
                ("CreateTaskPushNotificationConfig", config)
            }
            Version::V03 => {
                let params = json!({ "taskId": task.id, "pushNotificationConfig": config });
                ("tasks/pushNotificationConfig/set", params)
            }
        };
        self.round.expected.ask_later(&task.message, &path, version);
        if let Err(refusal) = calls::rpc(connection, PROBE, number(version), method, &params)? {
            self.refused(method, &refusal);
            return Ok(());
        }
        self.round.expected.set(&path);
        match calls::rpc(connection, PROBE, "1.0", "GetTask", &json!({ "id": task.id }))? {
            Ok(now) => self.round.expected.floor(&path, &state(&now["status"]).1),
            Err(refusal) => drop(self.refused("GetTask", &refusal)),
        }
        Ok(())
    }

    fn cancel(&self, connection: &mut Connection, task: &Known) -> io::Result<()> {
        match calls::cancel(connection, PROBE, &task.id)? {
            Ok(_) => self.round.expected.end(&task.message, &task.id),
            Err(refusal) => drop(self.refused("CancelTask", &refusal)),
        }
        Ok(())
    }

    /// Answers a question, perhaps with one more webhook in the same message.
    fn answer(&mut self, connection: &mut Connection, task: &Known) -> io::Result<()> {
        let mut params = json!({ "message": {
            "messageId": self.message_id(), "taskId": task.id, "role": "ROLE_USER", "parts": [{ "text": "so be it" }],
        } });
        let more = self.one_in(2).then(|| self.hook(&format!("{}-{}", task.message, self.name), 1, Version::V1));
        if let Some((path, config)) = &more {
            params["configuration"]["taskPushNotificationConfig"] = config.clone();
            self.round.expected.ask_later(&task.message, path, Version::V1);
            // Nothing happens to a task that waits, until this message.
            self.round.expected.floor(path, &task.stamp);
        }
        match calls::rpc(connection, PROBE, "1.0", "SendMessage", &params)? {
            Ok(_) => {
                self.round.expected.end(&task.message, &task.id);
                if let Some((path, _)) = &more {
                    self.round.expected.set(path);
                }
            }
            Err(refusal) => drop(self.refused("SendMessage", &refusal)),
        }
        Ok(())
    }

    /// Nothing here may be refused.
    fn refused(&self, what: &str, refusal: &Refusal) -> Option<Known> {
        self.round.expected.problem(format!("client {}: {what} was refused: {refusal:?}", self.name));
        None
    }
}

fn number(version: Version) -> &'static str {
    if version == Version::V1 { "1.0" } else { "0.3" }
}

fn params(message: &str, text: &str, version: Version, config: &Value) -> Value {
    match version {
        Version::V1 => json!({
            "message": { "messageId": message, "role": "ROLE_USER", "parts": [{ "text": text }] },
            "configuration": { "taskPushNotificationConfig": config },
        }),
        Version::V03 => json!({
            "message": {
                "kind": "message", "messageId": message, "role": "user", "parts": [{ "kind": "text", "text": text }],
            },
            "configuration": { "pushNotificationConfig": config },
        }),
    }
}

fn known(message: &str, task: &Value) -> Known {
    let (state, stamp) = state(&task["status"]);
    Known { message: message.to_owned(), id: task["id"].as_str().unwrap_or_default().to_owned(), state, stamp }
}

/// A status's state by its v1.0 name, and its stamp.
fn state(status: &Value) -> (String, String) {
    let name = status["state"].as_str().unwrap_or_default();
    let name = match name.starts_with("TASK_STATE_") {
        true => name.to_owned(),
        false => format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_")),
    };
    (name, status["timestamp"].as_str().unwrap_or_default().to_owned())
}
