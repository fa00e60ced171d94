//! A receiver of webhooks on loopback: answers as it is told to and keeps what came.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::http::PATIENCE;

/// One delivery as it came.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Delivery {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The signatures in its header.
    pub(crate) fn signatures(&self) -> Vec<&str> {
        self.header("webhook-signature").split(' ').collect()
    }

    /// The signature that a receiver with the secret expects, as the Standard Webhooks have it.
    pub(crate) fn signed_with(&self, secret: &str) -> String {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
    }
}

#[derive(Default)]
struct Inside {
    status: u16,
    deliveries: Vec<Delivery>,
}

/// Receives.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    inside: Arc<(Mutex<Inside>, Condvar)>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Arc::new((Mutex::new(Inside { status: 200, deliveries: Vec::new() }), Condvar::new()));
        let shared = Arc::clone(&inside);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, inside }
    }

    /// From now on it answers with this status.
    pub(crate) fn answers(&self, status: u16) {
        self.inside.0.lock().unwrap().status = status;
    }

    /// A configuration that names it, with secrets in every place.
    pub(crate) fn config(&self) -> Value {
        json!({
            "url": format!("http://{}/secret-path?secret-query=1", self.address),
            "token": "secret-token",
            "authentication": { "scheme": "Basic", "credentials": "secret-credentials" },
        })
    }

    /// Waits for at least so many deliveries; all that came.
    #[track_caller]
    pub(crate) fn got(&self, count: usize) -> Vec<Delivery> {
        self.until(|deliveries| deliveries.len() >= count)
    }

    /// Waits for one whose body holds a text; all that came.
    #[track_caller]
    pub(crate) fn heard(&self, text: &str) -> Vec<Delivery> {
        self.until(|deliveries| deliveries.iter().any(|delivery| delivery.body.contains(text)))
    }

    pub(crate) fn count(&self) -> usize {
        self.inside.0.lock().unwrap().deliveries.len()
    }

    #[track_caller]
    fn until(&self, enough: impl Fn(&[Delivery]) -> bool) -> Vec<Delivery> {
        let (inside, arrived) = &*self.inside;
        let began = Instant::now();
        let mut inside = inside.lock().unwrap();
        while !enough(&inside.deliveries) {
            let left = PATIENCE.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "only these came: {:?}", inside.deliveries);
            inside = arrived.wait_timeout(inside, left).unwrap().0;
        }
        inside.deliveries.clone()
    }
}

/// Serves a connection until it is closed.
fn serve(mut stream: TcpStream, inside: &(Mutex<Inside>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(delivery) = read(&mut reader) {
        let status = {
            let mut inside = inside.0.lock().unwrap();
            inside.deliveries.push(delivery);
            inside.status
        };
        inside.1.notify_all();
        let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next request; none once the connection is closed.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Delivery> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Delivery { headers, body: String::from_utf8(body).unwrap() })
}
