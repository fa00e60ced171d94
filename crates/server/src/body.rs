//! A response body: complete, or a stream. A type of its own, because nearly every response is one buffer and should not
//! cost a box.
//!
//! A large body is sent piece by piece as the client reads. The pieces are buffers of their own, so that the memory of
//! each, and its part of the response budget, is free as soon as it is on the wire.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

use crate::edge::activity::{InFlight, UnsentPiece};
use crate::edge::address_slots::AddressSlot;
use crate::edge::request_metrics::RequestLabels;
use crate::response_budget::ReservedBytes;

/// The size of a piece, and what is sent as one.
const PIECE: usize = 64 << 10;

/// A response body.
pub struct Body {
    content: Content,
    /// The reserved bytes of what is still to be sent.
    reserved: Option<ReservedBytes>,
    /// Held until the last byte is sent: the connection is not idle before.
    in_flight: Option<InFlight>,
    /// Held as long: the slot of the client's address, behind a proxy.
    address_slot: AddressSlot,
    /// Held while there is something to send, or there may be. Only a body that was polled and had nothing waits for the
    /// server; any other waits for a slow client.
    unsent: Option<UnsentPiece>,
    /// What the metrics call its request. Here and not among the extensions of the response, which would cost each three
    /// allocations.
    labels: Option<RequestLabels>,
}

/// Bytes on their way out. HTTP/2 keeps them until the client's flow-control window opens, and only they see when.
pub struct Piece {
    bytes: Bytes,
    unsent: Option<UnsentPiece>,
    /// Given back when the piece is sent.
    _reserved: Option<ReservedBytes>,
}

/// Bytes of a stream, and their part of the response budget.
pub(crate) struct StreamChunk {
    pub(crate) bytes: Bytes,
    pub(crate) reserved: Option<ReservedBytes>,
}

enum Content {
    Empty,
    Full(Bytes),
    Pieces(VecDeque<Bytes>),
    /// A chunk that is ready, and those to come.
    Stream(Option<StreamChunk>, Pin<Box<dyn Stream<Item = StreamChunk> + Send>>),
}

impl Body {
    /// No bytes.
    pub fn empty() -> Self {
        Self::of(Content::Empty)
    }

    fn of(content: Content) -> Self {
        Self { content, reserved: None, in_flight: None, address_slot: None, unsent: None, labels: None }
    }

    /// One buffer.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::of(if bytes.is_empty() { Content::Empty } else { Content::Full(bytes) })
    }

    /// Buffers as they come; each is written out at once.
    pub(crate) fn stream(first: Option<StreamChunk>, later: Pin<Box<dyn Stream<Item = StreamChunk> + Send>>) -> Self {
        Self::of(Content::Stream(first, later))
    }

    /// Complete buffers, each written out when the client has room for it.
    pub(crate) fn pieces(pieces: VecDeque<Bytes>) -> Self {
        Self::of(if pieces.is_empty() { Content::Empty } else { Content::Pieces(pieces) })
    }

    /// The same body, with its reserved bytes.
    pub(crate) fn counted(mut self, reserved: Option<ReservedBytes>) -> Self {
        self.reserved = reserved;
        self
    }

    /// Gives it the labels of its request.
    pub(crate) fn label(&mut self, labels: RequestLabels) {
        self.labels = Some(labels);
    }

    /// Takes the labels of its request.
    pub(crate) fn take_labels(&mut self) -> Option<RequestLabels> {
        self.labels.take()
    }

    pub(crate) fn length(&self) -> Option<usize> {
        match &self.content {
            Content::Empty => Some(0),
            Content::Full(bytes) => Some(bytes.len()),
            Content::Pieces(pieces) => Some(pieces.iter().map(Bytes::len).sum()),
            Content::Stream(..) => None,
        }
    }

    /// The same body, which keeps its connection busy until it is sent.
    pub(crate) fn holding(mut self, in_flight: InFlight, address_slot: AddressSlot) -> Self {
        if !matches!(self.content, Content::Empty) {
            self.unsent = Some(in_flight.begin_piece());
        }
        self.in_flight = Some(in_flight);
        self.address_slot = address_slot;
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
                Poll::Ready(Some((bytes, this.reserved.take())))
            }
            Content::Pieces(pieces) => {
                let piece = pieces.pop_front();
                let reserved = match &mut this.reserved {
                    Some(reserved) if !pieces.is_empty() => piece.as_ref().map(|piece| reserved.split(piece.len())),
                    _ => this.reserved.take(),
                };
                if pieces.is_empty() {
                    this.content = Content::Empty;
                }
                Poll::Ready(piece.map(|piece| (piece, reserved)))
            }
            Content::Stream(first, later) => {
                let next = match first.take() {
                    Some(first) => Poll::Ready(Some(first)),
                    None => later.as_mut().poll_next(context),
                };
                next.map(|next| next.map(|chunk| (chunk.bytes, chunk.reserved)))
            }
        };
        let unsent = this.unsent.take();
        let Poll::Ready(next) = next else { return Poll::Pending };
        let Some((bytes, reserved)) = next else {
            this.content = Content::Empty;
            return Poll::Ready(None);
        };
        if let Content::Stream(..) | Content::Pieces(_) = this.content {
            this.unsent = this.in_flight.as_ref().map(InFlight::begin_piece);
        }
        let unsent = unsent.or_else(|| this.in_flight.as_ref().map(InFlight::begin_piece));
        Poll::Ready(Some(Ok(Frame::data(Piece { bytes, unsent, _reserved: reserved }))))
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
        if let Some(unsent) = &self.unsent {
            unsent.note_progress();
        }
    }
}

/// Cuts a large result into pieces.
pub(crate) fn split_into_pieces(bytes: Vec<u8>) -> VecDeque<Bytes> {
    if bytes.len() <= 2 * PIECE {
        return VecDeque::from([Bytes::from(bytes)]);
    }
    bytes.chunks(PIECE).map(Bytes::copy_from_slice).collect()
}
