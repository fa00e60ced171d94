//! A reply and its content: a result, an error by its kind, or something that is not A2A.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use switchboard_a2a::{Dialect, Error as AgentError, ErrorKind};
use switchboard_client::{Binding, Interface};
use switchboard_egress::BodyEnd;

use crate::agent::{MAX_BODY_BYTES, TestedAgent};
use crate::request::TestRequest;
use crate::retry::is_overloaded;
use crate::run_once::TOO_LONG;
use crate::verdict::{CheckResult, fail, skip};
use crate::wire::entries;

/// The HTTP response.
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) end: BodyEnd,
    pub(crate) took: Duration,
}

/// The content of a reply.
#[derive(Clone, Debug, Default)]
pub(crate) enum ReplyContent {
    Result(Value),
    /// The kind, if it is a known one.
    Error(Option<ErrorKind>),
    NotA2a,
    /// Why it is not known: the agent is overloaded, or the body is too large.
    Unknown(String),
    #[default]
    Missing,
}

/// Why nothing follows from an error reply to a message.
pub(crate) const DECLINED: &str = "the agent does not take this message; another --text may do";

/// A request and its response, ready for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) sent: String,
    pub(crate) seen: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Option<Value>,
    pub(crate) content: ReplyContent,
    pub(crate) took: Duration,
}

impl Reply {
    /// Of a request that was abandoned.
    pub(crate) fn abandoned() -> Self {
        Self { content: ReplyContent::Unknown(TOO_LONG.to_owned()), ..Self::default() }
    }

    /// Reads a response without an envelope.
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
            _ if is_overloaded(status) => ReplyContent::Unknown(format!("the agent has no time for it ({status})")),
            BodyEnd::Cut => {
                ReplyContent::Unknown(format!("the answer has more than {MAX_BODY_BYTES} bytes, and is not read"))
            }
            BodyEnd::Late => ReplyContent::Missing,
            BodyEnd::Complete | BodyEnd::Broken => json.clone().map_or(ReplyContent::NotA2a, ReplyContent::Result),
        };
        Self { sent, seen, status, headers, json, content, took }
    }

    /// Reads a response of an interface.
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
            // An empty body is a result too.
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
        self.is_refused_with_any(&[kind])
    }

    pub(crate) fn is_refused_with_any(&self, kinds: &[ErrorKind]) -> bool {
        matches!(self.content, ReplyContent::Error(Some(found)) if kinds.contains(&found))
    }

    /// Whether it timed out.
    pub(crate) fn is_late(&self, patience: Duration) -> bool {
        matches!(self.content, ReplyContent::Missing) && self.took + Duration::from_millis(50) >= patience
    }

    /// Whether the agent refuses the message for its content.
    pub(crate) fn is_declined(&self) -> bool {
        use ErrorKind::{ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation};
        self.is_refused_with_any(&[ContentTypeNotSupported, ExtensionRequired, InvalidParams, UnsupportedOperation])
    }

    /// Passes if it is one of these errors.
    pub(crate) fn expect(&self, kinds: &[ErrorKind]) -> CheckResult {
        if self.is_refused_with_any(kinds) { Ok(()) } else { self.failure() }
    }

    /// Passes if it is one of these errors; over REST, where the specification names none, any 4xx error will do.
    pub(crate) fn expect_or_bad_request(&self, binding: Binding, kinds: &[ErrorKind]) -> CheckResult {
        let is_callers = matches!(self.content, ReplyContent::Error(_)) && (400..500).contains(&self.status);
        if binding == Binding::Rest && is_callers { Ok(()) } else { self.expect(kinds) }
    }

    /// A failure with what was sent and seen; the check does not apply where the content is not known.
    pub(crate) fn failure<T>(&self) -> CheckResult<T> {
        self.failure_with(self.seen.clone())
    }

    /// The same with what is wrong about it.
    pub(crate) fn failure_because<T>(&self, problem: &str) -> CheckResult<T> {
        self.failure_with(format!("{problem}: {}", self.seen))
    }

    fn failure_with<T>(&self, seen: String) -> CheckResult<T> {
        match &self.content {
            ReplyContent::Unknown(why) => skip(why),
            _ => fail(&self.sent, seen),
        }
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let said = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn rpc_kind(error: &Value) -> Option<ErrorKind> {
    ErrorKind::from_code(error["code"].as_i64()?)
}

/// By its reason, else by the status of the errors that every web server has.
fn rest_kind(error: &Value, status: u16) -> Option<ErrorKind> {
    let details = entries(&error["details"]);
    let reason = details.filter_map(|detail| detail["reason"].as_str()).find_map(ErrorKind::from_reason);
    reason.or(if status == 403 { Some(ErrorKind::PermissionDenied) } else { web_server_kind(status) })
}

/// Version 0.3 leaves the body open, so the status counts where the body has no kind.
fn old_rest_kind(body: &[u8], status: u16) -> Option<ErrorKind> {
    let said = AgentError::decode(body).ok().map(|error| error.kind).filter(|kind| *kind != ErrorKind::Internal);
    said.or(match status {
        404 => Some(ErrorKind::TaskNotFound),
        409 => Some(ErrorKind::TaskNotCancelable),
        _ => web_server_kind(status),
    })
}

fn web_server_kind(status: u16) -> Option<ErrorKind> {
    match status {
        400 | 422 => Some(ErrorKind::InvalidParams),
        401 => Some(ErrorKind::Unauthenticated),
        500 => Some(ErrorKind::Internal),
        _ => None,
    }
}
