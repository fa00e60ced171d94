//! Texts from outside in lines of the journal and in tasks. The store refuses a line that is too long together with all that
//! is written beside it, so a text whose length others choose is shortened before it becomes a part of one.

use std::borrow::Cow;

/// The longest of such a text, in bytes: a line may have several.
const LONGEST: usize = 1_024;
/// The same of what a remote agent says of a failure, which people read in full where they can.
const LONGEST_ERROR: usize = 2_048;

/// The beginning of a text, as a line repeats it.
pub(crate) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// What a remote agent says of a failure, as it is told and logged.
pub(crate) fn shortened_error(text: &str) -> Cow<'_, str> {
    match text.len() > LONGEST_ERROR {
        true => Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(LONGEST_ERROR)])),
        false => Cow::Borrowed(text),
    }
}
