//! An agent elsewhere, as far as its card: a server that can be told to fail, and counts what it is asked. And one that is
//! not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

#[derive(Clone)]
pub(crate) struct CardServer {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    card: Mutex<Value>,
    fails: AtomicBool,
    /// The path that is not answered, while the other is forbidden.
    silent: Mutex<Option<&'static str>>,
    /// Requests there that nobody has asked about yet.
    hanging: AtomicUsize,
    not_modified: AtomicUsize,
}

/// An address where nobody listens: connections are refused as long as this is there, and no other program can take it.
pub(crate) struct Nobody(TcpSocket);

impl Nobody {
    pub(crate) fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}

impl CardServer {
    pub(crate) async fn start(skills: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let silent = Mutex::new(None);
        let card = Mutex::new(Value::Null);
        let state = State { card, fails: false.into(), silent, hanging: 0.into(), not_modified: 0.into() };
        let server = Self { url, state: Arc::new(state) };
        server.offer(skills);
        let answering = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        server
    }

    /// Shows another card from now on.
    pub(crate) fn offer(&self, skills: &[&str]) {
        let skills: Vec<Value> =
            skills.iter().map(|id| json!({ "id": id, "name": id, "description": "of the card", "tags": [] })).collect();
        *self.state.card.lock() = json!({
            "name": "Far away", "description": "An agent elsewhere", "version": "1", "skills": skills,
            "capabilities": { "streaming": true }, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "supportedInterfaces": [{ "url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        });
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.state.fails.store(fails, Ordering::SeqCst);
    }

    /// Says nothing at a path from now on, and forbids all others.
    pub(crate) fn hang_at(&self, path: &'static str) {
        *self.state.silent.lock() = Some(path);
    }

    /// Whether a request hangs there that was not there when this was asked before.
    pub(crate) fn has_new_hanging(&self) -> bool {
        self.state.hanging.swap(0, Ordering::SeqCst) > 0
    }

    /// How often it has answered that nothing has changed.
    pub(crate) fn not_modified(&self) -> usize {
        self.state.not_modified.load(Ordering::SeqCst)
    }

    async fn answer(self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut etag, mut line, mut path) = (String::new(), String::new(), String::new());
        while reader.read_line(&mut line).await? > 2 {
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("if-none-match:") {
                etag = value.trim().to_owned();
            }
            line.clear();
        }
        let card = self.state.card.lock().to_string();
        let own = format!("\"{:x}\"", card.len() ^ card.bytes().map(usize::from).sum::<usize>() << 8);
        let silent = *self.state.silent.lock();
        if silent == Some(path.as_str()) {
            self.state.hanging.fetch_add(1, Ordering::SeqCst);
            return reader.read_to_end(&mut Vec::new()).await.map(drop);
        }
        let (status, body) = if silent.is_some() {
            ("403 Forbidden", "no".to_owned())
        } else if self.state.fails.load(Ordering::SeqCst) {
            ("500 Internal Server Error", "broken".to_owned())
        } else if etag == own {
            self.state.not_modified.fetch_add(1, Ordering::SeqCst);
            ("304 Not Modified", String::new())
        } else {
            ("200 OK", card)
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nETag: {own}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        reader.write_all(format!("{head}{body}").as_bytes()).await?;
        reader.shutdown().await
    }
}
