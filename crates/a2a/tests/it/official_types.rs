//! Our v1.0 JSON through the types of the official Rust SDK and back: what it reads is what we wrote.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_a2a::card::{AgentCard, CardFormat};
use switchboard_a2a::{Dialect, Operation, Request, Role, decode_params, encode};

use crate::capture;
use crate::json_eq::{assert_same, even_out};
use crate::properties::frame;

proptest! {
    #[test]
    fn frames(frame in frame()) {
        let ours = encode::encode_stream(Dialect::V1, &frame, false);
        // Their metadata is a tree of 64-bit numbers, which has no place for this one.
        prop_assume!(!ours.windows(5).any(|window| window == b"1e400"));
        let theirs: a2a::StreamResponse = serde_json::from_slice(&ours).unwrap();
        let back = serde_json::to_value(&theirs).unwrap();
        let ours: Value = serde_json::from_slice(&ours).unwrap();
        prop_assert_eq!(without_empty_metadata(even_out(&back)), without_empty_metadata(even_out(&ours)));
    }
}

/// Their parts do not print an empty metadata object.
fn without_empty_metadata(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_empty_metadata).collect(),
        Value::Object(members) => {
            let is_kept = |(key, value): &(String, Value)| key != "metadata" || *value != json!({});
            members.into_iter().filter(is_kept).map(|(key, value)| (key, without_empty_metadata(value))).collect()
        }
        other => other,
    }
}

#[test]
fn a_request_built_with_the_official_types_is_read() {
    let mut message = a2a::Message::new(a2a::Role::User, vec![a2a::Part::text("hi")]);
    message.context_id = Some("c".to_owned());
    let request = a2a::SendMessageRequest {
        message,
        configuration: Some(a2a::SendMessageConfiguration {
            accepted_output_modes: Some(vec!["text/plain".to_owned()]),
            task_push_notification_config: None,
            history_length: Some(0),
            return_immediately: Some(true),
        }),
        metadata: None,
        tenant: Some("acme".to_owned()),
    };
    let raw = RawValue::from_string(serde_json::to_string(&request).unwrap()).unwrap();
    let read = decode_params(Dialect::V1, Operation::SendMessage, Some(&raw)).unwrap();
    let Request::Send(send) = read else { panic!("{read:?}") };
    let configuration = send.configuration.unwrap();
    assert_eq!((send.tenant.as_deref(), send.message.role), (Some("acme"), Role::User));
    assert_eq!(send.message.joined_text(), "hi");
    assert_eq!(configuration.accepted_output_modes, ["text/plain"]);
    assert_eq!((configuration.history_length, configuration.return_immediately), (Some(0), true));
}

#[test]
fn cards() {
    for name in ["js-1.3.0/server-http-card.http", "python-1.3.0/server-compat03-http-card.http"] {
        let body = capture::one(name).exchanges[0].results().pop().unwrap();
        let card = AgentCard::decode(&serde_json::to_vec(&body).unwrap()).unwrap();
        let v1 = card.encode(CardFormat::V1);
        let theirs: a2a::AgentCard = serde_json::from_slice(&v1).unwrap();
        assert_same(name, &v1, &serde_json::to_value(&theirs).unwrap());
        let from_hybrid: a2a::AgentCard = serde_json::from_slice(&card.encode(CardFormat::Hybrid)).unwrap();
        assert_eq!(from_hybrid, theirs, "{name}: the hybrid card reads as the v1.0 card");
    }
}
