//! A signed POST that belongs to no task's webhook, such as what a route tells a chat. It goes through the same SSRF guard,
//! is signed in the same way and waits as long between its attempts as a webhook's deliveries; whoever sends it keeps what is
//! to be sent, and when.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use switchboard_a2a::Timestamp;
use switchboard_egress::{Egress, SendError, Target, jitter};
use switchboard_engine::CallerId;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::WebhookStore;

use crate::outcome::AttemptOutcome;
use crate::retry_policy::next_attempt;
use crate::signature::{Secret, secrets, sign};

/// How much of a response is read before the connection is closed rather than used again.
const RESPONSE_BYTES: usize = 16 << 10;

/// Sends signed POSTs. Clones share the connections.
#[derive(Clone)]
pub struct PostSender {
    egress: Egress,
    store: Arc<dyn WebhookStore>,
    timeout: Duration,
    retries: Arc<[Duration]>,
}

/// One POST of JSON.
#[derive(Clone, Debug)]
pub struct SignedPost {
    pub url: String,
    /// The `webhook-id`: the same for every attempt, by which receivers deduplicate. Visible ASCII.
    pub id: String,
    pub body: Bytes,
    /// What it is signed with, each with a signature of its own.
    pub secrets: Vec<Secret>,
}

/// How an attempt has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostAttempt {
    pub outcome: PostOutcome,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Why it was not delivered, without the path and the query of its address, which may hold secrets.
    pub problem: String,
}

/// What follows from an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostOutcome {
    Delivered,
    /// To be tried again, not before the receiver's `Retry-After`.
    Retry {
        after: Option<Duration>,
    },
    /// To be tried again; the receiver was not called for a reason of this server, so no attempt is used up.
    Crowded,
    /// No further try can succeed.
    Refused,
}

impl PostSender {
    /// With the backoff before each further attempt.
    pub fn new(egress: Egress, store: Arc<dyn WebhookStore>, timeout: Duration, retries: Vec<Duration>) -> Self {
        Self { egress, store, timeout, retries: retries.into() }
    }

    /// The signing secrets of a caller, as its webhooks are signed.
    pub async fn secrets_of(&self, caller: &CallerId, now: Timestamp) -> Result<Vec<Secret>, StoreError> {
        let signing = self.store.signing().await?;
        Ok(secrets(self.store.secret(), &signing, caller, now))
    }

    /// Makes one attempt.
    pub async fn send(&self, post: &SignedPost, now: Timestamp) -> PostAttempt {
        let target = match Target::parse(&post.url) {
            Ok(target) => target,
            Err(refusal) => return PostAttempt::of(Err(SendError::Refused(refusal))),
        };
        let seconds = now.0.div_euclid(1_000);
        let request = Request::builder()
            .method(Method::POST)
            .uri(target.url())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .header("webhook-signature", sign(&post.secrets, &post.id, seconds, &post.body))
            .header("webhook-timestamp", seconds)
            .header("webhook-id", post.id.as_str())
            .body(post.body.clone());
        match request {
            Ok(request) => PostAttempt::of(self.egress.send(request, self.timeout, RESPONSE_BYTES).await),
            Err(error) => {
                let problem = format!("the request cannot be made: {error}");
                PostAttempt { outcome: PostOutcome::Refused, status: None, problem }
            }
        }
    }

    /// When the attempt after `attempts` failed ones is due; none if that was the last.
    pub fn next_attempt(&self, attempts: u32, after: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
        next_attempt(&self.retries, attempts, after, now, jitter())
    }
}

impl PostAttempt {
    fn of(response: Result<http::Response<Bytes>, SendError>) -> Self {
        if let Err(error @ SendError::ConnectionLimit) = &response {
            return Self { outcome: PostOutcome::Crowded, status: None, problem: error.to_string() };
        }
        let (outcome, status, problem) = AttemptOutcome::of(&response);
        let outcome = match outcome {
            AttemptOutcome::Delivered => PostOutcome::Delivered,
            AttemptOutcome::Retry { after } => PostOutcome::Retry { after },
            AttemptOutcome::Dead | AttemptOutcome::Disabled => PostOutcome::Refused,
        };
        Self { outcome, status, problem }
    }
}
