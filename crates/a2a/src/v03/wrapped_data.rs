//! v0.3 data parts hold objects only. Other values travel as `{"value": …}` under a flag that the SDKs share.

use serde::Serialize;

use crate::{Json, Metadata, Part, PartContent};

/// The flag, in the part's metadata.
const FLAG: &str = "data_part_compat";

/// What a non-object value is written as.
#[derive(Serialize)]
pub(crate) struct Wrapped<'a> {
    value: &'a Json,
}

/// The wrapped value and the metadata with the flag, if the value cannot go as it is.
pub(crate) fn wrap<'a>(value: &'a Json, metadata: Option<&Metadata>) -> Option<(Wrapped<'a>, Metadata)> {
    if value.is_object() {
        return None;
    }
    let mut flagged = metadata.cloned().unwrap_or_default();
    flagged.insert(FLAG, Json::from_serialize(&true).ok()?);
    Some((Wrapped { value }, flagged))
}

/// Undoes [`wrap`] on a data part that carries the flag.
pub(crate) fn unwrap(part: &mut Part) {
    let PartContent::Data(value) = &part.content else {
        return;
    };
    let Some(metadata) = &mut part.metadata else { return };
    if metadata.get(FLAG).map(Json::as_str) != Some("true") {
        return;
    }
    let Some(inner) = value.read::<Metadata>().ok().and_then(|mut object| object.remove("value")) else {
        return;
    };
    metadata.remove(FLAG);
    if metadata.is_empty() {
        part.metadata = None;
    }
    part.content = PartContent::Data(inner);
}
