//! An agent as whoever calls it knows it: where it is, who we are to it, what is to be spoken, and how long to wait.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use switchboard_a2a::{RestFiles, Version};

use crate::address::AgentAddress;
use crate::{ClientError, Credentials};

/// An agent to be called.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its base address, its card or its endpoint.
    pub url: String,
    /// Who we are to it.
    pub credentials: Credentials,
    /// Sent with every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The version to speak; none for the best that both know.
    pub version: Option<Version>,
    /// The binding to use and no other; none for any.
    pub binding: Option<Binding>,
    /// Bindings to use rather than others, best first. What is on none of them comes after them, in the order of the card.
    pub preferred: Vec<Binding>,
    /// Where to call the agent, whatever its card says.
    pub endpoint: Option<String>,
    /// The tenant to name, if not the card's.
    pub tenant: Option<String>,
    /// Whether addresses on the card are followed to other hosts. If not, what the card says about paths is looked for
    /// where the card came from.
    pub trust_card_url: bool,
    /// Whether credentials are shown at [`Self::url`] and [`Self::endpoint`] and nowhere else, wherever a trusted card
    /// leads.
    pub pins_credentials: bool,
    /// Extensions to declare.
    pub extensions: Vec<String>,
    /// How often it encodes files as base64 over REST of version 0.3.
    pub rest_files: RestFiles,
    /// How long to wait, how much to read.
    pub limits: Limits,
    /// How often to try again.
    pub retries: Retries,
}

impl Peer {
    /// An agent at an address, with everything else as usual.
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
            retries: Retries::default(),
        }
    }
}

impl Peer {
    /// Its address in full, as it is called.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn address(&self) -> Result<String, ClientError> {
        AgentAddress::parse(&self.url).map(|address| address.endpoint())
    }
}

/// How requests are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// One address, methods in the body.
    JsonRpc,
    /// Paths.
    Rest,
}

impl Binding {
    /// As cards call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
        }
    }

    /// Reads what cards and people call it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "jsonrpc" | "json-rpc" | "rpc" => Some(Self::JsonRpc),
            "http+json" | "http_json" | "rest" | "http" => Some(Self::Rest),
            _ => None,
        }
    }
}

/// How long to wait, how much to read. The time for a connection is the transport's.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Until an answer to a short question begins.
    pub head: Duration,
    /// Until an answer to a sent message is complete: agents think.
    pub answer: Duration,
    /// Without any byte of a stream; it is taken up again then.
    pub idle: Duration,
    /// Between two looks at a task that cannot be streamed; none for rarer and rarer ones.
    pub poll: Option<Duration>,
    /// For a whole stream, however often it is taken up again.
    pub total: Option<Duration>,
    /// The largest answer, in bytes.
    pub body: usize,
    /// The largest event of a stream, in bytes.
    pub event: usize,
    /// The most that is kept of a task that is followed, in bytes: a stream has no end by itself.
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

/// How many times the longest wait is waited for if the other side asks for it.
pub(crate) const MAX_RETRY_AFTER_FACTOR: u32 = 3;

/// How often something is tried again, and when.
#[derive(Clone, Debug)]
pub struct Retries {
    /// How often after the first time.
    pub most: u32,
    /// The first wait; each next one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 4, first: Duration::from_millis(250), longest: Duration::from_secs(10) }
    }
}

impl Retries {
    /// The wait before the next attempt, counted from 1, none if there have been enough. Between half and all of the
    /// usual time, so that many callers do not come back at once; never less than the other side asks for.
    pub(crate) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempt > self.most {
            return None;
        }
        let usual = self.first.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(self.longest);
        let mut random = [0; 4];
        // Without randomness the wait is the longest it can be.
        let share = match getrandom::fill(&mut random) {
            Ok(()) => f64::from(u32::from_ne_bytes(random)) / f64::from(u32::MAX),
            Err(_) => 1.0,
        };
        let wait = usual.mul_f64(0.5 + share / 2.0);
        // Whoever asks for more than that is not waited for.
        match asked {
            Some(asked) if asked > self.longest.saturating_mul(MAX_RETRY_AFTER_FACTOR) => None,
            Some(asked) => Some(wait.max(asked)),
            None => Some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ_within_their_bounds() {
        let retries = Retries { most: 40, first: Duration::from_millis(100), longest: Duration::from_secs(1) };
        for (attempt, usual) in [(1, 100), (2, 200), (4, 800), (5, 1_000), (40, 1_000)] {
            let usual = Duration::from_millis(usual);
            let waits: Vec<_> = (0..100).filter_map(|_| retries.wait(attempt, None)).collect();
            assert!(waits.iter().all(|wait| (usual / 2..=usual).contains(wait)), "{attempt}: {waits:?}");
            let (least, most) = (waits.iter().min(), waits.iter().max());
            assert!(waits.len() == 100 && most.zip(least).is_some_and(|(most, least)| *most - *least > usual / 8));
        }
        assert_eq!(retries.wait(41, None), None);
        let asked = |seconds| retries.wait(1, Some(Duration::from_secs(seconds)));
        assert_eq!((asked(3), asked(4)), (Some(Duration::from_secs(3)), None));
    }
}
