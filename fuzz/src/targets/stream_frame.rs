//! One frame of a stream, and the translation of a stored frame for v0.3 readers.

use switchboard_a2a::Dialect;
use switchboard_a2a::decode::decode_stream;
use switchboard_a2a::encode::{encode_stream, from_v1};

use super::stable::{one_line_of_json, stable};

/// Reads a frame in each dialect and writes it in each.
pub fn target(data: &[u8]) {
    for dialect in Dialect::ALL {
        let Ok(frame) = decode_stream(dialect, data) else { continue };
        let stored = encode_stream(Dialect::V1, &frame, false);
        for written in Dialect::ALL {
            for is_final in [false, true] {
                stable(
                    written,
                    &frame,
                    |frame| encode_stream(written, frame, is_final),
                    |bytes| decode_stream(written, bytes),
                );
                match from_v1(written, &stored, is_final) {
                    Ok(translated) => one_line_of_json(&translated),
                    Err(error) => panic!("our own frame is not readable: {error}"),
                }
            }
        }
    }
}
