//! Media types: whether an agent can read what it is sent and write what the caller can read.

use switchboard_a2a::Message;

use crate::error::Error;
use crate::manifest::Manifest;

/// Refuses a message in a type the agent does not read, or a caller that reads none of the agent's types.
pub(crate) fn check(manifest: &Manifest, message: &Message, accepted: &[String]) -> Result<(), Error> {
    for part in &message.parts {
        let Some(media_type) = &part.media_type else { continue };
        if !manifest.input_modes.iter().any(|mode| matches(mode, media_type)) {
            let known = manifest.input_modes.join(", ");
            return Err(Error::ContentType(format!("{} does not read {media_type}; it reads {known}", manifest.name)));
        }
    }
    let writes =
        |accepted: &String| manifest.output_modes.iter().any(|mode| matches(accepted, mode) || matches(mode, accepted));
    if !accepted.is_empty() && !accepted.iter().any(writes) {
        let known = manifest.output_modes.join(", ");
        let asked = accepted.join(", ");
        return Err(Error::ContentType(format!("{} does not write {asked}; it writes {known}", manifest.name)));
    }
    Ok(())
}

/// Whether a pattern (`text/plain`, `text/*`, `*/*`) covers a media type; parameters and case do not count.
fn matches(pattern: &str, media_type: &str) -> bool {
    let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (pattern, media_type) = (essence(pattern), essence(media_type));
    if pattern == "*/*" || pattern == "*" || pattern == media_type || pattern == "text" && media_type == "text/plain" {
        return true;
    }
    match (pattern.split_once('/'), media_type.split_once('/')) {
        (Some((kind, "*")), Some((other, _))) => kind == other,
        _ => false,
    }
}
