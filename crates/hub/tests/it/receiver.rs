//! An address that is told what happens: it keeps what it gets and answers as it is told to.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A receiver on a port of its own.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    got: Mutex<Vec<Received>>,
    /// What is answered.
    status: Mutex<u16>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// By their names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) text: String,
    pub(crate) body: Value,
    /// What was answered.
    pub(crate) status: u16,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let state = State { got: Mutex::default(), status: Mutex::new(200) };
        let receiver = Self { url, state: Arc::new(state) };
        let answering = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        receiver
    }

    /// Answers with a status from now on.
    pub(crate) fn answer_with(&self, status: u16) {
        *self.state.status.lock() = status;
    }

    /// All requests so far.
    pub(crate) fn got(&self) -> Vec<Received> {
        self.state.got.lock().clone()
    }

    async fn answer(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut headers = HashMap::new();
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                if line == "\r\n" {
                    break;
                }
                if let Some((name, value)) = line.trim_end().split_once(": ") {
                    headers.insert(name.to_ascii_lowercase(), value.to_owned());
                }
            }
            let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            if stream.read_exact(&mut body).await.is_err() {
                return;
            }
            let text = String::from_utf8(body).unwrap();
            let body = serde_json::from_str(&text).unwrap_or_default();
            let status = *self.state.status.lock();
            self.state.got.lock().push(Received { headers, text, body, status });
            let answer = format!("HTTP/1.1 {status} Told\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}
