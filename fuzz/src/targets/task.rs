//! A task: what is read in a dialect and written in it again must be read as the same task.

use switchboard_a2a::Dialect;
use switchboard_a2a::decode::decode_task;
use switchboard_a2a::encode::{encode_send_task, encode_task};

use super::stable::stable;

/// Reads a task in each dialect.
pub fn target(data: &[u8]) {
    for dialect in Dialect::ALL {
        let Ok(task) = decode_task(dialect, data) else { continue };
        for written in Dialect::ALL {
            stable(written, &task, |task| encode_task(written, task), |bytes| decode_task(written, bytes));
            encode_send_task(written, &task);
        }
    }
}
