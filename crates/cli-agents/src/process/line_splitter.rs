//! Bytes into lines, with a bound on what is kept.

use super::output::Output;

/// Splits what is read. At most one line and one read are kept.
#[derive(Debug)]
pub(super) struct LineSplitter {
    limit: usize,
    read: Vec<u8>,
    /// How much of it was taken.
    taken: usize,
    line: Vec<u8>,
    /// How long that line is, with what is not kept of it.
    length: u64,
}

impl LineSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, read: Vec::new(), taken: 0, line: Vec::new(), length: 0 }
    }

    /// Takes in what was read, once all of what was read before is taken.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.read.drain(..self.taken);
        self.taken = 0;
        self.read.extend_from_slice(bytes);
    }

    /// The next line that has ended.
    pub(super) fn take(&mut self) -> Option<Output> {
        let rest = self.read.get(self.taken..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let part = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.length += part.len() as u64;
        // One more than the limit, which may be the first half of the line's end.
        let room = self.limit.saturating_add(1).saturating_sub(self.line.len());
        self.line.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        self.taken += part.len();
        end?;
        self.taken += 1;
        Some(self.finish_line())
    }

    /// What was read and is in no line yet, as it is.
    pub(super) fn take_bytes(&mut self) -> Option<Vec<u8>> {
        let bytes = self.read.split_off(self.taken);
        self.read.clear();
        self.taken = 0;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// What is left when no more will come: a line without an end.
    pub(super) fn finish(&mut self) -> Option<Output> {
        (self.length > 0).then(|| self.finish_line())
    }

    /// The line that has begun, unless it is too long already; half a character at its end is left out.
    pub(super) fn unfinished(&self) -> Option<String> {
        if self.length == 0 || self.length > self.limit as u64 {
            return None;
        }
        let whole = match self.line.utf8_chunks().last() {
            Some(last) if is_half(last.invalid()) => self.line.len() - last.invalid().len(),
            _ => self.line.len(),
        };
        Some(String::from_utf8_lossy(self.line.get(..whole).unwrap_or_default()).into_owned())
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    fn finish_line(&mut self) -> Output {
        let mut line = std::mem::take(&mut self.line);
        let mut length = std::mem::take(&mut self.length);
        if line.len() as u64 == length && line.last() == Some(&b'\r') {
            line.pop();
            length -= 1;
        }
        if length > self.limit as u64 {
            return Output::TooLong { bytes: length };
        }
        Output::Line(match String::from_utf8(line) {
            Ok(line) => line,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }
}

/// Whether these bytes may be the beginning of a character.
fn is_half(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
