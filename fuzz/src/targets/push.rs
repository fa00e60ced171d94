//! Webhook configurations.

use switchboard_a2a::decode::decode_push_list;
use switchboard_a2a::encode::{encode_push_config, encode_push_list};
use switchboard_a2a::{Dialect, PushConfig};

use super::stable::{one_line_of_json, stable};

/// Reads one configuration and a list of them.
pub fn target(data: &[u8]) {
    if let Ok((configs, token)) = decode_push_list(data) {
        for written in Dialect::ALL {
            one_line_of_json(&encode_push_list(written, &configs, &token));
        }
        stable(
            Dialect::V1,
            &(configs, token),
            |(configs, token)| encode_push_list(Dialect::V1, configs, token),
            decode_push_list,
        );
    }
    if let Ok(config) = serde_json::from_slice::<PushConfig>(data) {
        for written in Dialect::ALL {
            stable(
                written,
                &config,
                |config| encode_push_config(written, config),
                |bytes| serde_json::from_slice(bytes),
            );
        }
    }
}
