//! How a program that only speaks text asks for approval.

use regex_lite::{Regex, RegexBuilder};

use crate::adapters::cut;
use crate::adapters::field_error::FieldError;

/// Enough for any prompt's pattern; keeps a pattern from taking memory by the megabyte.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// What questions of a plain program look like, and what it takes for an answer.
#[derive(Clone, Debug)]
pub struct ApprovalPattern {
    pattern: Regex,
    pub(crate) yes: String,
    pub(crate) no: String,
}

impl ApprovalPattern {
    /// The default line for yes.
    pub const YES: &str = "y";
    /// The default line for no.
    pub const NO: &str = "n";

    /// A regular expression that is looked for in each line of text, ended or not, and the lines that are written to
    /// allow and to deny.
    pub fn new(pattern: &str, yes: &str, no: &str) -> Result<Self, FieldError> {
        let regex = RegexBuilder::new(pattern).size_limit(MOST_PATTERN_BYTES).build().map_err(|error| {
            let wrong = format!("\"{}\" is no regular expression ({error})", cut(pattern, 100));
            FieldError::new("pattern", wrong, r"write one such as '\[y/N\] *$', in single quotes")
        })?;
        if regex.is_match("") {
            let wrong = "fits an empty line, so it would fit every line";
            return Err(FieldError::new("pattern", wrong, r"write what only a question holds, such as '\[y/N\]'"));
        }
        for (field, answer) in [("yes", yes), ("no", no)] {
            if answer.contains(['\n', '\r', '\0']) {
                let wrong = "holds a line end or a zero character";
                return Err(FieldError::new(field, wrong, "write one line, such as y"));
            }
        }
        Ok(Self { pattern: regex, yes: yes.to_owned(), no: no.to_owned() })
    }

    pub(crate) fn fits(&self, line: &str) -> bool {
        self.pattern.is_match(line)
    }
}
