//! Event streams of peers: the same events however the bytes are cut, and every event is read without harm.

use switchboard_a2a::Dialect;
use switchboard_a2a::encode::encode_stream;
use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::sse::{Event, EventReader, Frame, ReadError};

use super::stable::{one_line_of_json, stable};

/// Small enough that inputs reach it, large enough for what real peers sent.
const LIMIT: usize = 2048;

/// Reads the stream whole, byte by byte, and in pieces whose sizes the bytes themselves decide.
pub fn target(data: &[u8]) {
    let (events, failure) = read([data]);
    assert_eq!(read(data.chunks(1)), (events.clone(), failure), "byte by byte");
    assert_eq!(read(pieces(data)), (events.clone(), failure), "in pieces");
    for event in &events {
        let size =
            event.data.len() + event.name.as_ref().map_or(0, String::len) + event.id.as_ref().map_or(0, String::len);
        assert!(size <= LIMIT, "{size} bytes in {event:?}");
        for dialect in Dialect::ALL {
            match event.decode(dialect) {
                Ok(Frame::Response(frame)) => stable(
                    Dialect::V1,
                    &*frame,
                    |frame| encode_stream(Dialect::V1, frame, false),
                    |bytes| switchboard_a2a::decode::decode_stream(Dialect::V1, bytes),
                ),
                Ok(Frame::Error(error)) => one_line_of_json(&error.encode_json_rpc(dialect, &RpcId::NULL)),
                Ok(Frame::Done | Frame::Ignored) | Err(_) => {}
            }
        }
    }
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<ReadError>) {
    let mut reader = EventReader::new(LIMIT);
    pieces.into_iter().for_each(|piece| reader.feed(piece));
    reader.finish();
    let mut events = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(failure) => return (events, Some(failure)),
        }
    }
}

/// Empty pieces too.
fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = data;
    while let Some(first) = rest.first() {
        let (piece, after) = rest.split_at(rest.len().min(usize::from(first % 23)));
        pieces.extend([piece, &after[..after.len().min(1)]]);
        rest = after.get(1..).unwrap_or_default();
    }
    pieces
}
