//! What a request may hold, beyond its size in bytes.

use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_a2a::{Error, Message};

use crate::Options;

/// Refuses JSON that is nested deeper than any real message.
pub(super) fn depth(options: &Options, field: &str, json: &[u8]) -> Result<(), Error> {
    if !depth_exceeds(json, options.max_depth) {
        return Ok(());
    }
    Err(Error::invalid_field(field, format!("is nested deeper than the limit of {} levels", options.max_depth)))
}

pub(super) fn parts(options: &Options, message: &Message) -> Result<(), Error> {
    let (count, limit) = (message.parts.len(), options.max_parts);
    if count <= limit {
        return Ok(());
    }
    Err(Error::invalid_field("message.parts", format!("{count} parts are over the limit of {limit}")))
}
