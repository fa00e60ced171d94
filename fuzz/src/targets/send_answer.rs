//! What a sent message is answered with: a task or a message.

use switchboard_a2a::decode::decode_send;
use switchboard_a2a::encode::{encode_send_message, encode_send_task};
use switchboard_a2a::{Dialect, SendResponse};

use super::stable::stable;

/// Reads an answer in each dialect and writes it in each.
pub fn target(data: &[u8]) {
    for dialect in Dialect::ALL {
        let Ok(answer) = decode_send(dialect, data) else { continue };
        for written in Dialect::ALL {
            let write = |answer: &SendResponse| match answer {
                SendResponse::Task(task) => encode_send_task(written, task),
                SendResponse::Message(message) => encode_send_message(written, message),
            };
            stable(written, &answer, write, |bytes| decode_send(written, bytes));
        }
    }
}
