//! Parses server-sent events of peers: bytes in pieces of any size become events, and events become frames of A2A.
//!
//! It accepts what peers really send: a byte order mark, every kind of line end, data over several lines, unknown fields,
//! a stream that stops without its last blank line. No I/O: the owner of the connection feeds the pieces.
//!
//! ```
//! use switchboard_a2a::sse::{EventReader, Frame};
//! use switchboard_a2a::Dialect;
//!
//! let mut reader = EventReader::new(1 << 20);
//! for piece in ["event: task/error\r\nda", "ta: {\"code\":-32001}\r\n\r\ndata: [DONE]\r\n\r\n"] {
//!     reader.feed(piece.as_bytes());
//! }
//! reader.finish();
//! let mut frames = Vec::new();
//! while let Some(event) = reader.next_event()? {
//!     frames.push(event.decode(Dialect::V1)?);
//! }
//! assert!(matches!(&frames[0], Frame::Error(error) if error.message == "Task not found"));
//! assert_eq!(frames[1], Frame::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event;
mod frame;
mod named_event;

use std::collections::VecDeque;

use event::Block;
pub use event::Event;
pub use frame::Frame;
use memchr::memchr2;

/// What the reader of a silent stream keeps room for: most lines are shorter, and most pieces have fewer events.
const KEPT_LINE_BYTES: usize = 4_096;
const KEPT_EVENTS: usize = 8;

/// Some servers begin with it, though UTF-8 needs none.
const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Turns the bytes of one stream into events. However the bytes are cut, the events are the same.
#[derive(Debug)]
pub struct EventReader {
    limit: usize,
    /// How much of a byte order mark has come; nothing once the first line has begun.
    mark: Option<usize>,
    /// A line feed that comes next belongs to the line end that is already read.
    after_carriage_return: bool,
    /// A comment is not kept, so that no keep-alive can ever be too long.
    in_comment: bool,
    line: Vec<u8>,
    /// All lines of the event under way, without comments and line ends.
    size: usize,
    block: Block,
    ready: VecDeque<Event>,
    failure: Option<ReadError>,
}

/// Why a stream cannot be read further. Earlier events are still returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// An event exceeds the limit.
    #[error("an event of the stream is larger than {limit} bytes, the most that is read")]
    TooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// Event streams are UTF-8 by definition.
    #[error("the stream has a line that is not UTF-8, the only encoding of event streams")]
    NotUtf8,
}

impl EventReader {
    /// A reader that keeps at most so many bytes of one event. The first event of a task's stream may be the whole task.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            mark: Some(0),
            after_carriage_return: false,
            in_comment: false,
            line: Vec::new(),
            size: 0,
            block: Block::default(),
            ready: VecDeque::new(),
            failure: None,
        }
    }

    /// Takes the next piece of the stream; [`Self::next_event`] gives what is complete by now.
    pub fn feed(&mut self, piece: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.take(piece).err();
        }
    }

    /// Marks the orderly end of the stream: an event without its blank line counts as complete. Not to be called after a
    /// broken connection, where the event may be truncated.
    pub fn finish(&mut self) {
        if self.failure.is_none() {
            self.failure = self.end().err();
        }
    }

    /// The next complete event, none if more bytes are needed. An error comes after all events before it, and stays.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        match (self.ready.pop_front(), self.failure) {
            (Some(event), _) => {
                // Streams live for hours, so one piece with many events must not cost memory ever after.
                if self.ready.is_empty() {
                    self.ready.shrink_to(KEPT_EVENTS);
                }
                Ok(Some(event))
            }
            (None, Some(failure)) => Err(failure),
            (None, None) => Ok(None),
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), ReadError> {
        let mut rest = self.after_mark(piece)?;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                return self.extend_line(rest);
            };
            self.extend_line(&rest[..end])?;
            self.after_carriage_return = rest[end] == b'\r';
            self.end_line()?;
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// Drops a byte order mark at the very beginning; bytes that only looked like one are the line's.
    fn after_mark<'a>(&mut self, mut piece: &'a [u8]) -> Result<&'a [u8], ReadError> {
        while let (Some(matched), Some((&first, rest))) = (self.mark, piece.split_first()) {
            if BYTE_ORDER_MARK.get(matched) != Some(&first) {
                self.begin()?;
                break;
            }
            self.mark = Some(matched + 1).filter(|matched| *matched < BYTE_ORDER_MARK.len());
            piece = rest;
        }
        Ok(piece)
    }

    fn begin(&mut self) -> Result<(), ReadError> {
        let matched = self.mark.take().unwrap_or(0);
        self.extend_line(&BYTE_ORDER_MARK[..matched])
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        if self.line.is_empty() && bytes.first() == Some(&b':') {
            self.in_comment = true;
        }
        if self.in_comment {
            return Ok(());
        }
        self.size += bytes.len();
        if self.size > self.limit {
            self.line = Vec::new();
            return Err(ReadError::TooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), ReadError> {
        if std::mem::take(&mut self.in_comment) {
            return Ok(());
        }
        if self.line.is_empty() {
            self.end_event();
            return Ok(());
        }
        let line = std::str::from_utf8(&self.line).map_err(|_| ReadError::NotUtf8)?;
        self.block.line(line);
        self.line.clear();
        Ok(())
    }

    fn end_event(&mut self) {
        self.size = 0;
        // The first event may be a whole task, and those after it are small.
        self.line.shrink_to(KEPT_LINE_BYTES);
        self.ready.extend(std::mem::take(&mut self.block).event());
    }

    fn end(&mut self) -> Result<(), ReadError> {
        self.begin()?;
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.end_event();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_stream_keeps_no_room_for_what_it_has_read() {
        let mut reader = EventReader::new(1 << 20);
        reader.feed(format!("data: {}\n\n", "x".repeat(1 << 19)).as_bytes());
        reader.feed("data: x\n\n".repeat(1_000).as_bytes());
        while reader.next_event().is_ok_and(|event| event.is_some()) {}
        assert!(reader.line.capacity() <= 2 * KEPT_LINE_BYTES, "{}", reader.line.capacity());
        assert!(reader.ready.capacity() <= 2 * KEPT_EVENTS, "{}", reader.ready.capacity());
    }
}
