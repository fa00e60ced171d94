//! Parts in v0.3: three kinds, with files in an object of their own. Media type and name of text and data are lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{V03, kind_entry, part_data};
use crate::write_json::optional;
use crate::{Dialect, Part, PartContent};

impl V03 for Part {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        let is_rest = dialect == Dialect::V03Rest;
        match &self.content {
            PartContent::Text(text) => {
                kind_entry(map, dialect, "text")?;
                map.serialize_entry("text", text)?;
            }
            PartContent::Raw(bytes) => {
                kind_entry(map, dialect, "file")?;
                let member = if is_rest { "fileWithBytes" } else { "bytes" };
                map.serialize_entry("file", &File { member, content: &STANDARD.encode(bytes), part: self })?;
            }
            PartContent::Url(url) => {
                kind_entry(map, dialect, "file")?;
                let member = if is_rest { "fileWithUri" } else { "uri" };
                map.serialize_entry("file", &File { member, content: url, part: self })?;
            }
            PartContent::Data(value) => {
                kind_entry(map, dialect, "data")?;
                if let Some((wrapped, flagged)) = part_data::wrap(value, self.metadata.as_ref()) {
                    data_entry(map, is_rest, &wrapped)?;
                    return map.serialize_entry("metadata", &flagged);
                }
                data_entry(map, is_rest, value)?;
            }
        }
        optional(map, "metadata", self.metadata.as_ref())
    }
}

fn data_entry<M: SerializeMap, T: Serialize>(map: &mut M, is_rest: bool, data: &T) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    struct Nested<'a, T> {
        data: &'a T,
    }
    if is_rest { map.serialize_entry("data", &Nested { data }) } else { map.serialize_entry("data", data) }
}

struct File<'a> {
    member: &'static str,
    content: &'a str,
    part: &'a Part,
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.member, self.content)?;
        optional(&mut map, "mimeType", self.part.media_type.as_ref())?;
        optional(&mut map, "name", self.part.filename.as_ref())?;
        map.end()
    }
}
