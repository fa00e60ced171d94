//! The parts messages and artifacts are made of.

mod read;
mod write;

use crate::{Json, Metadata};

pub(crate) use read::decode_base64;

/// One piece of content with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The content itself.
    pub content: PartContent,
    /// Anything else about it.
    pub metadata: Option<Metadata>,
    /// A file name for it.
    pub filename: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
}

/// Exactly one kind of content.
#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    /// Plain text.
    Text(String),
    /// The bytes of a file.
    Raw(Vec<u8>),
    /// Where a file can be had.
    Url(String),
    /// Any JSON value, `null` included.
    Data(Json),
}

impl Part {
    /// A part with nothing but its content.
    pub fn new(content: PartContent) -> Self {
        Self { content, metadata: None, filename: None, media_type: None }
    }

    /// A plain text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A data part.
    pub fn data(value: Json) -> Self {
        Self::new(PartContent::Data(value))
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if it holds a file. A file that is only referred to has its address in [`PartContent::Url`].
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.content {
            PartContent::Raw(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value, if it is a data part.
    pub fn as_data(&self) -> Option<&Json> {
        match &self.content {
            PartContent::Data(value) => Some(value),
            _ => None,
        }
    }

    /// Joins the text of another text part to this one; nothing happens if either is no text.
    pub fn push_text(&mut self, more: &Part) {
        if let (PartContent::Text(text), PartContent::Text(addition)) = (&mut self.content, &more.content) {
            text.push_str(addition);
        }
    }

    /// Whether it is text and nothing else, so that a neighbour of the same kind can be joined to it.
    pub fn is_bare_text(&self) -> bool {
        matches!(self.content, PartContent::Text(_))
            && self.metadata.is_none()
            && self.filename.is_none()
            && self.media_type.is_none()
    }
}
