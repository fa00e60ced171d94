//! A response body: bytes that are there, or bytes still to come. An own type, because nearly every answer is one
//! buffer and should not cost a box.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

use crate::edge::activity::InFlight;

/// A response body.
pub(crate) struct Body {
    content: Content,
    /// Held until the last byte is handed over: the connection is not idle before.
    in_flight: Option<InFlight>,
}

enum Content {
    Empty,
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self { content: Content::Empty, in_flight: None }
    }

    /// One buffer.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let content = if bytes.is_empty() { Content::Empty } else { Content::Full(bytes) };
        Self { content, in_flight: None }
    }

    /// Buffers as they come; each is written out at once.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { content: Content::Stream(Box::pin(stream)), in_flight: None }
    }

    /// The number of bytes, if it is known.
    pub(crate) fn length(&self) -> Option<usize> {
        match &self.content {
            Content::Empty => Some(0),
            Content::Full(bytes) => Some(bytes.len()),
            Content::Stream(_) => None,
        }
    }

    /// The same body, keeping its connection busy until it is sent.
    pub(crate) fn holding(mut self, in_flight: InFlight) -> Self {
        self.in_flight = Some(in_flight);
        self
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        match &mut this.content {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                this.content = Content::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Content::Stream(stream) => {
                let next = std::task::ready!(stream.as_mut().poll_next(context));
                if next.is_none() {
                    this.content = Content::Empty;
                }
                Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, |length| SizeHint::with_exact(length as u64))
    }
}
