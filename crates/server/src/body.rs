//! A response body: bytes that are there, or bytes still to come. An own type, because nearly every answer is one
//! buffer and should not cost a box.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

use crate::edge::activity::{InFlight, Owed};

/// A response body.
pub(crate) struct Body {
    content: Content,
    /// Held until the last byte is handed over: the connection is not idle before.
    in_flight: Option<InFlight>,
    /// Held while there is something to hand over, or there may be. Only a body that was asked and had nothing waits
    /// for us; any other waits for the client to make room.
    owed: Option<Owed>,
}

/// Bytes on their way out. HTTP/2 keeps them until the client has made room, and only they know when that is.
pub(crate) struct Piece {
    bytes: Bytes,
    owed: Option<Owed>,
}

enum Content {
    Empty,
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self { content: Content::Empty, in_flight: None, owed: None }
    }

    /// One buffer.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let content = if bytes.is_empty() { Content::Empty } else { Content::Full(bytes) };
        Self { content, in_flight: None, owed: None }
    }

    /// Buffers as they come; each is written out at once.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { content: Content::Stream(Box::pin(stream)), in_flight: None, owed: None }
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
        if !matches!(self.content, Content::Empty) {
            self.owed = Some(in_flight.owe());
        }
        self.in_flight = Some(in_flight);
        self
    }
}

impl hyper::body::Body for Body {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        let this = self.get_mut();
        let next = match &mut this.content {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                this.content = Content::Empty;
                Poll::Ready(Some(bytes))
            }
            Content::Stream(stream) => stream.as_mut().poll_next(context),
        };
        let owed = this.owed.take();
        let Poll::Ready(next) = next else { return Poll::Pending };
        let Some(bytes) = next else {
            this.content = Content::Empty;
            return Poll::Ready(None);
        };
        if let Content::Stream(_) = this.content {
            this.owed = this.in_flight.as_ref().map(InFlight::owe);
        }
        let owed = owed.or_else(|| this.in_flight.as_ref().map(InFlight::owe));
        Poll::Ready(Some(Ok(Frame::data(Piece { bytes, owed }))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, |length| SizeHint::with_exact(length as u64))
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(owed) = &self.owed {
            owed.note_taken();
        }
    }
}
