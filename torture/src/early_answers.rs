//! The planted bug: a proxy that says "done" to an answer before the server has heard of it. Everything else passes
//! through untouched. If the comparison does not notice, it is not worth its name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Connection;

/// The server hears of an answer so much later than the client hears that it was taken.
const DELAY: Duration = Duration::from_millis(100);

/// The proxy.
pub struct EarlyAnswers {
    /// Where clients connect.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    late: Late,
}

/// What the server has not heard of yet.
type Late = Arc<Mutex<Vec<JoinHandle<()>>>>;

impl EarlyAnswers {
    /// Stands in front of a server.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let late = Late::default();
        let (stopped, sending) = (stop.clone(), late.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let late = sending.clone();
                std::thread::spawn(move || {
                    // Either side may go away at any time; then both do.
                    let _ = serve(&client, upstream, &late);
                    let _ = client.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Ok(Self { address, stop, late })
    }

    /// Waits until the server has heard of everything that was acknowledged in its name.
    pub fn catch_up(&self) {
        for sent in std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner)) {
            // A send that failed shows in the comparison.
            let _ = sent.join();
        }
    }
}

impl Drop for EarlyAnswers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(client: &TcpStream, upstream: SocketAddr, late: &Late) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut server = TcpStream::connect(upstream)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let mut reader = BufReader::new(client.try_clone()?);
    loop {
        let request = Request::read(&mut reader)?;
        match request.early_answer(upstream) {
            None => server.write_all(&request.bytes)?,
            Some(answer) => {
                let sent = std::thread::spawn(move || {
                    std::thread::sleep(DELAY);
                    // The server may be gone by now: that is the bug.
                    let _ = request.deliver(upstream);
                });
                // Before the answer: the client may have stopped, and `catch_up` have looked, right after it.
                late.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
                (&mut &*client).write_all(answer.as_bytes())?;
            }
        }
    }
}

struct Request {
    bytes: Vec<u8>,
    body: Value,
}

impl Request {
    fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { bytes: [head.as_bytes(), &body].concat(), body: serde_json::from_slice(&body).unwrap_or_default() })
    }

    /// Sends it and waits for the beginning of the answer.
    fn deliver(&self, upstream: SocketAddr) -> io::Result<()> {
        let mut connection = TcpStream::connect(upstream)?;
        connection.write_all(&self.bytes)?;
        connection.read_exact(&mut [0])
    }

    /// What the server would say once it has taken the answer; none for any other request. The task is read first, so
    /// that the early word differs from the later truth in nothing but its time.
    fn early_answer(&self, upstream: SocketAddr) -> Option<String> {
        let message = &self.body["params"]["message"];
        let task = message["taskId"].as_str()?;
        if self.body["method"] != "SendMessage" {
            return None;
        }
        let said = format!("you said: {}", message["parts"][0]["text"].as_str()?);
        // The agent says it in an artifact and with its status.
        let parts = json!({ "parts": [{ "text": said }] });
        let status = json!({ "state": "TASK_STATE_COMPLETED", "message": parts });
        let mut history = history(upstream, task).unwrap_or_default();
        history.as_array_mut()?.push(message.clone());
        let task = json!({ "id": task, "status": status, "artifacts": [parts], "history": history });
        let body = json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": { "task": task } }).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
        Some(format!("{head}\r\n\r\n{body}"))
    }
}

fn history(upstream: SocketAddr, task: &str) -> io::Result<Value> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": task } }).to_string();
    let mut connection = Connection::open(upstream)?;
    let response = connection.send("POST", "/a2a", &[("a2a-version", "1.0")], &body)?;
    let mut answer: Value = serde_json::from_str(&response.text()?)?;
    Ok(answer["result"]["history"].take())
}
