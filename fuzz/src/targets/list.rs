//! A page of tasks.

use switchboard_a2a::Dialect;
use switchboard_a2a::decode::decode_list;
use switchboard_a2a::encode::encode_list;

use super::stable::stable;

/// Reads a page in each dialect and writes it in each.
pub fn target(data: &[u8]) {
    for dialect in Dialect::ALL {
        let Ok(page) = decode_list(dialect, data) else { continue };
        for written in Dialect::ALL {
            stable(written, &page, |page| encode_list(written, page, true), |bytes| decode_list(written, bytes));
            encode_list(written, &page, false);
        }
    }
}
