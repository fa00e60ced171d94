//! Validates the `kind` of v0.3 parts: an unknown kind is refused even if the part has a text. v1.0 has no such member
//! and ignores it like any other, so this is a second pass over v0.3 requests and not part of the model's reader.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;

const KINDS: [&str; 3] = ["text", "file", "data"];

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, alias = "request", alias = "msg")]
    message: MessageParts<'a>,
}

#[derive(Deserialize)]
struct MessageParts<'a> {
    #[serde(borrow, alias = "content")]
    parts: Vec<PartKind<'a>>,
}

#[derive(Deserialize)]
struct PartKind<'a> {
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    /// The name of the member before v0.3.
    #[serde(borrow, rename = "type")]
    old_kind: Option<&'a RawValue>,
}

/// Refuses a message with a part of an unknown kind. Every other fault is left to the reader of the whole request.
pub(crate) fn check(params: &str) -> Result<(), Error> {
    let Ok(params) = serde_json::from_str::<Params<'_>>(params) else { return Ok(()) };
    for (index, part) in params.message.parts.iter().enumerate() {
        let mut named = [part.kind, part.old_kind].into_iter().flatten().map(RawValue::get);
        if let Some(unknown) = named.find(|kind| !is_known(kind)) {
            let shown: String = unknown.chars().take(80).collect();
            let description = format!("{shown} is unknown: use text, file or data");
            return Err(Error::invalid_field(format!("message.parts[{index}].kind"), description));
        }
    }
    Ok(())
}

/// Some peers write an empty text for an absent kind.
fn is_known(kind: &str) -> bool {
    serde_json::from_str::<String>(kind).is_ok_and(|kind| kind.is_empty() || KINDS.contains(&kind.as_str()))
}
