//! The body of an answer: in pieces as they come, or collected as far as it is wanted. Once the head is there the call
//! has succeeded: a body that is too long, too slow or torn off changes nothing about the status.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::error::BodyFault;
use crate::receive_budget::BodyBudget;

/// A year.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a collected body ended; after [`crate::Egress::send`] it is found in the extensions of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyEnd {
    /// All of it is there.
    Complete,
    /// There was more than was asked for.
    Cut,
    /// The connection ended in the middle.
    Broken,
    /// The time was up in the middle.
    Late,
}

/// The body of an answer that is still coming in. Whoever drops it in the middle hangs up: read it or let it go, since
/// it keeps a connection, one of those that may be open.
pub struct AnswerBody {
    body: Incoming,
    /// An event stream has no end by design, so its bytes are not bounded in sum: whoever reads it bounds each event,
    /// and takes no more off the connection than it asks for. [`AnswerBody::collect`] sets a bound.
    budget: Option<BodyBudget>,
    /// The library tells of a torn connection once, and then of an end.
    is_broken: bool,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, budget: Option<BodyBudget>) -> Self {
        Self { body, budget, is_broken: false }
    }

    /// The next piece, never empty, if it comes within `idle`; `None` at the orderly end. A call that is given up loses
    /// nothing, and neither does one that ends with [`BodyFault::Late`]: the next call goes on where it stopped.
    ///
    /// # Errors
    /// A [`BodyFault`] when there is neither a piece nor the end.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, BodyFault> {
        self.next_until(deadline(idle)).await
    }

    async fn next_until(&mut self, deadline: Instant) -> Result<Option<Bytes>, BodyFault> {
        if self.is_broken {
            return Err(BodyFault::Broken);
        }
        loop {
            let frame = match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Err(BodyFault::Late),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => {
                    self.is_broken = true;
                    return Err(BodyFault::Broken);
                }
                Ok(Some(Ok(frame))) => frame,
            };
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
            // Frames with nothing in them are not worth waiting longer for, however fast they come.
            if Instant::now() >= deadline {
                return Err(BodyFault::Late);
            }
        }
    }

    /// Reads what is left of it, at most `maximum` bytes, within `total`.
    pub async fn collect(mut self, maximum: usize, total: Duration) -> (Bytes, BodyEnd) {
        if let Some(budget) = &mut self.budget {
            budget.bound(maximum);
        }
        let mut pieces = Collected::None;
        let deadline = deadline(total);
        loop {
            let piece = match self.next_until(deadline).await {
                Ok(Some(piece)) => piece,
                Ok(None) => return (pieces.whole(), BodyEnd::Complete),
                Err(BodyFault::Broken) => return (pieces.whole(), BodyEnd::Broken),
                Err(BodyFault::Late) => return (pieces.whole(), BodyEnd::Late),
            };
            let left = maximum - pieces.len();
            if piece.len() > left {
                pieces.add(piece.slice(..left));
                return (pieces.whole(), BodyEnd::Cut);
            }
            pieces.add(piece);
        }
    }
}

/// When a time is up. One that no clock can count is as good as a very long one.
fn deadline(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now + LONGEST_TIMEOUT)
}

/// What has come so far. Most bodies come in one piece, which need not be copied.
enum Collected {
    None,
    One(Bytes),
    Many(BytesMut),
}

impl Collected {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn add(&mut self, piece: Bytes) {
        match self {
            Self::None => *self = Self::One(piece),
            Self::One(first) => {
                let mut bytes = BytesMut::with_capacity(first.len() + piece.len());
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&piece);
                *self = Self::Many(bytes);
            }
            Self::Many(bytes) => bytes.extend_from_slice(&piece),
        }
    }

    fn whole(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}
