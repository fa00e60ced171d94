//! A v0.3 part says its kind, and one of a kind that does not exist is refused even if it has a text. v1.0 has no such
//! member and ignores it like any other, so this is a second look at v0.3 requests and no business of the model.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;

const KINDS: [&str; 3] = ["text", "file", "data"];

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, alias = "request", alias = "msg")]
    message: Spoken<'a>,
}

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow, alias = "content")]
    parts: Vec<Named<'a>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    /// What peers from before `kind` write.
    #[serde(borrow, rename = "type")]
    old_kind: Option<&'a RawValue>,
}

/// Refuses a message with a part of an unknown kind. Whatever else is wrong with it is found by who reads it in full.
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

/// An empty one is how some peers write that they say nothing.
fn is_known(kind: &str) -> bool {
    serde_json::from_str::<String>(kind).is_ok_and(|kind| kind.is_empty() || KINDS.contains(&kind.as_str()))
}
