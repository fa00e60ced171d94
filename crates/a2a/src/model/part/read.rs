//! Reads a part in any shape peers send: the bare v1.0 members, the v0.3 `kind` and `file` forms, and the
//! `$case` objects that one SDK prints. A plain v1.0 part costs one pass and no intermediate tree.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Part, PartContent};
use crate::lenient::non_empty;
use crate::v03::part_data;
use crate::{Json, Metadata};

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Text,
    Raw,
    Url,
    Data,
    Metadata,
    #[serde(alias = "name")]
    Filename,
    #[serde(alias = "media_type", alias = "mimeType", alias = "mime_type")]
    MediaType,
    #[serde(alias = "type")]
    Kind,
    File,
    Content,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a part object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Part, A::Error> {
        let mut found: Option<PartContent> = None;
        let mut kind: Option<Json> = None;
        let mut metadata: Option<Metadata> = None;
        let mut filename: Option<String> = None;
        let mut media_type: Option<String> = None;
        while let Some(key) = access.next_key::<Key>()? {
            let content = match key {
                Key::Text => access.next_value::<Option<String>>()?.map(PartContent::Text),
                Key::Raw => {
                    let raw: Option<String> = access.next_value()?;
                    let bytes = raw.map(|text| decode_base64(&text)).transpose().map_err(A::Error::custom)?;
                    bytes.map(PartContent::Raw)
                }
                Key::Url => access.next_value::<Option<String>>()?.map(PartContent::Url),
                Key::Data => Some(PartContent::Data(access.next_value()?)),
                Key::File => access.next_value::<Option<File>>()?.map(|file| {
                    filename = file.name.or(filename.take());
                    media_type = file.media_type.or(media_type.take());
                    file.content
                }),
                Key::Content => {
                    let case: Option<Case> = access.next_value()?;
                    case.map(Case::into_content).transpose().map_err(A::Error::custom)?
                }
                other => {
                    match other {
                        Key::Metadata => metadata = access.next_value()?,
                        Key::Filename => filename = none_if_empty(access.next_value()?).or(filename),
                        Key::MediaType => media_type = none_if_empty(access.next_value()?).or(media_type),
                        Key::Kind => kind = Some(access.next_value()?),
                        _ => drop(access.next_value::<IgnoredAny>()?),
                    }
                    None
                }
            };
            set_content::<A::Error>(&mut found, content)?;
        }
        let content = found.ok_or_else(|| A::Error::custom("a part needs one of text, raw, url or data"))?;
        let mut part = Part { content, metadata, filename, media_type };
        if kind.is_some_and(|kind| kind.as_str() == "\"data\"") {
            part_data::unwrap(&mut part);
        }
        Ok(part)
    }
}

/// Keeps the one content of a part. Peers that print defaults send empty ones beside it: those give way.
fn set_content<E: Error>(found: &mut Option<PartContent>, candidate: Option<PartContent>) -> Result<(), E> {
    let Some(candidate) = candidate else { return Ok(()) };
    match found {
        Some(present) if is_empty(&candidate) && !is_empty(present) => {}
        Some(present) if !is_empty(present) => {
            return Err(E::custom("a part needs exactly one of text, raw, url or data, not several"));
        }
        _ => *found = Some(candidate),
    }
    Ok(())
}

fn is_empty(content: &PartContent) -> bool {
    match content {
        PartContent::Text(text) => text.is_empty(),
        PartContent::Raw(bytes) => bytes.is_empty(),
        PartContent::Url(url) => url.is_empty(),
        PartContent::Data(value) => value.as_str() == "null",
    }
}

fn none_if_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The v0.3 file object, in the spellings of JSON-RPC, REST and the printed samples.
struct File {
    content: PartContent,
    name: Option<String>,
    media_type: Option<String>,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default, alias = "fileWithBytes", alias = "file_with_bytes", alias = "data", alias = "raw")]
            bytes: Option<String>,
            #[serde(default, alias = "fileWithUri", alias = "file_with_uri", alias = "url")]
            uri: Option<String>,
            #[serde(default, alias = "filename", deserialize_with = "non_empty")]
            name: Option<String>,
            #[serde(default, rename = "mimeType", alias = "mime_type", alias = "mediaType", alias = "media_type")]
            #[serde(deserialize_with = "non_empty")]
            mime_type: Option<String>,
        }
        let wire: Wire = crate::lenient::object(deserializer)?;
        let content = match (wire.bytes, wire.uri) {
            (Some(bytes), Some(uri)) if !bytes.is_empty() && !uri.is_empty() => {
                return Err(D::Error::custom("a file needs either bytes or uri, not both"));
            }
            // Some peers write the member they do not mean as an empty text.
            (Some(bytes), Some(uri)) if bytes.is_empty() && !uri.is_empty() => PartContent::Url(uri),
            (None, Some(uri)) => PartContent::Url(uri),
            (Some(bytes), _) => PartContent::Raw(decode_base64(&bytes).map_err(D::Error::custom)?),
            (None, None) => return Err(D::Error::custom("a file needs bytes or uri")),
        };
        Ok(Self { content, name: wire.name, media_type: wire.mime_type })
    }
}

/// `{"$case":"text","value":"…"}`: a union as the JavaScript SDK holds it in memory.
#[derive(Deserialize)]
struct Case {
    #[serde(rename = "$case")]
    case: String,
    value: Json,
}

impl Case {
    fn into_content(self) -> Result<PartContent, String> {
        let text =
            || self.value.as_text().ok_or_else(|| format!("value of part content {:?} must be a string", self.case));
        match self.case.as_str() {
            "text" => Ok(PartContent::Text(text()?)),
            "url" => Ok(PartContent::Url(text()?)),
            "raw" => Ok(PartContent::Raw(decode_base64(&text()?)?)),
            "data" => Ok(PartContent::Data(self.value)),
            unknown => Err(format!("unknown part content {unknown:?}: use text, raw, url or data")),
        }
    }
}

/// Base64 in either alphabet, padded or not.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    let url_safe = text.bytes().any(|byte| matches!(byte, b'-' | b'_'));
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    engine.decode(text).map_err(|error| format!("not base64: {error}"))
}
