//! Errors of peers, read from every form they come in: a JSON-RPC response or its `error` object, a REST body of either
//! version, with `google.rpc` details, plain data or nothing but a message.

use super::{Error, ErrorKind, Violation};
use crate::{Json, Metadata};

impl Error {
    /// Reads an error. Its kind follows from a known reason, else from the code; an unknown code is an internal error
    /// that keeps the code in its metadata. Fails if the JSON has neither a code nor a message.
    pub fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        let members: Metadata = serde_json::from_slice(json)?;
        let error = match members.get("error") {
            Some(inner) if inner.is_object() => of_object(&inner.read()?),
            Some(inner) => of_text(&members, inner),
            None => of_object(&members),
        };
        error.ok_or_else(|| serde::de::Error::custom("neither a code nor a message of an error"))
    }
}

impl Error {
    /// The error a peer reports; where it has no known form, what the peer wrote is the message.
    pub(crate) fn read(data: &str) -> Self {
        if let Ok(error) = Self::decode(data.as_bytes()) {
            return error;
        }
        match serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned()) {
            text if text.is_empty() => Self::new(ErrorKind::Internal),
            text => Self::with_message(ErrorKind::Internal, text),
        }
    }
}

/// `{"error": "what happened"}`, as web frameworks answer.
fn of_text(members: &Metadata, text: &Json) -> Option<Error> {
    match text.as_text() {
        Some(message) => {
            Some(Error { message, ..of_object(members).unwrap_or_else(|| Error::new(ErrorKind::Internal)) })
        }
        None => of_object(members),
    }
}

fn of_object(object: &Metadata) -> Option<Error> {
    let message = object.get("message").and_then(Json::as_text);
    let code = object.get("code").filter(|code| code.as_str() != "null");
    if message.is_none() && code.is_none() {
        return None;
    }
    let mut details = ErrorDetails::default();
    for member in ["data", "details"] {
        details.read(object.get(member));
    }
    let kind = details.reason.as_deref().and_then(ErrorKind::from_reason);
    let kind = kind.or_else(|| code.and_then(|code| details.kind_of(code)));
    if kind.is_none() {
        let unknown = [("reason", details.reason.take()), ("code", code.map(text_of))];
        details.metadata.extend(unknown.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    let error = Error::new(kind.unwrap_or(ErrorKind::Internal));
    let message = message.filter(|message| !message.is_empty()).unwrap_or(error.message);
    let received_code = code.and_then(|code| text_of(code).parse().ok());
    // Over REST the number is a status of HTTP, which says no more than the kind.
    let is_own = |code: &i64| kind.is_none() || *code < 0 && *code != i64::from(error.kind.entry().code);
    let received_code = received_code.filter(is_own);
    let ErrorDetails { metadata, violations, .. } = details;
    Some(Error { kind: error.kind, message, metadata, violations, received_code, received_status: None })
}

/// What stands beside code and message.
#[derive(Default)]
struct ErrorDetails {
    reason: Option<String>,
    metadata: Vec<(String, String)>,
    violations: Vec<Violation>,
}

impl ErrorDetails {
    fn read(&mut self, data: Option<&Json>) {
        let Some(data) = data.filter(|data| data.as_str() != "null") else { return };
        if let Ok(details) = data.read::<Vec<Metadata>>() {
            details.iter().for_each(|detail| self.detail(detail));
        } else if let Ok(object) = data.read::<Metadata>() {
            self.detail(&object);
        } else {
            self.metadata.push(("data".to_owned(), text_of(data)));
        }
    }

    /// One `google.rpc` detail, or the plain object of v0.3, which is a detail whose metadata stands beside the reason.
    fn detail(&mut self, detail: &Metadata) {
        let is_typed = detail.get("@type").is_some();
        for (key, value) in detail.iter() {
            match key {
                "reason" => self.reason = value.as_text().or(self.reason.take()),
                "fieldViolations" => self.violations(value),
                "metadata" if is_typed => {
                    let entries = value.read::<Metadata>().unwrap_or_default();
                    self.metadata.extend(entries.iter().map(|(key, value)| (key.to_owned(), text_of(value))));
                }
                "@type" => {}
                "domain" if is_typed => {}
                _ => self.metadata.push((key.to_owned(), text_of(value))),
            }
        }
    }

    fn violations(&mut self, list: &Json) {
        for violation in list.read::<Vec<Metadata>>().unwrap_or_default() {
            let text = |name: &str| violation.get(name).and_then(Json::as_text).unwrap_or_default();
            self.violations.push(Violation { field: text("field"), description: text("description") });
        }
    }

    /// A JSON-RPC code, an HTTP status, or a reason where the number should be.
    fn kind_of(&self, code: &Json) -> Option<ErrorKind> {
        let text = text_of(code);
        let Ok(number) = text.parse::<i64>() else { return ErrorKind::from_reason(&text) };
        match number {
            // v0.3 has no code for it; the time to wait tells.
            -32603 if self.metadata.iter().any(|(key, _)| key == "retryAfterMs") => Some(ErrorKind::Overloaded),
            400 => Some(ErrorKind::InvalidRequest),
            401 => Some(ErrorKind::Unauthenticated),
            403 => Some(ErrorKind::PermissionDenied),
            // Without a reason it is most likely what nearly every path of the protocol names.
            404 => Some(ErrorKind::TaskNotFound),
            408 => Some(ErrorKind::RequestTimeout),
            413 => Some(ErrorKind::TooLarge),
            429 | 503 => Some(ErrorKind::Overloaded),
            431 => Some(ErrorKind::HeadersTooLarge),
            501 => Some(ErrorKind::UnsupportedOperation),
            _ => ErrorKind::from_code(number),
        }
    }
}

/// Metadata values are text; any other JSON value is kept as its JSON text.
fn text_of(value: &Json) -> String {
    value.as_text().unwrap_or_else(|| value.as_str().to_owned())
}
