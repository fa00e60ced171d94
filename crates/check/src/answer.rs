//! An answer and what it says: a result, a refusal by its kind, or nothing that the protocol knows.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use switchboard_a2a::{Dialect, Error as AgentError, ErrorKind};
use switchboard_client::{Binding, Interface};
use switchboard_egress::BodyEnd;

use crate::busy::is_busy;
use crate::question::Question;
use crate::shared::{GivenUp, TOO_LONG};
use crate::subject::{LARGEST, Subject};
use crate::verdict::Verdict;

/// An answer as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) end: BodyEnd,
    /// How long it took to come.
    pub(crate) took: Duration,
}

/// What an answer says.
#[derive(Clone, Debug, Default)]
pub(crate) enum Said {
    Result(Value),
    /// The kind, where there is one that is known.
    Refused(Option<ErrorKind>),
    /// Something answered, but not in the protocol.
    Nonsense,
    /// It is not known, and why: the agent has no time, or says more than is read.
    Unheard(String),
    /// Nothing came.
    #[default]
    Nothing,
}

/// Why nothing can be told of an answer to a message.
pub(crate) const DECLINED: &str = "the agent does not take this message; another --text may do";

/// A question and its answer, ready for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) sent: String,
    pub(crate) seen: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Option<Value>,
    pub(crate) said: Said,
    /// How long it took to come.
    pub(crate) took: Duration,
}

impl GivenUp for Reply {
    fn given_up() -> Self {
        Self { said: Said::Unheard(TOO_LONG.to_owned()), ..Self::default() }
    }
}

impl Reply {
    /// An answer without an envelope.
    pub(crate) fn plain(subject: &Subject, question: &Question, answer: Result<Answer, String>) -> Self {
        let sent = question.shown();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Self { sent, seen: subject.clean(&error), ..Self::default() },
        };
        let Answer { status, headers, body, end, took } = answer;
        let media_type = media_type(&headers);
        let seen = subject.clean(&format!("{status} {media_type} {}", String::from_utf8_lossy(&body)));
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let said = match end {
            _ if is_busy(status) => Said::Unheard(format!("the agent has no time for it ({status})")),
            BodyEnd::Cut => Said::Unheard(format!("the answer has more than {LARGEST} bytes, and is not read")),
            BodyEnd::Late => Said::Nothing,
            BodyEnd::Complete | BodyEnd::Broken => json.clone().map_or(Said::Nonsense, Said::Result),
        };
        Self { sent, seen, status, headers, json, said, took }
    }

    /// An answer of an interface.
    pub(crate) fn read(
        subject: &Subject,
        interface: &Interface,
        question: &Question,
        answer: Result<Answer, String>,
    ) -> Self {
        let body = answer.as_ref().map(|answer| answer.body.clone()).unwrap_or_default();
        let mut reply = Self::plain(subject, question, answer);
        if reply.status == 0 || matches!(reply.said, Said::Nothing | Said::Unheard(_)) {
            return reply;
        }
        let is_success = (200..300).contains(&reply.status);
        let dialect = interface.dialect();
        reply.said = match (&reply.json, interface.binding) {
            (Some(json), Binding::JsonRpc) if json["error"].is_object() => Said::Refused(rpc_kind(&json["error"])),
            (Some(json), Binding::JsonRpc) if json["jsonrpc"] == "2.0" && is_success => {
                Said::Result(json["result"].clone())
            }
            (Some(json), Binding::Rest) if is_success => Said::Result(json.clone()),
            // Nothing to say is an answer too.
            (None, Binding::Rest) if is_success && body.is_empty() => Said::Result(Value::Null),
            (Some(json), Binding::Rest) if dialect == Dialect::V1 && json["error"].is_object() => {
                Said::Refused(rest_kind(&json["error"], reply.status))
            }
            (Some(_), Binding::Rest) if dialect != Dialect::V1 => Said::Refused(old_rest_kind(&body, reply.status)),
            _ => Said::Nonsense,
        };
        reply
    }

    pub(crate) fn media_type(&self) -> String {
        media_type(&self.headers)
    }

    pub(crate) fn result(&self) -> Option<&Value> {
        match &self.said {
            Said::Result(result) => Some(result),
            _ => None,
        }
    }

    pub(crate) fn is_refused_with(&self, kind: ErrorKind) -> bool {
        matches!(self.said, Said::Refused(Some(found)) if found == kind)
    }

    /// Whether it was waited for in vain.
    pub(crate) fn is_late(&self, patience: Duration) -> bool {
        matches!(self.said, Said::Nothing) && self.took + Duration::from_millis(50) >= patience
    }

    /// Whether an agent has good reason to refuse a message that it cannot use.
    pub(crate) fn is_declined(&self) -> bool {
        use ErrorKind::{ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation};
        let reasons = [ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation];
        reasons.into_iter().any(|kind| self.is_refused_with(kind))
    }

    /// Passes if it is refused as one of these.
    pub(crate) fn expect(&self, kinds: &[ErrorKind]) -> Verdict {
        if kinds.iter().any(|kind| self.is_refused_with(*kind)) { Verdict::pass() } else { self.complaint() }
    }

    /// Passes if it is refused as one of these; over REST, where the specification names no such error, any refusal as
    /// the caller's fault is fine.
    pub(crate) fn expect_or_bad_request(&self, binding: Binding, kinds: &[ErrorKind]) -> Verdict {
        let is_callers = matches!(self.said, Said::Refused(_)) && (400..500).contains(&self.status);
        if binding == Binding::Rest && is_callers { Verdict::pass() } else { self.expect(kinds) }
    }

    /// A failure with what was sent and seen; none where nothing is known.
    pub(crate) fn complaint(&self) -> Verdict {
        match &self.said {
            Said::Unheard(why) => Verdict::not_applicable(why),
            _ => Verdict::fail(&self.sent, &self.seen),
        }
    }

    /// The same with what is wrong about it.
    pub(crate) fn complaint_that(&self, problem: &str) -> Verdict {
        let complaint = self.complaint();
        match complaint.has_failed() {
            true => Verdict::fail(&self.sent, format!("{problem}: {}", self.seen)),
            false => complaint,
        }
    }
}

/// Without parameters.
fn media_type(headers: &HeaderMap) -> String {
    let said = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// By its code alone, which is what callers have.
fn rpc_kind(error: &Value) -> Option<ErrorKind> {
    ErrorKind::from_code(error["code"].as_i64()?)
}

/// By its reason; the errors that every web server has are told by their status as well.
fn rest_kind(error: &Value, status: u16) -> Option<ErrorKind> {
    let details = error["details"].as_array().into_iter().flatten();
    let reason = details.filter_map(|detail| detail["reason"].as_str()).find_map(ErrorKind::from_reason);
    reason.or(match status {
        400 | 422 => Some(ErrorKind::InvalidParams),
        401 => Some(ErrorKind::Unauthenticated),
        403 => Some(ErrorKind::PermissionDenied),
        500 => Some(ErrorKind::Internal),
        _ => None,
    })
}

/// Version 0.3 leaves the body open, so that the status counts where the body says nothing.
fn old_rest_kind(body: &[u8], status: u16) -> Option<ErrorKind> {
    let said = AgentError::decode(body).ok().map(|error| error.kind).filter(|kind| *kind != ErrorKind::Internal);
    said.or(match status {
        400 | 422 => Some(ErrorKind::InvalidParams),
        401 => Some(ErrorKind::Unauthenticated),
        404 => Some(ErrorKind::TaskNotFound),
        409 => Some(ErrorKind::TaskNotCancelable),
        500 => Some(ErrorKind::Internal),
        _ => None,
    })
}
