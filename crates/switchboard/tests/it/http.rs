//! The least of an HTTP client: one request per connection, and streams read as they come.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A hang guard: a server that says nothing for so long is broken, even with one core for a dozen programs. It says nothing
/// about speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// An answer whose body is read as it comes.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: BufReader<Box<dyn Read>>,
    chunked: bool,
    /// The end of a stream was seen.
    ended: bool,
}

impl Answer {
    /// The rest of the body; for a stream, everything until it ends.
    pub(crate) fn text(mut self) -> String {
        let mut bytes = Vec::new();
        if self.chunked {
            while let Some(chunk) = self.chunk() {
                bytes.extend(chunk);
            }
        } else {
            self.body.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    }

    /// The same of a stream that must end in order, and not with its connection.
    pub(crate) fn whole_text(mut self) -> String {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk() {
            bytes.extend(chunk);
        }
        assert!(self.ended, "the stream was cut: {}", String::from_utf8_lossy(&bytes));
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) fn json(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Reads a stream until a chunk holds `wanted`.
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        assert!(self.reaches_into(wanted, &mut seen), "no {wanted} in {seen}");
        seen
    }

    /// Reads a stream until a chunk holds `wanted`; says whether it came to that before the end.
    pub(crate) fn reaches(&mut self, wanted: &str) -> bool {
        self.reaches_into(wanted, &mut String::new())
    }

    fn reaches_into(&mut self, wanted: &str, seen: &mut String) -> bool {
        while !seen.contains(wanted) {
            let Some(chunk) = self.chunk() else { return false };
            seen.push_str(&String::from_utf8(chunk).unwrap());
        }
        true
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        // A connection that is cut ends the stream as well.
        if self.body.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut bytes = vec![0; length + 2];
        self.body.read_exact(&mut bytes).ok()?;
        bytes.truncate(length);
        self.ended = length == 0;
        (length > 0).then_some(bytes)
    }
}

pub(crate) fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    request_over(connect(address), address, method, path, headers, body)
}

/// A socket that gives up on a server that says nothing.
pub(crate) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The same over something that may be more than a socket.
pub(crate) fn request_over(
    mut stream: impl Read + Write + 'static,
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut reader = BufReader::new(Box::new(stream) as Box<dyn Read>);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
    let mut chunked = false;
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        chunked |= line.to_ascii_lowercase().trim() == "transfer-encoding: chunked";
    }
    Answer { status, body: reader, chunked, ended: false }
}
