//! Lingering close, for a client that is still sending, most often a refused body. Closing at once would make the system
//! answer the next bytes with a reset, which destroys the response before the client has read it.
//!
//! So our side is closed first, and what still comes is discarded, for a bounded time and size.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A client that is silent for so long is not sending.
const SILENCE: Duration = Duration::from_secs(2);

/// However busily it sends, its connection slot is needed.
const LONGEST: Duration = Duration::from_secs(10);

const PIECE: usize = 16 << 10;

/// Discards what a client still sends.
pub(super) struct LingeringClose {
    left: usize,
    pause: Duration,
    silence: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
    piece: Box<[u8]>,
}

impl LingeringClose {
    pub(super) fn new(bytes: usize) -> Self {
        Self::for_times(bytes, SILENCE, LONGEST)
    }

    fn for_times(bytes: usize, pause: Duration, longest: Duration) -> Self {
        let (silence, end) = (Box::pin(sleep(pause)), Box::pin(sleep(longest)));
        Self { left: bytes, pause, silence, end, piece: vec![0; PIECE].into() }
    }

    /// Ready when the client is done, or the limits are reached.
    pub(super) fn poll(&mut self, stream: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.end.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut piece = ReadBuf::new(&mut self.piece);
            let Poll::Ready(read) = Pin::new(&mut *stream).poll_read(context, &mut piece) else {
                ready!(self.silence.as_mut().poll(context));
                return Poll::Ready(());
            };
            let length = piece.filled().len();
            if read.is_err() || length == 0 || length > self.left {
                return Poll::Ready(());
            }
            self.left -= length;
            self.silence.as_mut().reset(Instant::now() + self.pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    /// A test that waits for this has failed.
    const HOUR: Duration = Duration::from_secs(60 * 60);

    async fn over(mut linger: LingeringClose, stream: &mut DuplexStream) {
        std::future::poll_fn(|context| linger.poll(stream, context)).await;
    }

    #[tokio::test]
    async fn it_ends_with_the_bytes_with_silence_with_the_time_or_with_the_client() {
        let (mut client, mut server) = duplex(1 << 20);
        client.write_all(&[0; 100_000]).await.unwrap();
        over(LingeringClose::for_times(50_000, HOUR, HOUR), &mut server).await;
        over(LingeringClose::for_times(1 << 20, SHORT, HOUR), &mut server).await;
        over(LingeringClose::for_times(1 << 20, HOUR, SHORT), &mut server).await;
        client.write_all(&[0; 100_000]).await.unwrap();
        drop(client);
        over(LingeringClose::for_times(1 << 20, HOUR, HOUR), &mut server).await;
    }
}
