//! A small HTTP client that shows what came over the wire: status, headers, JSON, and event streams frame by frame.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// One request.
#[derive(Clone)]
pub(crate) struct Ask {
    address: SocketAddr,
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Ask {
    pub(crate) fn new(address: SocketAddr, method: &'static str, path: &str) -> Self {
        Self { address, method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn body(self, body: &Value) -> Self {
        self.raw(body.to_string())
    }

    pub(crate) fn raw(self, body: impl Into<Bytes>) -> Self {
        self.typed("application/json", body)
    }

    /// A body of a media type.
    pub(crate) fn typed(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", media_type)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The version, if it says any.
    pub(crate) fn version(self, version: &str) -> Self {
        if version.is_empty() { self } else { self.header("a2a-version", version) }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn replace(self, from: &str, to: &str) -> Self {
        let body = String::from_utf8(self.body.to_vec()).unwrap().replace(from, to);
        Self { body: body.into(), ..self }
    }

    pub(crate) fn post(mut self) -> Self {
        self.method = "POST";
        self
    }

    async fn open(self) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(self.method).uri(self.path).header("host", "127.0.0.1");
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        sender.send_request(request.body(Full::new(self.body)).unwrap()).await.unwrap()
    }

    /// The whole answer.
    pub(crate) async fn reply(self) -> Reply {
        let (parts, body) = self.open().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// The answer as a stream of events; anything else is a failed test.
    pub(crate) async fn events(self) -> Events {
        let (parts, body) = self.open().await.into_parts();
        let media_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
        if media_type != Some("text/event-stream") {
            let body = body.collect().await.unwrap().to_bytes();
            panic!("no stream: {} {}", parts.status, String::from_utf8_lossy(&body));
        }
        Events { headers: parts.headers, body, text: String::new() }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The JSON, also where it came as the one frame of a stream, as v0.3 readers of streams want their errors.
    pub(crate) fn json(&self) -> Value {
        let body = match self.header("content-type") {
            "text/event-stream" => self.body.strip_prefix(b"data: ").unwrap_or(&self.body),
            _ => &self.body,
        };
        serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An event stream.
pub(crate) struct Events {
    pub(crate) headers: HeaderMap,
    body: Incoming,
    text: String,
}

/// One block of an event stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) event: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// The next block of any kind; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let frame = parse(block);
                self.text = rest.to_owned();
                return Some(frame);
            }
            match self.body.frame().await {
                Some(frame) => self.text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap()),
                None => {
                    assert_eq!(self.text, "", "the stream ended in the middle of a frame");
                    return None;
                }
            }
        }
    }

    /// Everything up to the end.
    pub(crate) async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn parse(block: &str) -> Frame {
    let mut frame = Frame::default();
    for line in block.split('\n') {
        let (field, value) = line.split_once(": ").unwrap();
        match field {
            "id" => frame.id = Some(value.to_owned()),
            "after" => frame.after = Some(value.parse().unwrap()),
            "event" => frame.event = Some(value.to_owned()),
            "retry" => frame.retry = Some(value.to_owned()),
            "" => frame.comment = Some(value.to_owned()),
            "data" => frame.data = serde_json::from_str(value).unwrap(),
            other => panic!("unknown field {other:?}"),
        }
    }
    frame
}

/// The same JSON with ids and times replaced by the order of their first appearance, so that it can be compared.
pub(crate) fn scrub(value: &Value) -> Value {
    fn walk(value: &Value, seen: &mut Vec<String>) -> Value {
        match value {
            Value::String(text) if uuid_like(text) => {
                let place = seen.iter().position(|known| known == text).unwrap_or_else(|| {
                    seen.push(text.clone());
                    seen.len() - 1
                });
                Value::String(format!("id{place}"))
            }
            Value::String(text) if text.len() == 24 && text.starts_with("20") && text.ends_with('Z') => "time".into(),
            Value::Array(items) => items.iter().map(|item| walk(item, seen)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| (key.clone(), walk(value, seen)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
    walk(value, &mut Vec::new())
}

fn uuid_like(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    text.len() == 36 && text.bytes().all(is_part) && text.bytes().filter(|byte| *byte == b'-').count() == 4
}
