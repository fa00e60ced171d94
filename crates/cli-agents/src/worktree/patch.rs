//! A patch within a limit: whole files of it, byte for byte, so that what is there can be applied.

/// What begins the part of each file. No other line of a patch can.
const BEGINNING: &[u8] = b"diff --git ";
/// So many files that are left out are named.
const NAMED: usize = 100;

/// What a task has changed, as `git apply` takes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) bytes: Vec<u8>,
    /// Files for which there was no room; the first of them.
    pub(crate) left_out: Vec<String>,
    /// How many there are.
    pub(crate) left_out_count: usize,
}

/// Takes in a patch as git prints it.
pub(super) struct Collecting {
    patch: Patch,
    limit: usize,
    /// Where the file begins that is being taken in.
    file: usize,
    /// Of the line that has begun.
    line: Vec<u8>,
    /// The rest of this file is not taken.
    is_left_out: bool,
    is_within_line: bool,
}

impl Collecting {
    pub(super) fn new(limit: usize) -> Self {
        Self { patch: Patch::default(), limit, file: 0, line: Vec::new(), is_left_out: false, is_within_line: false }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Only the first line of a file is looked at; it is kept together until it is known to be one.
            let may_begin = !self.is_within_line || !self.line.is_empty();
            let ends = piece.ends_with(b"\n");
            if may_begin {
                self.line.extend_from_slice(piece);
                let known = self.line.len().min(BEGINNING.len());
                if self.line.get(..known) != BEGINNING.get(..known) {
                    let line = std::mem::take(&mut self.line);
                    self.add(&line);
                } else if ends {
                    let line = std::mem::take(&mut self.line);
                    self.begin(&line);
                }
            } else {
                self.add(piece);
            }
            self.is_within_line = !ends;
        }
    }

    pub(super) fn finish(mut self) -> Patch {
        let line = std::mem::take(&mut self.line);
        self.add(&line);
        self.patch
    }

    /// Another file.
    fn begin(&mut self, line: &[u8]) {
        self.file = self.patch.bytes.len();
        self.is_left_out = false;
        if self.patch.bytes.len() + line.len() > self.limit {
            self.leave_out(line);
        } else {
            self.patch.bytes.extend_from_slice(line);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.is_left_out {
            return;
        }
        if self.patch.bytes.len() + bytes.len() <= self.limit {
            self.patch.bytes.extend_from_slice(bytes);
            return;
        }
        let begun = self.patch.bytes.split_off(self.file);
        let first = begun.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.leave_out(first);
    }

    fn leave_out(&mut self, line: &[u8]) {
        self.is_left_out = true;
        self.patch.left_out_count += 1;
        if self.patch.left_out.len() < NAMED {
            self.patch.left_out.push(name(line));
        }
    }
}

/// The file that a part is about: `diff --git a/NAME b/NAME`. A file with two names is called by both.
fn name(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line.strip_prefix(BEGINNING).unwrap_or(line)).trim_end().to_owned();
    let middle = line.len() / 2;
    match (line.get(..middle), line.get(middle + 1..)) {
        (Some(old), Some(new)) if old.get(2..) == new.get(2..) => new.get(2..).unwrap_or(new).to_owned(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &[u8] = b"diff --git a/one b/one\n+1\r\n\xff\ndiff --git a/two b/zwei\n+diff --git \n+22\ndiff --git a/three b/three\nend";

    fn collected(limit: usize, size: usize) -> Patch {
        let mut collecting = Collecting::new(limit);
        for chunk in PATCH.chunks(size) {
            collecting.take(chunk);
        }
        collecting.finish()
    }

    #[test]
    fn files_without_room_are_left_out_whole_and_named_however_the_patch_comes() {
        let one = b"diff --git a/one b/one\n+1\r\n\xff\n".len();
        let without_two = [&PATCH[..one], &b"diff --git a/three b/three\nend"[..]].concat();
        for size in 1..=PATCH.len() {
            for (limit, kept, left_out) in [
                (PATCH.len(), PATCH, &[][..]),
                (one + 30, &without_two, &["a/two b/zwei"]),
                (one - 1, b"", &["one", "a/two b/zwei", "three"]),
                (5, b"", &["one", "a/two b/zwei", "three"]),
            ] {
                let patch = collected(limit, size);
                assert_eq!(patch.bytes, kept, "within {limit}, in pieces of {size}");
                assert_eq!(
                    (patch.left_out_count, patch.left_out),
                    (left_out.len(), left_out.iter().map(|name| (*name).to_owned()).collect())
                );
            }
        }
    }
}
