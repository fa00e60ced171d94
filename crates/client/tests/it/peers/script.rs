//! A peer that does what it is told, request by request, and remembers what it was asked.

use std::io::Result;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_a2a::extension::IDEMPOTENCY;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::wire::{header, read_request};

/// What the peer was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    head: String,
    body: Vec<u8>,
}

impl Asked {
    /// Method and path.
    pub(crate) fn line(&self) -> String {
        self.head.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Its body, nothing if that is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What is asked for: the method over JSON-RPC, the line otherwise.
    pub(crate) fn what(&self) -> String {
        self.json()["method"].as_str().map_or_else(|| self.line(), str::to_owned)
    }
}

/// What the peer does.
pub(crate) enum Reply {
    /// Answers and closes.
    Says(Vec<u8>),
    /// Answers and then stays silent until the client has gone.
    Stalls(Vec<u8>),
    /// Closes without a word.
    Closes,
}

/// A peer at work.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _stops: DropGuard,
}

impl Peer {
    /// Every request is answered by the function, which is told how often the same was asked before.
    pub(crate) async fn start(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let asked = Arc::new(Mutex::new(Vec::<Asked>::new()));
        let (shared, answer, stopped) = (asked.clone(), Arc::new(answer), stop.clone());
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (asked, answer) = (shared.clone(), answer.clone());
                // A client that has gone is no fault of the peer.
                tokio::spawn(async move { serve(socket, &asked, &*answer).await.is_ok() });
            }
        }));
        Self { address, asked, _stops: stop.drop_guard() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was asked but for its card.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|asked| !asked.line().contains("/.well-known/")).collect()
    }

    /// The same by name.
    pub(crate) fn story(&self) -> Vec<String> {
        self.asked().iter().map(Asked::what).collect()
    }

    /// How often its card was asked for.
    pub(crate) fn cards(&self) -> Vec<Asked> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|asked| asked.line().contains("/.well-known/")).collect()
    }
}

async fn serve(
    mut socket: TcpStream,
    asked: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync),
) -> Result<()> {
    let (head, body) = read_request(&mut socket).await?;
    let now = Asked { head, body };
    let before = {
        let mut asked = asked.lock().unwrap();
        let before = asked.iter().filter(|before| before.what() == now.what()).count();
        asked.push(now.clone());
        before
    };
    match answer(&now, before) {
        Reply::Closes => Ok(()),
        Reply::Says(bytes) => {
            socket.write_all(&bytes).await?;
            socket.shutdown().await
        }
        Reply::Stalls(bytes) => {
            socket.write_all(&bytes).await?;
            socket.read_to_end(&mut Vec::new()).await.map(drop)
        }
    }
}

/// Any answer.
pub(crate) fn says(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} So\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n\r\n");
    Reply::Says((head + body).into_bytes())
}

pub(crate) fn json(status: u16, body: &Value) -> Reply {
    says(status, "content-type: application/json", &body.to_string())
}

/// A result over JSON-RPC.
pub(crate) fn result(result: Value) -> Reply {
    json(200, &json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

/// An error over JSON-RPC.
pub(crate) fn error(code: i64, message: &str) -> Reply {
    json(200, &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}))
}

fn event_head() -> String {
    "HTTP/1.1 200 So\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n".to_owned()
}

/// Events, and then the orderly end.
pub(crate) fn events(frames: &[String]) -> Reply {
    let body = frames.concat();
    let length = body.len();
    let head = event_head().replace("\r\n\r\n", &format!("\r\ncontent-length: {length}\r\n\r\n"));
    Reply::Says((head + &body).into_bytes())
}

/// Events, and then silence.
pub(crate) fn events_then_silence(frames: &[String]) -> Reply {
    Reply::Stalls((event_head() + &frames.concat()).into_bytes())
}

/// One event over JSON-RPC.
pub(crate) fn event(result: Value) -> String {
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

/// A card with a JSON-RPC and a REST interface, in that order.
pub(crate) fn card(idempotent: bool) -> Value {
    let extensions = if idempotent { json!([{"uri": IDEMPOTENCY}]) } else { json!([]) };
    json!({
        "name": "peer", "description": "A peer", "version": "1",
        "supportedInterfaces": [
            {"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": true, "extensions": extensions},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

/// A peer with a card that answers calls with the function.
pub(crate) async fn agent(idempotent: bool, answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |asked, before| {
        if asked.line().contains("/.well-known/") { json(200, &card(idempotent)) } else { answer(asked, before) }
    })
    .await
}

/// A task as version 1.0 writes it, with an artifact if there is text for one.
pub(crate) fn task(state: &str, text: &str) -> Value {
    let parts = json!([{"artifactId": "a", "parts": [{"text": text}]}]);
    let artifacts = if text.is_empty() { json!([]) } else { parts };
    json!({"id": "t", "contextId": "c", "status": {"state": state}, "artifacts": artifacts})
}

/// A further chunk of its artifact.
pub(crate) fn chunk(text: &str) -> Value {
    json!({"artifactUpdate": {
        "taskId": "t", "contextId": "c", "append": true, "artifact": {"artifactId": "a", "parts": [{"text": text}]}
    }})
}

/// A change of its state.
pub(crate) fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state}}})
}

pub(crate) const WORKING: &str = "TASK_STATE_WORKING";
pub(crate) const COMPLETED: &str = "TASK_STATE_COMPLETED";
