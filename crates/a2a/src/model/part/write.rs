//! The v1.0 JSON of a part.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Part, PartContent};
use crate::write_json::optional;

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.content {
            PartContent::Text(text) => map.serialize_entry("text", text)?,
            PartContent::Raw(bytes) => map.serialize_entry("raw", &STANDARD.encode(bytes))?,
            PartContent::Url(url) => map.serialize_entry("url", url)?,
            PartContent::Data(value) => map.serialize_entry("data", value)?,
        }
        optional(&mut map, "metadata", self.metadata.as_ref())?;
        optional(&mut map, "filename", self.filename.as_ref())?;
        optional(&mut map, "mediaType", self.media_type.as_ref())?;
        map.end()
    }
}
