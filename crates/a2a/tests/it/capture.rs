//! Reads the captures in `tests/fixtures`: exchanges of one request and one response each.

use std::path::{Path, PathBuf};

use switchboard_a2a::{Dialect, Error, Operation, Request, RestParts, decode_params, decode_rest, jsonrpc};

pub(crate) struct Capture {
    /// `js-1.3.0/client-rest-get.http`
    pub(crate) name: String,
    pub(crate) exchanges: Vec<Exchange>,
}

pub(crate) struct Exchange {
    /// `POST /a2a/rest/message:send`
    pub(crate) request_line: String,
    pub(crate) request_body: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) response_head: String,
    pub(crate) response_body: Vec<u8>,
}

/// Every capture whose file name starts with the prefix, in all SDK folders.
pub(crate) fn all(prefix: &str) -> Vec<Capture> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["python-0.3.26", "js-0.3.14", "python-1.3.0", "js-1.3.0"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
        paths.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    paths.sort();
    let wanted = paths.into_iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let captures: Vec<Capture> = wanted.map(|path| read(&path)).collect();
    assert!(!captures.is_empty(), "no capture starts with {prefix}");
    captures
}

/// One capture.
pub(crate) fn one(name: &str) -> Capture {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
}

fn read(path: &Path) -> Capture {
    let bytes = std::fs::read(path).unwrap();
    let name = format!(
        "{}/{}",
        path.parent().unwrap().file_name().unwrap().to_str().unwrap(),
        path.file_name().unwrap().to_str().unwrap()
    );
    let mut exchanges = Vec::new();
    let mut rest: &[u8] = &bytes;
    while let Some(start) = find(rest, b">>> REQUEST\n") {
        rest = &rest[start + b">>> REQUEST\n".len()..];
        let response = find(rest, b"\n<<< RESPONSE\n").unwrap_or_else(|| panic!("{name}: no response"));
        let (request_head, request_body) = split_head(&rest[..response]);
        rest = &rest[response + b"\n<<< RESPONSE\n".len()..];
        let end = find(rest, b"\n=== END").unwrap_or_else(|| panic!("{name}: no end"));
        let (response_head, response_body) = split_head(&rest[..end]);
        rest = &rest[end..];
        let line = request_head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap();
        exchanges.push(Exchange {
            request_line: line.to_owned(),
            request_body: request_body.to_vec(),
            status: response_head.split(' ').nth(1).unwrap().parse().unwrap(),
            response_head: response_head.to_owned(),
            response_body: response_body.to_vec(),
        });
    }
    assert!(!exchanges.is_empty(), "{name} holds no exchange");
    Capture { name, exchanges }
}

/// The head ends at the first blank line, which may also be the last thing there is.
fn split_head(part: &[u8]) -> (&str, &[u8]) {
    match find(part, b"\n\n") {
        Some(blank) => (std::str::from_utf8(&part[..blank]).unwrap(), &part[blank + 2..]),
        None => (std::str::from_utf8(part).unwrap().trim_end(), &[]),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

impl Exchange {
    /// Whether it is about the card, which has no request to decode.
    pub(crate) fn is_card(&self) -> bool {
        self.request_line.contains("/.well-known/")
    }

    pub(crate) fn is_rpc(&self) -> bool {
        self.request_line.ends_with("/a2a/jsonrpc")
    }

    /// The dialect, the operation and the request, decoded as a server would.
    pub(crate) fn decode(&self) -> (Dialect, Operation, Result<Request, Error>) {
        if self.is_rpc() {
            let envelope = jsonrpc::parse(&self.request_body).unwrap();
            let (version, operation) = Operation::from_method(&envelope.method).unwrap();
            let dialect = version.rpc_dialect();
            return (dialect, operation, decode_params(dialect, operation, envelope.params));
        }
        let (method, target) = self.request_line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix("/a2a/rest").unwrap();
        let (dialect, path) = match path.strip_prefix("/v1") {
            Some(path) => (Dialect::V03Rest, path),
            None => (Dialect::V1, path),
        };
        let (tenant, path) = match path.strip_prefix("/acme") {
            Some(path) => (Some("acme"), path),
            None => (None, path),
        };
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let query: Vec<(String, String)> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let (operation, task_id, config_id) = route(method, path);
        let parts = RestParts { task_id, config_id, tenant, query: &query, body: &self.request_body };
        (dialect, operation, decode_rest(dialect, operation, parts))
    }

    /// The JSON results of the response: one of a plain answer, many of a stream.
    pub(crate) fn results(&self) -> Vec<serde_json::Value> {
        let is_stream = self.response_head.to_lowercase().contains("text/event-stream");
        let bodies = if is_stream { stream_data(&self.response_body) } else { vec![self.response_body.clone()] };
        let parsed = bodies.iter().filter(|body| !body.is_empty()).map(|body| serde_json::from_slice(body).unwrap());
        match self.is_rpc() {
            true => parsed.filter_map(|envelope: serde_json::Value| envelope.get("result").cloned()).collect(),
            false => parsed.collect(),
        }
    }
}

pub(crate) fn route<'a>(method: &str, path: &'a str) -> (Operation, Option<&'a str>, Option<&'a str>) {
    match path {
        "/message:send" => return (Operation::SendMessage, None, None),
        "/message:stream" => return (Operation::SendStreamingMessage, None, None),
        "/tasks" => return (Operation::ListTasks, None, None),
        "/card" | "/extendedAgentCard" => return (Operation::GetExtendedCard, None, None),
        _ => {}
    }
    let task = path.strip_prefix("/tasks/").unwrap_or_else(|| panic!("unknown path {path}"));
    if let Some((task, config)) = task.split_once("/pushNotificationConfigs") {
        let config = config.strip_prefix('/');
        let operation = match (method, config) {
            ("POST", None) => Operation::CreatePushConfig,
            ("GET", None) => Operation::ListPushConfigs,
            ("GET", Some(_)) => Operation::GetPushConfig,
            ("DELETE", Some(_)) => Operation::DeletePushConfig,
            _ => panic!("unknown {method} {path}"),
        };
        return (operation, Some(task), config);
    }
    match task.rsplit_once(':') {
        Some((task, "cancel")) => (Operation::CancelTask, Some(task), None),
        Some((task, "subscribe")) => (Operation::SubscribeToTask, Some(task), None),
        _ => (Operation::GetTask, Some(task), None),
    }
}

/// The data of each event, several lines joined.
fn stream_data(body: &[u8]) -> Vec<Vec<u8>> {
    let text = std::str::from_utf8(body).unwrap().replace("\r\n", "\n");
    let mut events = Vec::new();
    for event in text.split("\n\n") {
        let lines: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        let is_error = event.lines().any(|line| line == "event: error");
        if !lines.is_empty() && !is_error {
            events.push(lines.join("\n").into_bytes());
        }
    }
    events
}
