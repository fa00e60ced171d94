//! An answer and what it says: a result, a refusal by its kind, or nothing that the protocol knows.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use switchboard_a2a::{Dialect, Error as AgentError, ErrorKind};
use switchboard_client::{Binding, Interface};
use switchboard_egress::BodyEnd;

use crate::agent::{LARGEST, TestedAgent};
use crate::request::TestRequest;
use crate::retry::is_busy;
use crate::run_once::{Abandoned, TOO_LONG};
use crate::verdict::Verdict;

/// An answer as it came.
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) end: BodyEnd,
    /// How long it took to come.
    pub(crate) took: Duration,
}

/// What an answer says.
#[derive(Clone, Debug, Default)]
pub(crate) enum ReplyContent {
    Result(Value),
    /// The kind, where there is one that is known.
    Error(Option<ErrorKind>),
    /// Something answered, but not in the protocol.
    NotA2a,
    /// It is not known, and why: the agent has no time, or says more than is read.
    Unknown(String),
    /// Nothing came.
    #[default]
    Missing,
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
    pub(crate) content: ReplyContent,
    /// How long it took to come.
    pub(crate) took: Duration,
}

impl Abandoned for Reply {
    fn abandoned() -> Self {
        Self { content: ReplyContent::Unknown(TOO_LONG.to_owned()), ..Self::default() }
    }
}

impl Reply {
    /// An answer without an envelope.
    pub(crate) fn plain(agent: &TestedAgent, test_request: &TestRequest, answer: Result<RawResponse, String>) -> Self {
        let sent = test_request.described();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Self { sent, seen: agent.sanitize(&error), ..Self::default() },
        };
        let RawResponse { status, headers, body, end, took } = answer;
        let media_type = media_type(&headers);
        let seen = agent.sanitize(&format!("{status} {media_type} {}", String::from_utf8_lossy(&body)));
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let content = match end {
            _ if is_busy(status) => ReplyContent::Unknown(format!("the agent has no time for it ({status})")),
            BodyEnd::Cut => ReplyContent::Unknown(format!("the answer has more than {LARGEST} bytes, and is not read")),
            BodyEnd::Late => ReplyContent::Missing,
            BodyEnd::Complete | BodyEnd::Broken => json.clone().map_or(ReplyContent::NotA2a, ReplyContent::Result),
        };
        Self { sent, seen, status, headers, json, content, took }
    }

    /// An answer of an interface.
    pub(crate) fn read(
        agent: &TestedAgent,
        interface: &Interface,
        test_request: &TestRequest,
        answer: Result<RawResponse, String>,
    ) -> Self {
        let body = answer.as_ref().map(|answer| answer.body.clone()).unwrap_or_default();
        let mut reply = Self::plain(agent, test_request, answer);
        if reply.status == 0 || matches!(reply.content, ReplyContent::Missing | ReplyContent::Unknown(_)) {
            return reply;
        }
        let is_success = (200..300).contains(&reply.status);
        let dialect = interface.dialect();
        reply.content = match (&reply.json, interface.binding) {
            (Some(json), Binding::JsonRpc) if json["error"].is_object() => {
                ReplyContent::Error(rpc_kind(&json["error"]))
            }
            (Some(json), Binding::JsonRpc) if json["jsonrpc"] == "2.0" && is_success => {
                ReplyContent::Result(json["result"].clone())
            }
            (Some(json), Binding::Rest) if is_success => ReplyContent::Result(json.clone()),
            // Nothing to say is an answer too.
            (None, Binding::Rest) if is_success && body.is_empty() => ReplyContent::Result(Value::Null),
            (Some(json), Binding::Rest) if dialect == Dialect::V1 && json["error"].is_object() => {
                ReplyContent::Error(rest_kind(&json["error"], reply.status))
            }
            (Some(_), Binding::Rest) if dialect != Dialect::V1 => {
                ReplyContent::Error(old_rest_kind(&body, reply.status))
            }
            _ => ReplyContent::NotA2a,
        };
        reply
    }

    pub(crate) fn media_type(&self) -> String {
        media_type(&self.headers)
    }

    pub(crate) fn result(&self) -> Option<&Value> {
        match &self.content {
            ReplyContent::Result(result) => Some(result),
            _ => None,
        }
    }

    pub(crate) fn is_refused_with(&self, kind: ErrorKind) -> bool {
        matches!(self.content, ReplyContent::Error(Some(found)) if found == kind)
    }

    /// Whether it was waited for in vain.
    pub(crate) fn is_late(&self, patience: Duration) -> bool {
        matches!(self.content, ReplyContent::Missing) && self.took + Duration::from_millis(50) >= patience
    }

    /// Whether an agent has good reason to refuse a message that it cannot use.
    pub(crate) fn is_declined(&self) -> bool {
        use ErrorKind::{ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation};
        let reasons = [ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation];
        reasons.into_iter().any(|kind| self.is_refused_with(kind))
    }

    /// Passes if it is refused as one of these.
    pub(crate) fn expect(&self, kinds: &[ErrorKind]) -> Verdict {
        if kinds.iter().any(|kind| self.is_refused_with(*kind)) { Verdict::pass() } else { self.failure() }
    }

    /// Passes if it is refused as one of these; over REST, where the specification names no such error, any refusal as
    /// the caller's fault is fine.
    pub(crate) fn expect_or_bad_request(&self, binding: Binding, kinds: &[ErrorKind]) -> Verdict {
        let is_callers = matches!(self.content, ReplyContent::Error(_)) && (400..500).contains(&self.status);
        if binding == Binding::Rest && is_callers { Verdict::pass() } else { self.expect(kinds) }
    }

    /// A failure with what was sent and seen; none where nothing is known.
    pub(crate) fn failure(&self) -> Verdict {
        match &self.content {
            ReplyContent::Unknown(why) => Verdict::not_applicable(why),
            _ => Verdict::fail(&self.sent, &self.seen),
        }
    }

    /// The same with what is wrong about it.
    pub(crate) fn failure_because(&self, problem: &str) -> Verdict {
        let failure = self.failure();
        match failure.is_failure() {
            true => Verdict::fail(&self.sent, format!("{problem}: {}", self.seen)),
            false => failure,
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
