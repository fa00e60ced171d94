//! Server-sent events, one whole frame at a time: what was cut off in the middle was never acknowledged.

use std::io::{self, BufRead, BufReader};
use std::time::Instant;

use crate::HANG_GUARD;
use crate::http::Body;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The `id:` line; empty if there is none.
    pub id: String,
    /// The `data:` line.
    pub data: String,
}

/// The frames of a body.
pub struct EventStream<'a> {
    lines: BufReader<Body<'a>>,
    begun: Instant,
}

impl<'a> EventStream<'a> {
    /// Reads a body as frames.
    #[must_use]
    pub fn new(body: Body<'a>) -> Self {
        Self { lines: BufReader::new(body), begun: Instant::now() }
    }

    /// The next frame that holds data; none at the proper end of the stream.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let mut frame = Frame { id: String::new(), data: String::new() };
        loop {
            // Pings keep the connection alive, so its own guard does not end such a stream.
            if self.begun.elapsed() > HANG_GUARD {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the stream does not come to an end"));
            }
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                if !frame.data.is_empty() {
                    return Ok(Some(frame));
                }
                continue;
            }
            if let Some(id) = line.strip_prefix("id:") {
                id.trim_start().clone_into(&mut frame.id);
            } else if let Some(data) = line.strip_prefix("data:") {
                data.trim_start().clone_into(&mut frame.data);
            }
        }
    }
}
