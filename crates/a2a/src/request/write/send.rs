//! A message to send, with how it shall be answered.

use super::written_history_length;
use crate::v03::{NestedPushConfig, view};
use crate::write_json::{Object, to_bytes};
use crate::{Dialect, SendConfiguration, SendRequest};

/// The parameters, or the body on REST.
pub(super) fn body(dialect: Dialect, request: &SendRequest) -> Vec<u8> {
    if dialect == Dialect::V1 {
        return to_bytes(request);
    }
    let by_default = SendConfiguration::default();
    let configuration = request.configuration.as_ref().unwrap_or(&by_default);
    Object::default()
        .member("message", &view(dialect, &request.message))
        .encoded("configuration", &v03_configuration(dialect, configuration).end())
        .optional("metadata", request.metadata.as_ref())
        .end()
}

/// `blocking` is always written, because servers disagree about its default. The task of the webhook is never written: it
/// is the one the message makes or names.
fn v03_configuration(dialect: Dialect, configuration: &SendConfiguration) -> Object {
    let SendConfiguration { accepted_output_modes, task_push_notification_config, history_length, return_immediately } =
        configuration;
    let push = if dialect == Dialect::V03Rest { "pushNotification" } else { "pushNotificationConfig" };
    Object::default()
        .member("blocking", &!return_immediately)
        .optional("acceptedOutputModes", (!accepted_output_modes.is_empty()).then_some(accepted_output_modes))
        .optional("historyLength", written_history_length(dialect, *history_length).as_ref())
        .optional(push, task_push_notification_config.as_ref().map(NestedPushConfig).as_ref())
}
