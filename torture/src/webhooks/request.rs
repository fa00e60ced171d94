//! Reads the requests of one connection at the receiver: no more of HTTP/1.1 than our own deliveries use.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

/// The head of a request; its body is still to be read.
pub(super) struct Head {
    /// As in `POST /path HTTP/1.1`.
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) length: usize,
}

impl Head {
    /// The next head; none if the other side is done.
    pub(super) fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut head = Self { path, headers: Vec::new(), length: 0 };
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = head.header("content-length").map(str::parse).transpose();
        let length = length.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        head.length = length.unwrap_or_default();
        Ok(Some(head))
    }

    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// So many bytes of the body as text.
pub(super) fn body(reader: &mut BufReader<TcpStream>, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
