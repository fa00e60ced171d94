//! Files over v0.3 REST, where one SDK encodes their bytes twice.
//!
//! The wire format is a protocol buffer's `bytes` member: base64, once. Python's SDK (0.3.x, and 1.x where it speaks 0.3)
//! keeps a file as base64 text and stores that text in the `bytes` member, so that its JSON holds base64 of base64, and it
//! expects the same of its peers. This adds and removes that second layer in the model, so that neither the readers nor the
//! writers of the dialect know of it.
//!
//! The bytes alone prove nothing: `test` is a text of four letters and valid base64. So the server combines this with the
//! caller's `User-Agent`, and the client with the agent's `Server` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::encode::encode_stream;
use crate::model::decode_base64;
use crate::{Dialect, Error, Message, PartContent, StreamResponse, VisitParts};

/// How often the files of v0.3 REST are encoded as base64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestFiles {
    /// Twice where the peer seems to be Python's SDK, once elsewhere.
    #[default]
    Auto,
    /// Once, as the format says.
    Once,
    /// Twice, as Python's SDK does.
    Twice,
}

/// The encoding that the files of a message suggest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedEncoding {
    /// There is no file with bytes.
    NoFiles,
    /// At least one file is not base64 within base64.
    Once,
    /// Every file is base64 within base64.
    Twice,
}

/// Encodes every file once more, for a peer that expects base64 of base64.
pub fn add_layer(of: &mut impl VisitParts) {
    of.for_each_part(&mut |part| {
        if let PartContent::Raw(bytes) = &mut part.content {
            *bytes = STANDARD.encode(&bytes).into_bytes();
        }
    });
}

/// Decodes every file once more that is base64 within base64; the others stay as they are.
pub fn remove_layer(of: &mut impl VisitParts) {
    of.for_each_part(&mut |part| {
        if let PartContent::Raw(bytes) = &mut part.content
            && let Some(inner) = inner(bytes)
        {
            *bytes = inner;
        }
    });
}

/// Decodes the files of a message once more if all of them are base64 within base64: a sender that encodes one file once
/// encodes all of them once.
pub fn remove_layer_if_all(message: &mut Message) -> DetectedEncoding {
    let files = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Raw(bytes) if !bytes.is_empty() => Some(inner(bytes)),
        _ => None,
    });
    let Some(decoded) = files.collect::<Option<Vec<_>>>() else { return DetectedEncoding::Once };
    if decoded.is_empty() {
        return DetectedEncoding::NoFiles;
    }
    let mut decoded = decoded.into_iter();
    for part in &mut message.parts {
        if let PartContent::Raw(bytes) = &mut part.content
            && !bytes.is_empty()
        {
            *bytes = decoded.next().unwrap_or_default();
        }
    }
    DetectedEncoding::Twice
}

/// Decodes the files of a message once more.
///
/// # Errors
/// When a file is not base64 within base64, with its path in the request.
pub fn remove_required_layer(message: &mut Message) -> Result<(), Error> {
    for (index, part) in message.parts.iter_mut().enumerate() {
        let PartContent::Raw(bytes) = &mut part.content else { continue };
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string());
        *bytes = text.and_then(decode_base64).map_err(|problem| {
            let field = format!("message.content[{index}].file.fileWithBytes");
            let description = format!(
                "is base64 once ({problem}): this agent is set to v03.restFiles: twice, so send base64 of base64"
            );
            Error::invalid_field(field, description)
        })?;
    }
    Ok(())
}

/// A stored v1.0 frame for a v0.3 REST reader that expects the second layer. None if it has no file, so that the frame is the
/// same for all readers of the dialect.
///
/// # Errors
/// When the stored bytes are no frame.
pub fn frame_from_v1(v1_frame: &[u8], is_final: bool) -> Result<Option<Vec<u8>>, serde_json::Error> {
    // Within a text its quotes would be escaped, so this is a member.
    const MEMBER: &[u8] = br#""raw":"#;
    if !v1_frame.windows(MEMBER.len()).any(|window| window == MEMBER) {
        return Ok(None);
    }
    let mut frame: StreamResponse = serde_json::from_slice(v1_frame)?;
    add_layer(&mut frame);
    Ok(Some(encode_stream(Dialect::V03Rest, &frame, is_final)))
}

/// What is within, if the bytes are base64 exactly as an encoder writes it: the standard alphabet, padded, without stray
/// bits.
fn inner(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_empty() { None } else { STANDARD.decode(bytes).ok() }
}
