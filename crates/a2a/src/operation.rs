//! The operations of the protocol and every JSON-RPC method name they are called by: one table.

use std::fmt;

use crate::Version;

/// What a caller can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Send a message and wait for one answer.
    SendMessage,
    /// Send a message and watch what follows.
    SendStreamingMessage,
    /// Read one task.
    GetTask,
    /// Read many tasks.
    ListTasks,
    /// Stop a task.
    CancelTask,
    /// Watch a task that exists.
    SubscribeToTask,
    /// Register a webhook.
    CreatePushConfig,
    /// Read a webhook.
    GetPushConfig,
    /// Read a task's webhooks.
    ListPushConfigs,
    /// Remove a webhook.
    DeletePushConfig,
    /// Read the card for authenticated callers.
    GetExtendedCard,
    /// Read the public card. No version of the protocol has this over JSON-RPC; older clients call it.
    GetCard,
}

/// The first name of an operation in a version is the one we send; the others are only accepted.
const METHODS: [(&str, Version, Operation); 26] = [
    ("SendMessage", Version::V1, Operation::SendMessage),
    ("SendStreamingMessage", Version::V1, Operation::SendStreamingMessage),
    ("GetTask", Version::V1, Operation::GetTask),
    ("ListTasks", Version::V1, Operation::ListTasks),
    ("CancelTask", Version::V1, Operation::CancelTask),
    ("SubscribeToTask", Version::V1, Operation::SubscribeToTask),
    ("CreateTaskPushNotificationConfig", Version::V1, Operation::CreatePushConfig),
    ("GetTaskPushNotificationConfig", Version::V1, Operation::GetPushConfig),
    ("ListTaskPushNotificationConfigs", Version::V1, Operation::ListPushConfigs),
    ("ListTaskPushNotificationConfig", Version::V1, Operation::ListPushConfigs),
    ("DeleteTaskPushNotificationConfig", Version::V1, Operation::DeletePushConfig),
    ("GetExtendedAgentCard", Version::V1, Operation::GetExtendedCard),
    ("GetAgentCard", Version::V1, Operation::GetCard),
    ("message/send", Version::V03, Operation::SendMessage),
    ("message/stream", Version::V03, Operation::SendStreamingMessage),
    ("message/sendStream", Version::V03, Operation::SendStreamingMessage),
    ("tasks/get", Version::V03, Operation::GetTask),
    ("tasks/list", Version::V03, Operation::ListTasks),
    ("tasks/cancel", Version::V03, Operation::CancelTask),
    ("tasks/resubscribe", Version::V03, Operation::SubscribeToTask),
    ("tasks/pushNotificationConfig/set", Version::V03, Operation::CreatePushConfig),
    ("tasks/pushNotificationConfig/get", Version::V03, Operation::GetPushConfig),
    ("tasks/pushNotificationConfig/list", Version::V03, Operation::ListPushConfigs),
    ("tasks/pushNotificationConfig/delete", Version::V03, Operation::DeletePushConfig),
    ("agent/getAuthenticatedExtendedCard", Version::V03, Operation::GetExtendedCard),
    ("agent/authenticatedExtendedCard", Version::V03, Operation::GetExtendedCard),
];

impl Operation {
    /// The version and operation a JSON-RPC method name stands for. The two sets of names are disjoint.
    pub fn from_method(method: &str) -> Option<(Version, Self)> {
        let (_, version, operation) = METHODS.iter().find(|(name, _, _)| *name == method)?;
        Some((*version, *operation))
    }

    /// The JSON-RPC method name of this operation in a version; empty where it has none.
    pub fn method(self, version: Version) -> &'static str {
        let named = METHODS.iter().find(|(_, of, operation)| *of == version && *operation == self);
        named.map_or("", |(name, _, _)| name)
    }

    /// Whether it is answered with a stream.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

/// The name it has in v1.0.
impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.method(Version::V1))
    }
}
