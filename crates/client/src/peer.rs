//! The settings for calling an agent: address, credentials, version and binding, limits, and the retry policy.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use switchboard_a2a::{RestFiles, Version};
use switchboard_egress::jitter;

use crate::address::AgentAddress;
use crate::{ClientError, Credentials};

/// An agent to be called.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its base address, its card or its endpoint.
    pub url: String,
    pub credentials: Credentials,
    /// Sent with every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The version to speak; none to negotiate it.
    pub version: Option<Version>,
    /// The only binding to use; none for any.
    pub binding: Option<Binding>,
    /// Preferred bindings, best first. Others come after them, in the order of the card.
    pub preferred: Vec<Binding>,
    /// The url to call, whatever the card says.
    pub endpoint: Option<String>,
    /// The tenant, if not the card's.
    pub tenant: Option<String>,
    /// Whether urls on the card are followed to other hosts. If not, only their paths count, on the host the card came
    /// from.
    pub trust_card_url: bool,
    /// Whether credentials are sent to [`Self::url`] and [`Self::endpoint`] only, wherever a trusted card leads.
    pub pins_credentials: bool,
    /// Extensions to declare.
    pub extensions: Vec<String>,
    /// How often it encodes files as base64 over REST of version 0.3.
    pub rest_files: RestFiles,
    /// Timeouts and size limits.
    pub limits: Limits,
    pub retries: RetryPolicy,
}

impl Peer {
    /// An agent at an address, with defaults for the rest.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            credentials: Credentials::None,
            headers: Vec::new(),
            version: None,
            binding: None,
            preferred: Vec::new(),
            endpoint: None,
            tenant: None,
            trust_card_url: false,
            pins_credentials: false,
            extensions: Vec::new(),
            rest_files: RestFiles::Auto,
            limits: Limits::default(),
            retries: RetryPolicy::default(),
        }
    }

    /// Its full address.
    pub fn address(&self) -> Result<String, ClientError> {
        AgentAddress::parse(&self.url).map(|address| address.endpoint())
    }
}

/// A protocol binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC: one url, methods in the body.
    JsonRpc,
    /// REST (HTTP+JSON): paths.
    Rest,
}

impl Binding {
    /// Its name on cards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
        }
    }

    /// Parses the names on cards and in settings.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "jsonrpc" | "json-rpc" | "rpc" => Some(Self::JsonRpc),
            "http+json" | "http_json" | "rest" | "http" => Some(Self::Rest),
            _ => None,
        }
    }
}

/// Timeouts and size limits. The connect timeout is the transport's.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Until the response to a short request is complete.
    pub head: Duration,
    /// Until the response to a sent message is complete.
    pub answer: Duration,
    /// Without any byte of a stream; then it reconnects.
    pub idle: Duration,
    /// Between two polls of a task that cannot be streamed; none for a growing interval.
    pub poll: Option<Duration>,
    /// For a whole stream, however often it reconnects.
    pub total: Option<Duration>,
    /// The largest response body, in bytes.
    pub body: usize,
    /// The largest event of a stream, in bytes.
    pub event: usize,
    /// The largest task a stream may build up, in bytes: a stream need not end.
    pub task: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            answer: Duration::from_secs(300),
            idle: Duration::from_secs(60),
            poll: None,
            total: None,
            body: 64 << 20,
            event: 16 << 20,
            task: 64 << 20,
        }
    }
}

/// `Retry-After` is honoured up to this many times the longest wait.
pub(crate) const MAX_RETRY_AFTER_FACTOR: u32 = 3;

/// The retry policy: exponential backoff with jitter.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The first wait; each next one is twice as long.
    pub initial_backoff: Duration,
    /// The longest wait.
    pub max_backoff: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 4, initial_backoff: Duration::from_millis(250), max_backoff: Duration::from_secs(10) }
    }
}

impl RetryPolicy {
    /// The backoff before retry `attempt`, counted from 1; none if there have been enough. Jitter takes up to half of
    /// it, so that many callers do not retry at once; it is never less than `Retry-After`.
    pub(crate) fn backoff(&self, attempt: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if attempt > self.max_retries {
            return None;
        }
        let usual = self.initial_backoff.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(self.max_backoff);
        let wait = usual.mul_f64(0.5 + jitter() / 2.0);
        match retry_after {
            Some(retry_after) if retry_after > self.max_backoff.saturating_mul(MAX_RETRY_AFTER_FACTOR) => None,
            Some(retry_after) => Some(wait.max(retry_after)),
            None => Some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ_within_their_bounds() {
        let retries = RetryPolicy {
            max_retries: 40,
            initial_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
        };
        for (attempt, usual) in [(1, 100), (2, 200), (4, 800), (5, 1_000), (40, 1_000)] {
            let usual = Duration::from_millis(usual);
            let waits: Vec<_> = (0..100).filter_map(|_| retries.backoff(attempt, None)).collect();
            assert!(waits.iter().all(|wait| (usual / 2..=usual).contains(wait)), "{attempt}: {waits:?}");
            let (least, most) = (waits.iter().min(), waits.iter().max());
            assert!(waits.len() == 100 && most.zip(least).is_some_and(|(most, least)| *most - *least > usual / 8));
        }
        assert_eq!(retries.backoff(41, None), None);
        let retry_after = |seconds| retries.backoff(1, Some(Duration::from_secs(seconds)));
        assert_eq!((retry_after(3), retry_after(4)), (Some(Duration::from_secs(3)), None));
    }
}
