//! The two envelopes of v0.3 data parts. Their data must be an object, so any other value travels as `{"value": …}`
//! under a flag that the SDKs share. REST also writes `{"data":{"data":{…}}}`: the outer object is the part's own
//! message type.

use serde::Serialize;

use crate::{Json, Metadata, Part, PartContent, VisitParts};

/// The flag, in the part's metadata.
const FLAG: &str = "data_part_compat";

/// What a non-object value is written as.
#[derive(Serialize)]
pub(super) struct WrappedValue<'a> {
    value: &'a Json,
}

/// The wrapped value and the metadata with the flag; none for an object, which is written as it is.
pub(super) fn wrap<'a>(value: &'a Json, metadata: Option<&Metadata>) -> Option<(WrappedValue<'a>, Metadata)> {
    if value.is_object() {
        return None;
    }
    let mut flagged = metadata.cloned().unwrap_or_default();
    flagged.insert(FLAG, Json::from_serialize(&true).ok()?);
    Some((WrappedValue { value }, flagged))
}

/// Undoes [`wrap`] on a data part that carries the flag.
pub(crate) fn unwrap(part: &mut Part) {
    let PartContent::Data(value) = &part.content else { return };
    let Some(metadata) = &mut part.metadata else { return };
    if metadata.get(FLAG).map(Json::as_str) != Some("true") {
        return;
    }
    let Some(inner) = value.read::<Metadata>().ok().and_then(|mut object| object.remove("value")) else { return };
    metadata.remove(FLAG);
    if metadata.is_empty() {
        part.metadata = None;
    }
    part.content = PartContent::Data(inner);
}

/// Undoes both envelopes in all data parts of a value that was read from v0.3 REST.
pub(crate) fn unwrap_nested(of: &mut impl VisitParts) {
    of.for_each_part(&mut |part| {
        let PartContent::Data(value) = &part.content else { return };
        if let Some(inner) = nested_data(value) {
            part.content = PartContent::Data(inner);
        }
        unwrap(part);
    });
}

/// The inner object, if `data` is the only member: peers that leave the outer object out are understood too.
fn nested_data(value: &Json) -> Option<Json> {
    let mut object: Metadata = value.read().ok()?;
    if object.len() != 1 {
        return None;
    }
    object.remove("data").filter(Json::is_object)
}
