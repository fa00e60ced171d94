//! Truncates what errors quote from a request: a request of megabytes must not get a response of megabytes.

use std::borrow::Cow;

use switchboard_a2a::Error;

/// Characters of a name: more than any of ours has, and enough to recognise it.
const NAME: usize = 200;

/// Bytes of any one text in an error: enough for the names of all agents, on all but the largest servers.
const TEXT: usize = 8 << 10;

/// A name from a request, such as a task's.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(NAME) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The error with its long texts cut in the middle, since the advice often stands at the end.
pub(super) fn within(error: &Error) -> Cow<'_, Error> {
    let described = error.violations.iter().flat_map(|violation| [&violation.field, &violation.description]);
    let mut texts = error.metadata.iter().map(|(_, value)| value).chain(described).chain([&error.message]);
    if texts.all(|text| text.len() <= TEXT) {
        return Cow::Borrowed(error);
    }
    let mut short = error.clone();
    cut(&mut short.message);
    for (_, value) in &mut short.metadata {
        cut(value);
    }
    for violation in &mut short.violations {
        cut(&mut violation.field);
        cut(&mut violation.description);
    }
    Cow::Owned(short)
}

fn cut(text: &mut String) {
    if text.len() > TEXT {
        let (head, tail) = (text.floor_char_boundary(TEXT / 2), text.ceil_char_boundary(text.len() - TEXT / 2));
        text.replace_range(head..tail, " … ");
    }
}
