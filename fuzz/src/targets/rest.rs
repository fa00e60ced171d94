//! REST requests: the first line of the input is the query, the rest is the body.

use switchboard_a2a::{Dialect, RestParts, decode_rest};

use super::params::{OPERATIONS, read};
use super::stable::one_line_of_json;

/// Reads the request as each operation, with and without the ids that a path gives.
pub fn target(data: &[u8]) {
    let (line, body) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let query = pairs(&String::from_utf8_lossy(line));
    for dialect in Dialect::ALL {
        for operation in OPERATIONS {
            for (task_id, config_id, tenant) in [(None, None, None), (Some("task"), Some("config"), Some("echo"))] {
                let parts = RestParts { task_id, config_id, tenant, query: &query, body };
                match decode_rest(dialect, operation, parts) {
                    Ok(request) => read(&request),
                    Err(error) => one_line_of_json(&error.encode_rest(dialect)),
                }
            }
        }
    }
}

fn pairs(line: &str) -> Vec<(String, String)> {
    let pair = |text: &str| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (text.to_owned(), String::new()),
    };
    line.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}
