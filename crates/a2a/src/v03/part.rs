//! Parts in v0.3: three kinds, with files in an object of their own. Media type and name of text and data are lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Binding, wrapped_data};
use crate::{Part, PartContent};

/// A part to be written.
pub(super) struct PartView<'a> {
    binding: Binding,
    part: &'a Part,
}

/// Views of all parts.
pub(super) fn parts(binding: Binding, parts: &[Part]) -> Vec<PartView<'_>> {
    parts.iter().map(|part| PartView { binding, part }).collect()
}

impl Serialize for PartView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Part { content, metadata, filename, media_type } = self.part;
        let mut metadata = metadata.clone();
        let mut map = serializer.serialize_map(None)?;
        let is_rpc = self.binding == Binding::Rpc;
        let file =
            |bytes, uri| File { bytes, uri, media_type: media_type.as_deref(), name: filename.as_deref(), is_rpc };
        match content {
            PartContent::Text(text) => {
                self.kind(&mut map, "text")?;
                map.serialize_entry("text", text)?;
            }
            PartContent::Raw(bytes) => {
                self.kind(&mut map, "file")?;
                map.serialize_entry("file", &file(Some(STANDARD.encode(bytes)), None))?;
            }
            PartContent::Url(url) => {
                self.kind(&mut map, "file")?;
                map.serialize_entry("file", &file(None, Some(url)))?;
            }
            PartContent::Data(value) => {
                self.kind(&mut map, "data")?;
                match wrapped_data::wrap(value, metadata.as_ref()) {
                    None => self.data(&mut map, value)?,
                    Some((wrapped, flagged)) => {
                        self.data(&mut map, &wrapped)?;
                        metadata = Some(flagged);
                    }
                }
            }
        }
        if let Some(metadata) = &metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.end()
    }
}

impl PartView<'_> {
    fn kind<M: SerializeMap>(&self, map: &mut M, kind: &'static str) -> Result<(), M::Error> {
        match self.binding.kind(kind) {
            Some(kind) => map.serialize_entry("kind", kind),
            None => Ok(()),
        }
    }

    fn data<M: SerializeMap, T: Serialize>(&self, map: &mut M, value: &T) -> Result<(), M::Error> {
        #[derive(Serialize)]
        struct Nested<'a, T> {
            data: &'a T,
        }
        match self.binding {
            Binding::Rpc => map.serialize_entry("data", value),
            Binding::Rest => map.serialize_entry("data", &Nested { data: value }),
        }
    }
}

struct File<'a> {
    bytes: Option<String>,
    uri: Option<&'a String>,
    media_type: Option<&'a str>,
    name: Option<&'a str>,
    is_rpc: bool,
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(bytes) = &self.bytes {
            map.serialize_entry(if self.is_rpc { "bytes" } else { "fileWithBytes" }, bytes)?;
        }
        if let Some(uri) = self.uri {
            map.serialize_entry(if self.is_rpc { "uri" } else { "fileWithUri" }, uri)?;
        }
        if let Some(media_type) = self.media_type {
            map.serialize_entry("mimeType", media_type)?;
        }
        if let Some(name) = self.name {
            map.serialize_entry("name", name)?;
        }
        map.end()
    }
}
