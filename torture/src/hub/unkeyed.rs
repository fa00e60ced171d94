//! Stands in front of a server and takes its idempotency away, as with most agents: the extension is not on its card, and
//! no key reaches it. Where it lists no tasks either, as with version 0.3, it cannot be found out afterwards what became
//! of a message. Everything else passes through untouched, and a server that is away is away here too.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Connection;

/// How the URI of the extension begins, and the header of its keys.
const EXTENSION: &str = "urn:switchboard:a2a:idempotency-key:";
const HEADER: &str = "idempotency-key:";

/// How late a slow agent answers: long enough that a kill of the hub finds messages whose answer has not come.
const LATE: Duration = Duration::from_millis(400);

/// What else the agent behind the proxy lacks.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) lists_tasks: bool,
    /// It answers late and pushes nothing, so that only its answer says that a message has come.
    pub(super) is_slow: bool,
}

/// The proxy.
pub(super) struct Unkeyed {
    /// Where the hub connects.
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Unkeyed {
    /// Stands in front of a server.
    pub(super) fn start(upstream: SocketAddr, limits: Limits) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::spawn(move || {
                    // Either side may go away at any time; then both do.
                    let _ = serve(&client, upstream, limits);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Ok(Self { address, stop })
    }
}

impl Drop for Unkeyed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(client: &TcpStream, upstream: SocketAddr, limits: Limits) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut server = TcpStream::connect(upstream)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let _ = match limits.is_slow {
            true => pass_late(&mut from_server, &mut to_client),
            false => io::copy(&mut from_server, &mut to_client).map(drop),
        };
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let passed_on = pass_on(client, &mut server, upstream, limits);
    // A stream that the hub has left must not go on.
    let _ = server.shutdown(Shutdown::Both);
    passed_on
}

/// Passes on what a server says some time after it has said it.
fn pass_late(server: &mut TcpStream, client: &mut TcpStream) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let length = server.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        std::thread::sleep(LATE);
        client.write_all(&piece[..length])?;
    }
}

fn pass_on(client: &TcpStream, server: &mut TcpStream, upstream: SocketAddr, limits: Limits) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    while let Some(request) = Request::read(&mut reader)? {
        let answer = match request {
            _ if request.is_for_card() => Some(request.card(upstream, limits)?),
            _ if !limits.lists_tasks => request.refusal(),
            _ => None,
        };
        match answer {
            Some(body) => respond(client, &body)?,
            None => server.write_all(&[request.head.as_bytes(), &request.body].concat())?,
        }
    }
    Ok(())
}

/// A request without its key.
struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// The next one; none if the hub is done.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line)? {
                0 if head.is_empty() => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
            let name = line.to_ascii_lowercase();
            if let Some(bytes) = name.strip_prefix("content-length:") {
                length = bytes.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            if !name.starts_with(HEADER) {
                head.push_str(&line);
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Some(Self { head, body }))
    }

    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    fn is_for_card(&self) -> bool {
        self.path().ends_with("/agent-card.json")
    }

    /// The card of the server without the extension.
    fn card(&self, upstream: SocketAddr, limits: Limits) -> io::Result<Value> {
        let mut connection = Connection::open(upstream)?;
        let response = connection.send("GET", self.path(), &[("a2a-version", "1.0")], "")?;
        let mut card: Value = serde_json::from_str(&response.text()?)?;
        if let Some(extensions) = card["capabilities"]["extensions"].as_array_mut() {
            extensions.retain(|extension| !extension["uri"].as_str().is_some_and(|uri| uri.starts_with(EXTENSION)));
        }
        if limits.is_slow {
            card["capabilities"]["pushNotifications"] = json!(false);
        }
        Ok(card)
    }

    /// What an agent of version 0.3 says when it is asked for its tasks; none for any other request.
    fn refusal(&self) -> Option<Value> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let error = json!({ "code": -32601, "message": "method not found" });
        // A client that is refused by one version asks by the other.
        let lists = body["method"] == "ListTasks" || body["method"] == "tasks/list";
        lists.then(|| json!({ "jsonrpc": "2.0", "id": body["id"], "error": error }))
    }
}

fn respond(mut client: &TcpStream, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    client.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_loses_its_key_and_nothing_else() {
        let sent = "POST /a2a/probe HTTP/1.1\r\nHost: here\r\nIdempotency-Key: 7\r\nContent-Length: 2\r\n\r\n{}GET /";
        let request = Request::read(&mut sent.as_bytes()).unwrap().unwrap();
        assert_eq!(request.head, "POST /a2a/probe HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n");
        assert_eq!((request.body.as_slice(), request.path()), (b"{}".as_slice(), "/a2a/probe"));
        assert!(Request::read(&mut "".as_bytes()).unwrap().is_none());
        assert!(Request::read(&mut "POST / HTTP/1.1\r\n".as_bytes()).is_err());
    }

    #[test]
    fn only_a_list_of_tasks_is_refused() {
        let request = |method: &str| Request {
            head: "POST / HTTP/1.1\r\n\r\n".to_owned(),
            body: json!({ "id": 7, "method": method }).to_string().into_bytes(),
        };
        assert_eq!(request("SendMessage").refusal(), None);
        for method in ["ListTasks", "tasks/list"] {
            assert_eq!(request(method).refusal().unwrap()["error"]["code"], -32601);
        }
    }
}
