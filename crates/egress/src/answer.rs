//! The body of an answer: in pieces as they come, or collected as far as it is wanted. Once the head is there the call
//! has succeeded: a body that is too long, too slow or torn off changes nothing about the status.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};

use crate::error::BodyFault;
use crate::meter::BodyRoom;

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
    room: Option<BodyRoom>,
    /// The library tells of a torn connection once, and then of an end.
    is_broken: bool,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, room: Option<BodyRoom>) -> Self {
        Self { body, room, is_broken: false }
    }

    /// The next piece, never empty, if it comes within `idle`; `None` at the orderly end. A call that is given up loses
    /// nothing, and neither does one that ends with [`BodyFault::Late`]: the next call goes on where it stopped.
    ///
    /// # Errors
    /// A [`BodyFault`] when there is neither a piece nor the end.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, BodyFault> {
        if self.is_broken {
            return Err(BodyFault::Broken);
        }
        let start = Instant::now();
        loop {
            let frame = match timeout(idle.saturating_sub(start.elapsed()), self.body.frame()).await {
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
            if start.elapsed() >= idle {
                return Err(BodyFault::Late);
            }
        }
    }

    /// Reads what is left of it, at most `maximum` bytes, within `total`.
    pub async fn collect(mut self, maximum: usize, total: Duration) -> (Bytes, BodyEnd) {
        if let Some(room) = &mut self.room {
            room.bound(maximum);
        }
        let mut bytes = BytesMut::new();
        let start = Instant::now();
        loop {
            let piece = match self.next(total.saturating_sub(start.elapsed())).await {
                Ok(Some(piece)) => piece,
                Ok(None) => return (bytes.freeze(), BodyEnd::Complete),
                Err(BodyFault::Broken) => return (bytes.freeze(), BodyEnd::Broken),
                Err(BodyFault::Late) => return (bytes.freeze(), BodyEnd::Late),
            };
            let room = maximum - bytes.len();
            if piece.len() > room {
                bytes.extend_from_slice(&piece[..room]);
                return (bytes.freeze(), BodyEnd::Cut);
            }
            bytes.extend_from_slice(&piece);
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}
