//! The stored form of an event row: the lines of its events without the ids of their task.
//!
//! Every event that is sent names its task and context, and so does each message in it. The task's row has both, so the
//! stored form has a mark in the place of each, which takes along what an update always begins with, and the readers of
//! event rows splice the text in again. A mark begins with a byte that JSON cannot contain. All of this is done on the
//! bytes alone, so what is read is what was appended, whatever it is. A row that was written before there was a stored form
//! contains no mark and is its own stored form.

use memchr::{memchr, memchr_iter, memmem};

/// Begins a mark; a second one stands for the byte itself.
const MARK: u8 = 1;
/// The second byte of the first fragment's mark; those of the others follow it. On disk, so they may be added to, never
/// changed.
const FIRST: u8 = b'0';
/// What every fragment contains, and at which of its bytes.
const ANCHOR: &[u8] = b"Id\":\"";
const ANCHORED_AT: [usize; 4] =
    [b"{\"artifactUpdate\":{\"task".len(), b"{\"statusUpdate\":{\"task".len(), b"\"task".len(), b"\"context".len()];

/// The fragments that are left out of the lines of one task, longer ones first.
pub(crate) struct Fragments {
    text: Vec<u8>,
    ends: [usize; 4],
}

impl Fragments {
    pub(crate) fn new(id: &str, context: &str) -> Self {
        let mut text = Vec::with_capacity(3 * (id.len() + context.len()) + 192);
        let mut ends = [0; 4];
        let fragments: [&[&str]; 4] = [
            &[r#"{"artifactUpdate":{"taskId":""#, id, r#"","contextId":""#, context, r#"","artifact":{"artifactId":""#],
            &[
                r#"{"statusUpdate":{"taskId":""#,
                id,
                r#"","contextId":""#,
                context,
                r#"","status":{"state":"TASK_STATE_"#,
            ],
            &[r#""taskId":""#, id, "\""],
            &[r#""contextId":""#, context, "\""],
        ];
        for (pieces, end) in fragments.into_iter().zip(&mut ends) {
            for piece in pieces {
                text.extend_from_slice(piece.as_bytes());
            }
            *end = text.len();
        }
        Self { text, ends }
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..*self.ends.get(index)?)
    }

    /// The fragment that has its anchor at a position of lines, and where it begins.
    fn at(&self, lines: &[u8], anchor: usize) -> Option<(u8, usize, &[u8])> {
        (FIRST..).zip(ANCHORED_AT).enumerate().find_map(|(index, (mark, anchored_at))| {
            let start = anchor.checked_sub(anchored_at)?;
            let fragment = self.get(index)?;
            lines[start..].starts_with(fragment).then_some((mark, start, fragment))
        })
    }

    /// The stored form of lines.
    pub(crate) fn leave_out(&self, lines: &[u8]) -> Vec<u8> {
        if memchr(MARK, lines).is_some() {
            return escape(lines);
        }
        let mut stored = Vec::with_capacity(lines.len());
        let mut copied = 0;
        for anchor in memmem::find_iter(lines, ANCHOR) {
            // An anchor in what is left out is not looked at, nor is a fragment that begins in it.
            if anchor >= copied
                && let Some((mark, start, fragment)) = self.at(lines, anchor)
                && start >= copied
            {
                stored.extend_from_slice(&lines[copied..start]);
                stored.extend([MARK, mark]);
                copied = start + fragment.len();
            }
        }
        stored.extend_from_slice(&lines[copied..]);
        stored
    }

    /// The lines of a stored form.
    pub(crate) fn splice_in(&self, stored: Vec<u8>) -> Vec<u8> {
        let marks = memchr_iter(MARK, &stored).count();
        if marks == 0 {
            return stored;
        }
        let mut lines = Vec::with_capacity(stored.len() + marks * self.ends[0]);
        let mut copied = 0;
        while let Some(found) = memchr(MARK, &stored[copied..]) {
            let mark = copied + found;
            lines.extend_from_slice(&stored[copied..mark]);
            copied = (mark + 2).min(stored.len());
            match stored.get(mark + 1) {
                Some(&MARK) => lines.push(MARK),
                // A mark that is not known is damage, which the decoder of the line reports.
                Some(kind) => lines.extend_from_slice(
                    kind.checked_sub(FIRST).and_then(|index| self.get(index.into())).unwrap_or_default(),
                ),
                None => {}
            }
        }
        lines.extend_from_slice(&stored[copied..]);
        lines
    }
}

/// Lines that contain the byte of a mark, which those of the kernel never do.
fn escape(lines: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(lines.len() + 8);
    for byte in lines {
        if *byte == MARK {
            stored.push(MARK);
        }
        stored.push(*byte);
    }
    stored
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces that lines are made of: members of this task and of others, halves of them, and marks.
    fn piece(id: &str, context: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
        let pieces = [
            format!("\"taskId\":\"{id}\""),
            format!("\"contextId\":\"{context}\""),
            format!("\"taskId\":\"{context}\""),
            format!("\"contextId\":\"{id}"),
            format!(
                "{{\"artifactUpdate\":{{\"taskId\":\"{id}\",\"contextId\":\"{context}\",\"artifact\":{{\"artifactId\":\""
            ),
            format!(
                "{{\"statusUpdate\":{{\"taskId\":\"{id}\",\"contextId\":\"{context}\",\"status\":{{\"state\":\"TASK_STATE_"
            ),
            format!("{{\"statusUpdate\":{{\"taskId\":\"{id}\",\"contextId\":\"{context}\",\"status\":{{}}"),
            "\"taskId\":\"".to_owned(),
            "\"contex".to_owned(),
            "tId\":\"".to_owned(),
            "Id\":\"".to_owned(),
            id.to_owned(),
            ",".to_owned(),
            "\n".to_owned(),
        ];
        let pieces = pieces.map(String::into_bytes).to_vec();
        prop_oneof![
            4 => proptest::sample::select(pieces),
            1 => proptest::collection::vec(any::<u8>(), 0..4),
            1 => proptest::collection::vec(0u8..4, 0..3),
        ]
    }

    fn lines() -> impl Strategy<Value = (String, String, Vec<u8>)> {
        let ids = prop_oneof![
            Just("0190".to_owned()),
            Just("taskId\":\"".to_owned()),
            Just("\"taskId\":\"a\",\"contextId\":\"b".to_owned()),
            Just(String::new()),
            "[a-z\":\\\\]{0,6}",
        ];
        (ids.clone(), ids).prop_flat_map(|(id, context)| {
            let pieces = proptest::collection::vec(piece(&id, &context), 0..24);
            (Just(id), Just(context), pieces.prop_map(|pieces| pieces.concat()))
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_appended((id, context, lines) in lines()) {
            let fragments = Fragments::new(&id, &context);
            prop_assert_eq!(fragments.splice_in(fragments.leave_out(&lines)), lines);
        }

        #[test]
        fn a_row_from_before_there_was_a_stored_form_is_read_as_it_is((id, context, lines) in lines()) {
            let lines: Vec<u8> = lines.into_iter().filter(|byte| *byte != MARK).collect();
            prop_assert_eq!(Fragments::new(&id, &context).splice_in(lines.clone()), lines);
        }
    }

    #[test]
    fn each_id_costs_two_bytes() {
        let fragments = Fragments::new("0190-task", "0190-context");
        let line = br#"{"statusUpdate":{"taskId":"0190-task","contextId":"0190-context","status":{"state":"TASK_STATE_WORKING","message":{"contextId":"0190-context","taskId":"0190-task"}}}}"#;
        let stored = fragments.leave_out(line);
        assert_eq!(stored, b"\x011WORKING\",\"message\":{\x013,\x012}}}}");
        // Cut off or changed by damage, it is still read as far as it goes.
        assert_eq!(fragments.splice_in(b"{\x01".to_vec()), b"{");
        assert_eq!(fragments.splice_in(b"{\x019}\x01\x01\x00".to_vec()), b"{}\x01\x00");
    }
}
