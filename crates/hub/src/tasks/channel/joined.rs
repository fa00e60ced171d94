//! One message out of several that were said in a burst: what each says behind `[1/3]`, and in a room of several people who
//! says it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use switchboard_a2a::{ContextId, Json, Message, Metadata, Part, Role};
use switchboard_engine::fold::NumberedMessage;

/// Metadata key of where a message comes from, and where an answer goes.
pub(crate) const CHANNEL_KEY: &str = "switchboard/channel";

/// Where and by whom something is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    pub(crate) platform: String,
    pub(crate) channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dm: bool,
    /// Of an answer, those who are answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) users: Vec<String>,
    /// The chat platform's own ids of the messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) message_ids: Vec<String>,
}

impl Origin {
    /// Of a message that came over a channel.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        message.metadata.as_ref()?.get(CHANNEL_KEY)?.read().ok()
    }

    /// As metadata.
    pub(crate) fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::default();
        if let Ok(origin) = Json::from_serialize(self) {
            metadata.insert(CHANNEL_KEY, origin);
        }
        metadata
    }
}

/// How many bytes a message adds to what is joined, about.
pub(crate) fn bytes(message: &Message) -> usize {
    serde_json::to_vec(&message.parts).map_or(usize::MAX, |parts| parts.len())
}

/// Joins messages. The id is left to the call, whose key makes it.
pub(crate) fn join(messages: &[NumberedMessage], context: &ContextId) -> Message {
    let said: Vec<(&Message, Origin)> = messages
        .iter()
        .map(|numbered| &numbered.received.message)
        .map(|message| (message, Origin::of(message).unwrap_or_default()))
        .collect();
    let users: BTreeSet<&String> = said.iter().flat_map(|(_, origin)| &origin.users).collect();
    let mut parts = Vec::new();
    for (index, (message, origin)) in said.iter().enumerate() {
        let mut mark = String::new();
        if said.len() > 1 {
            mark = format!("[{}/{}] ", index + 1, said.len());
            // Whoever is alone need not be named.
            if let (Some(user), true) = (origin.users.first(), users.len() > 1) {
                mark.push_str(&format!("{user}: "));
            }
        }
        add(&mut parts, &mark, &message.parts);
    }
    let first = said.first().map(|(_, origin)| origin.clone()).unwrap_or_default();
    let origin = Origin {
        users: users.into_iter().cloned().collect(),
        message_ids: said.iter().flat_map(|(_, origin)| origin.message_ids.clone()).collect(),
        ..first
    };
    Message {
        context_id: Some(context.clone()),
        parts,
        metadata: Some(origin.metadata()),
        ..Message::text(Role::User, "")
    }
}

/// Adds what one message says, its text behind the mark, a line for each.
fn add(parts: &mut Vec<Part>, mark: &str, said: &[Part]) {
    let begins_with_text = said.first().is_some_and(Part::is_bare_text);
    if !begins_with_text && !mark.is_empty() {
        add_text(parts, mark.trim_end());
    }
    for (index, part) in said.iter().enumerate() {
        match part.as_text().filter(|_| part.is_bare_text()) {
            Some(text) if index == 0 => add_text(parts, &format!("{mark}{text}")),
            Some(text) => add_text(parts, text),
            None => parts.push(part.clone()),
        }
    }
}

fn add_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(last) if last.is_bare_text() => last.push_text(&Part::text(format!("\n{text}"))),
        _ => parts.push(Part::text(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard_a2a::Timestamp;
    use switchboard_engine::event::Received;

    use super::*;

    fn said(user: &str, parts: Vec<Part>) -> NumberedMessage {
        let origin = Origin { platform: "slack".into(), users: vec![user.to_owned()], ..Origin::default() };
        let message = Message { parts, metadata: Some(origin.metadata()), ..Message::text(Role::User, "") };
        NumberedMessage { seq: 1, received: Arc::new(Received::new(message, Timestamp(0))) }
    }

    #[test]
    fn several_messages_are_numbered_and_named_where_several_people_speak() {
        let context = ContextId::from("c");
        let text = |text: &str| vec![Part::text(text)];
        let one = join(&[said("ann", text("hello"))], &context);
        assert_eq!(one.joined_text(), "hello");
        let alone = join(&[said("ann", text("hello")), said("ann", text("there"))], &context);
        assert_eq!((alone.joined_text().as_str(), alone.parts.len()), ("[1/2] hello\n[2/2] there", 1));
        let data = Part::data(Json::from_serialize(&serde_json::json!({ "file": 1 })).unwrap_or_else(|_| panic!()));
        let two = join(&[said("ann", text("hello")), said("bob", vec![data, Part::text("see")])], &context);
        assert_eq!(two.joined_text(), "[1/2] ann: hello\n[2/2] bob:\nsee");
        assert_eq!(two.parts.len(), 3);
        assert_eq!(Origin::of(&two).map(|origin| origin.users), Some(vec!["ann".to_owned(), "bob".to_owned()]));
    }
}
