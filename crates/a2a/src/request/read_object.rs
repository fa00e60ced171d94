//! Reads a JSON object into a type; an error names the path of the field.

use serde::de::DeserializeOwned;

use crate::Error;
use crate::lenient;

/// Reads once at full speed; only a failure is read a second time, to learn where it is.
pub(super) fn read_object<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    match lenient::object(&mut deserializer) {
        Ok(value) => Ok(value),
        Err(error) => Err(locate::<T>(json).unwrap_or_else(|| Error::invalid_field("", error.to_string()))),
    }
}

fn locate<T: DeserializeOwned>(json: &str) -> Option<Error> {
    let mut track = serde_path_to_error::Track::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let error = lenient::object::<_, T>(tracked).err()?;
    let path = track.path();
    let mut field = if path.iter().len() == 0 { String::new() } else { path.to_string() };
    let text = error.to_string();
    // The path replaces the position in the text.
    let mut description = text.rsplit_once(" at line ").map_or(text.as_str(), |(before, _)| before);
    if let Some(missing) = description.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        if !field.is_empty() {
            field.push('.');
        }
        field.push_str(missing);
        description = "is missing";
    }
    Some(Error::invalid_field(field, description))
}
