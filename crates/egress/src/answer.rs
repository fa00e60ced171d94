//! The body of an answer, read only as far as it is wanted. Once the head is there the call has succeeded: a body that
//! is too long, too slow or torn off changes nothing about the status.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};

/// How the body of an answer ended; found in the extensions of the response.
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

/// Reads at most `maximum` bytes within `time`.
pub(crate) async fn read(mut body: Incoming, maximum: usize, time: Duration) -> (Bytes, BodyEnd) {
    let mut bytes = BytesMut::new();
    let start = Instant::now();
    loop {
        let frame = match timeout(time.saturating_sub(start.elapsed()), body.frame()).await {
            Err(_) => return (bytes.freeze(), BodyEnd::Late),
            Ok(None) => return (bytes.freeze(), BodyEnd::Complete),
            Ok(Some(Err(_))) => return (bytes.freeze(), BodyEnd::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let room = maximum - bytes.len();
        if data.len() > room {
            bytes.extend_from_slice(&data[..room]);
            return (bytes.freeze(), BodyEnd::Cut);
        }
        bytes.extend_from_slice(&data);
    }
}
