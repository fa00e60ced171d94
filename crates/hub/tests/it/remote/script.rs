//! A remote agent that does what it is told, request by request, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_a2a::extension::IDEMPOTENCY;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What the agent was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    head: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("card")
    }

    /// The path of the request.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// What it does.
pub(crate) enum Reply {
    Result(Value),
    Error(i64),
    /// The same with words of its own.
    Refuses(i64, &'static str),
    /// An error with this status of HTTP.
    Broken(u16, i64),
    /// A web page.
    Page(&'static str),
    /// The same with a status.
    BrokenPage(u16, &'static str),
    /// The JSON of a gateway in front of it, with a status.
    Gateway(u16, &'static str),
    /// Frames of an event stream, and then its orderly end.
    Events(Vec<String>),
    /// Frames of an event stream, and once there is a permit, others and its orderly end.
    Held(Vec<String>, Arc<Semaphore>, Vec<String>),
    /// Says nothing, and keeps the connection.
    Stalls,
    Closes,
}

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    card: Arc<Mutex<Value>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    accepting: tokio::task::AbortHandle,
}

impl Scripted {
    /// The function is told how often the same method was called before.
    pub(crate) async fn start(
        idempotent: bool,
        answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with_card(card(idempotent), answer).await
    }

    /// One that sends push notifications, which the test does for it.
    pub(crate) async fn pushing(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let mut card = card(false);
        card["capabilities"]["pushNotifications"] = true.into();
        Self::with_card(card, answer).await
    }

    pub(crate) async fn with_card(
        card: Value,
        answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let card = Arc::new(Mutex::new(card));
        let (shared, answer, shown) = (Arc::clone(&asked), Arc::new(answer), Arc::clone(&card));
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (asked, answer, card) = (Arc::clone(&shared), Arc::clone(&answer), Arc::clone(&shown));
                tokio::spawn(async move { serve(socket, &card, &asked, &*answer).await });
            }
        });
        Self { address, card, asked, accepting: accepting.abort_handle() }
    }

    /// Shows another card from now on.
    pub(crate) fn show(&self, card: Value) {
        *self.card.lock() = card;
    }

    /// Nobody is at its address any more.
    pub(crate) async fn stop(&self) {
        self.accepting.abort();
        while !self.accepting.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every call of a method.
    pub(crate) fn calls(&self, method: &str) -> Vec<Asked> {
        self.asked.lock().iter().filter(|asked| asked.method() == method).cloned().collect()
    }

    /// Waits until a method was called so often.
    pub(crate) async fn called(&self, method: &str, times: usize) {
        let called = async {
            while self.calls(method).len() < times {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::HANG_GUARD, called).await.expect("it is called");
    }
}

async fn serve(
    mut socket: TcpStream,
    card: &Mutex<Value>,
    asked: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let now = Asked { head, body: Value::Null };
        let length: usize = now.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            break (now.head, serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default());
        }
    };
    let now = Asked { head, body };
    let before = {
        let mut asked = asked.lock();
        let before = asked.iter().filter(|before| before.method() == now.method()).count();
        asked.push(now.clone());
        before
    };
    let (mut media_type, mut status) = ("application/json", 200);
    let reply = match now.method() {
        "card" => card.lock().to_string(),
        _ => match answer(&now, before) {
            Reply::Result(result) => json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string(),
            Reply::Error(code) => {
                json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}).to_string()
            }
            Reply::Broken(broken, code) => {
                status = broken;
                json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "it broke"}}).to_string()
            }
            Reply::Refuses(code, words) => {
                json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": words}}).to_string()
            }
            Reply::Page(page) => {
                media_type = "text/html";
                page.to_owned()
            }
            Reply::BrokenPage(broken, page) => {
                (media_type, status) = ("text/html", broken);
                page.to_owned()
            }
            Reply::Gateway(broken, json) => {
                status = broken;
                json.to_owned()
            }
            Reply::Held(frames, permit, rest) => return hold(socket, frames, &permit, rest).await,
            Reply::Events(frames) => {
                media_type = "text/event-stream";
                frames.concat()
            }
            Reply::Stalls => return socket.read_to_end(&mut Vec::new()).await.map(drop),
            Reply::Closes => return Ok(()),
        },
    };
    let length = reply.len();
    let head = format!("HTTP/1.1 {status} So\r\nconnection: close\r\ncontent-type: {media_type}\r\n");
    socket.write_all(format!("{head}content-length: {length}\r\n\r\n{reply}").as_bytes()).await?;
    socket.shutdown().await
}

async fn hold(
    mut socket: TcpStream,
    frames: Vec<String>,
    permit: &Semaphore,
    rest: Vec<String>,
) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    socket.write_all(format!("{head}{}", frames.concat()).as_bytes()).await?;
    let (mut asks, mut answers) = socket.split();
    let mut nothing = Vec::new();
    tokio::select! {
        permit = permit.acquire() => permit.map_err(std::io::Error::other)?.forget(),
        gone = asks.read_to_end(&mut nothing) => return gone.map(drop),
    }
    answers.write_all(rest.concat().as_bytes()).await?;
    socket.shutdown().await
}

/// A frame of an event stream, with its number if the agent numbers them.
pub(crate) fn frame(number: Option<u64>, result: Value) -> String {
    let id = number.map(|number| format!("id: 1.{number}\n")).unwrap_or_default();
    format!("{id}data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

/// An agent that neither streams nor pushes.
pub(crate) fn card(idempotent: bool) -> Value {
    let extensions = if idempotent { json!([{"uri": IDEMPOTENCY}]) } else { json!([]) };
    json!({
        "name": "scripted", "description": "A script", "version": "1",
        "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false, "extensions": extensions},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

/// Its task, with the message that began it.
pub(crate) fn task(state: &str, message_id: &str) -> Value {
    let history = json!([{"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
    let artifacts = json!([{"artifactId": "a", "parts": [{"text": "made"}]}]);
    json!({"id": "r", "contextId": "rc", "status": {"state": state}, "artifacts": artifacts, "history": history})
}
