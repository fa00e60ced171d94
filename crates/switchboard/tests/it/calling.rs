//! The commands that call agents, against a running server and against things that are none.

mod answers;
mod api_keys;
mod auth;
mod chat;
mod conformance;
mod credential_guard;
mod errors;
mod files;
mod golden;
mod help;
mod interrupt;
mod lost_output;
mod names;
mod polling;
mod send;
mod settings;
mod tasks;
mod terminal;
mod webhooks;
mod wire;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::program::{Run, Workspace};
use crate::server::Server;

/// A server and what calls it.
struct Fleet {
    workspace: Workspace,
    server: Server,
}

impl Fleet {
    fn new() -> Self {
        Self::of(Workspace::new())
    }

    fn of(workspace: Workspace) -> Self {
        let server = Server::start(&workspace);
        Self { workspace, server }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.workspace.run(arguments)
    }

    /// The id of a task that was just begun.
    fn begin(&self, agent: &str, text: &str) -> String {
        let begun = self.run(&["send", agent, text, "--async", "-o", "json"]);
        assert_eq!(begun.code, Some(0), "{}{}", begun.stdout, begun.stderr);
        begun.json()["task"]["id"].as_str().unwrap().to_owned()
    }

    /// What was printed, with everything that is different each time replaced: ids by a letter, times, the address.
    fn stable(&self, text: &str) -> String {
        let text = text.replace(&self.server.address, "ADDRESS");
        let mut names: HashMap<String, String> = HashMap::new();
        let mut stable = String::new();
        let mut word = String::new();
        for character in text.chars().chain(['\0']) {
            if character.is_ascii_alphanumeric() || "-.:".contains(character) {
                word.push(character);
                continue;
            }
            let kept = word.trim_end_matches([':', '.']);
            if is_uuid(kept) {
                let next = format!("ID{}", names.len() + 1);
                stable.push_str(names.entry(kept.to_owned()).or_insert(next));
                stable.push_str(&word[kept.len()..]);
            } else if is_time(kept) {
                stable.push_str("TIME");
            } else {
                stable.push_str(&word);
            }
            word.clear();
            stable.push(character);
        }
        stable.pop();
        stable
    }
}

fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.chars().all(|character| character == '-' || character.is_ascii_hexdigit())
}

fn is_time(word: &str) -> bool {
    word.len() >= 20 && word.starts_with("20") && word.ends_with('Z') && word.contains('T')
}

/// A request as a server sees it.
struct Heard {
    path: String,
    body: String,
    head: String,
}

impl Heard {
    fn read(mut stream: &TcpStream) -> Self {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            head.push(byte[0]);
        }
        let mut heard = Self { path: String::new(), body: String::new(), head: String::from_utf8(head).unwrap() };
        heard.path = heard.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut body = vec![0; heard.header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut body).unwrap();
        heard.body = String::from_utf8(body).unwrap();
        heard
    }

    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next().unwrap_or("")
    }
}

/// A server that answers with a status and JSON; its address.
fn answering(mut answer: impl FnMut(&str, &Heard) -> (u16, Value) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let here = address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (status, body) = answer(&here, &Heard::read(&stream));
            let body = body.to_string();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
            // A closed connection needs no reply.
            let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    address
}

/// A card for an agent at `/rpc`, with whatever else it says.
fn card(here: &str, more: Value) -> Value {
    let mut card = json!({
        "name": "Scripted", "description": "d", "version": "1", "capabilities": {}, "skills": [],
        "defaultInputModes": [], "defaultOutputModes": [],
        "supportedInterfaces": [
            { "url": format!("http://{here}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
        ],
    });
    card.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    card
}

/// An address of this machine where nothing listens: a port that was free a moment ago may be another test's by now.
pub(crate) fn free_address() -> String {
    "127.0.0.1:1".to_owned()
}

/// Answers every request with the same bytes; its address.
fn something_else(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            // A closed connection needs no reply.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}
