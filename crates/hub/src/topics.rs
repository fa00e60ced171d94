//! Topics that others may write: those of the hub itself are not for others.

/// The first words of topics that only the hub writes, and of those that earlier hubs kept to themselves.
const RESERVED: [&str; 18] = [
    "task",
    "outcome",
    "inbox",
    "hitl",
    "flow.item",
    "ceremony",
    "dispatch",
    "world.state",
    "operator.message",
    "hub",
    "remote",
    "webhook",
    "alert",
    "audit",
    "gap",
    "agent.skill",
    "agent.input",
    "message.inbound",
];
const RESERVED_BY_EARLIER_HUBS: [&str; 3] = ["cron", "command", "autonomous"];
const TOPIC_BYTES: usize = 256;

/// Whether a text is words with dots between.
pub(crate) fn is_topic(topic: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    topic.len() <= TOPIC_BYTES && topic.split('.').all(is_word)
}

/// Whether only this server writes a topic.
pub(crate) fn is_reserved(topic: &str) -> bool {
    let begins =
        |prefix: &&str| topic.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    RESERVED.iter().chain(&RESERVED_BY_EARLIER_HUBS).any(begins)
}
