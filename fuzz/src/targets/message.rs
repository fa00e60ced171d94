//! A message and its parts.

use switchboard_a2a::Dialect;
use switchboard_a2a::decode::decode_message;
use switchboard_a2a::encode::{encode_message, encode_send_message};

use super::stable::stable;

/// Reads a message in each dialect and writes it in each.
pub fn target(data: &[u8]) {
    for dialect in Dialect::ALL {
        let Ok(message) = decode_message(dialect, data) else { continue };
        for written in Dialect::ALL {
            stable(
                written,
                &message,
                |message| encode_message(written, message),
                |bytes| decode_message(written, bytes),
            );
            encode_send_message(written, &message);
        }
    }
}
