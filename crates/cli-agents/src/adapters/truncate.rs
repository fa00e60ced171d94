//! Truncation of long texts, by characters rather than bytes.

use std::borrow::Cow;

/// The first `most` characters of a text, the last of them an ellipsis if there are more. Never splits a character.
#[must_use]
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let mut beginning: String = text.chars().take(most.saturating_sub(1)).collect();
    beginning.push('…');
    Cow::Owned(beginning)
}
