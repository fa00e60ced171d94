//! HTTP as bytes, for tests that must decide over every one of them.

use std::io::{Error, ErrorKind, Result};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Reads at least one byte more.
pub(crate) async fn read_more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    match socket.read_buf(buffer).await? {
        0 => Err(Error::from(ErrorKind::UnexpectedEof)),
        _ => Ok(()),
    }
}

/// Everything up to the blank line, and what has come of the body.
pub(crate) async fn read_head(socket: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut buffer = Vec::new();
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let body = buffer.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&buffer[..end]).into_owned(), body));
        }
        read_more(socket, &mut buffer).await?;
    }
}

/// A request: its head and all of its body.
pub(crate) async fn read_request(socket: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let (head, mut body) = read_head(socket).await?;
    let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while body.len() < length {
        read_more(socket, &mut body).await?;
    }
    Ok((head, body))
}

/// A header of a head.
pub(crate) fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim()).next()
}
