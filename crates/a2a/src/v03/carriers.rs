//! The carriers of extension payloads in v0.3: its readers look for data parts, so what an agent says in metadata becomes
//! one in the view. Nothing is added where the agent has written the part itself.

use std::borrow::Cow;

use crate::extension::older_carriers;
use crate::{Metadata, Part};

/// The parts of an artifact or of an agent's message as v0.3 readers want them.
pub(super) fn with_carriers<'a>(parts: &'a [Part], metadata: Option<&Metadata>) -> Cow<'a, [Part]> {
    let Some(metadata) = metadata else { return Cow::Borrowed(parts) };
    let added = older_carriers(metadata, parts);
    match added.is_empty() {
        true => Cow::Borrowed(parts),
        false => Cow::Owned(parts.iter().cloned().chain(added).collect()),
    }
}
