//! A server-sent event as a frame of A2A, in every form that peers send: in a JSON-RPC envelope or bare, with a
//! discriminator, a named event or neither, and errors in any of these.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::DONE;
use super::{Event, named_event};
use crate::model::FrameKind;
use crate::{Dialect, Error, Json, Metadata, StreamResponse, decode, lenient};

/// The meaning of one event.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Something about the task, or a direct reply.
    Response(Box<StreamResponse>),
    /// An error ends the stream.
    Error(Error),
    /// The end marker `[DONE]`.
    Done,
    /// Nothing for A2A as we know it: no data, an event of some other protocol, or a frame of a later version.
    Ignored,
}

/// What the name of an event means for its data.
enum Name {
    /// No name, or the one every event has by default.
    Usual,
    Error,
    FrameKind(FrameKind),
    Foreign,
}

impl Name {
    fn read(name: Option<&str>) -> Self {
        match name {
            None | Some("message") => Self::Usual,
            Some("error" | "task/error") => Self::Error,
            Some(name) => FrameKind::from_name(name).map_or(Self::Foreign, Self::FrameKind),
        }
    }
}

impl Event {
    /// Reads the data as a frame of a stream. An update whose peer leaves the task's id out has an empty one.
    pub fn decode(&self, dialect: Dialect) -> Result<Frame, serde_json::Error> {
        let data = self.data.trim();
        let name = Name::read(self.name.as_deref());
        match (data, &name) {
            (_, Name::Error) => return Ok(Frame::Error(Error::read(data))),
            ("", _) => return Ok(Frame::Ignored),
            (DONE, _) => return Ok(Frame::Done),
            _ => {}
        }
        match name {
            Name::FrameKind(kind) => read(dialect, Some(kind), data),
            Name::Foreign => Ok(read(dialect, None, data).unwrap_or(Frame::Ignored)),
            Name::Usual | Name::Error => read(dialect, None, data),
        }
    }
}

/// How most peers begin their answer to a request with the id 1, as all of our client's are.
const ENVELOPE: &str = r#"{"jsonrpc":"2.0","id":1,"result":"#;

/// The members that tell an envelope or an error from a bare frame.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

fn read(dialect: Dialect, kind: Option<FrameKind>, data: &str) -> Result<Frame, serde_json::Error> {
    // What is a frame to its end leaves nothing else in the envelope, which so need not be read before it.
    let result = data.strip_prefix(ENVELOPE).and_then(|rest| rest.strip_suffix('}'));
    if let Some(Ok(frame)) = result.map(|result| response(dialect, kind, result)) {
        return Ok(frame);
    }
    let members: Members<'_> = lenient::object(&mut serde_json::Deserializer::from_str(data))?;
    if members.jsonrpc.is_some() && members.error.is_some() {
        return Ok(Frame::Error(Error::read(data)));
    }
    if let Some(result) = members.result {
        return response(dialect, kind, result.get()).or_else(|unread| newer(result.get()).ok_or(unread));
    }
    if members.jsonrpc.is_some() {
        return Err(serde::de::Error::custom("the JSON-RPC response has neither a result nor an error"));
    }
    // An update may have an `error` of its own, so only what is no frame is taken for the peer's error.
    let is_code = members.code.is_some_and(|code| !code.get().starts_with(['{', '[']));
    let is_text = members.message.is_some_and(|message| message.get().starts_with('"'));
    let may_be_error = members.error.is_some() || (is_code && is_text);
    response(dialect, kind, data).or_else(|unread| match may_be_error {
        true => Ok(Frame::Error(Error::read(data))),
        false => newer(data).ok_or(unread),
    })
}

/// A frame of a later version, which is to be ignored: one object under an unknown name, or of an unknown kind.
fn newer(json: &str) -> Option<Frame> {
    let members: Metadata = serde_json::from_str(json).ok()?;
    let is_unknown = match members.get("kind").and_then(Json::as_text) {
        Some(kind) => FrameKind::from_name(&kind).is_none(),
        None => {
            let mut named = members.iter();
            let first = named.next().filter(|(name, value)| FrameKind::of_member(name).is_none() && value.is_object());
            first.is_some() && named.next().is_none()
        }
    };
    is_unknown.then_some(Frame::Ignored)
}

fn response(dialect: Dialect, kind: Option<FrameKind>, json: &str) -> Result<Frame, serde_json::Error> {
    let response = match kind {
        Some(kind) => named_event::read(dialect, kind, json)?,
        None => decode::decode_stream(dialect, json.as_bytes())?,
    };
    Ok(Frame::Response(Box::new(response)))
}
