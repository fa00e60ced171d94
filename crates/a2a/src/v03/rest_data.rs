//! v0.3 REST writes a data part as `{"data":{"data":{…}}}`; the outer object is the part's own message type.

use super::wrapped_data;
use crate::{HasParts, Json, Metadata, Part, PartContent};

/// Undoes the nesting in everything that holds parts.
pub(crate) fn unwrap_nested(of: &mut impl HasParts) {
    of.for_each_part(&mut part);
}

fn part(part: &mut Part) {
    let PartContent::Data(value) = &part.content else {
        return;
    };
    if let Some(inner) = nested_data(value) {
        part.content = PartContent::Data(inner);
    }
    wrapped_data::unwrap(part);
}

/// The inner object, if `data` is the only member: callers who wrote the nesting once are understood too.
fn nested_data(value: &Json) -> Option<Json> {
    if !value.is_object() {
        return None;
    }
    let mut object: Metadata = value.read().ok()?;
    if object.len() != 1 {
        return None;
    }
    object.remove("data").filter(Json::is_object)
}
