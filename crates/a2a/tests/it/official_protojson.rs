//! Our v1.0 JSON through the official protocol buffer types and back: it is proto JSON, member for member.
//!
//! Those types refuse members they do not know, so this also shows that we send none of our own making.

use a2a_pb::protojson;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_a2a::card::{AgentCard, CardFormat};
use switchboard_a2a::{Dialect, encode};

use crate::capture;
use crate::json_eq::{assert_same, even_out};
use crate::properties::frame;

fn through<T: DeserializeOwned + Serialize>(ours: &[u8]) -> Result<Value, serde_json::Error> {
    let theirs: T = serde_json::from_slice(ours)?;
    serde_json::to_value(&theirs)
}

/// What a protocol buffer does not print: the first value of an enum, a null, and what is empty without them.
fn without_nothing(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_nothing).collect(),
        Value::Object(members) => {
            let is_first = |value: &Value| value.as_str().is_some_and(|text| text.ends_with("_UNSPECIFIED"));
            let is_kept = |(_, value): &(String, Value)| *value != json!({}) && !value.is_null() && !is_first(value);
            members.into_iter().map(|(key, value)| (key, without_nothing(value))).filter(is_kept).collect()
        }
        other => other,
    }
}

/// Their reader of free values takes integers of 32 bits only; a larger one is none of its business.
fn with_numbers_for_them(value: Value) -> Value {
    match value {
        Value::Number(number) if !number.is_f64() && number.as_i64().is_none_or(|n| i32::try_from(n).is_err()) => {
            json!(7)
        }
        Value::Array(items) => items.into_iter().map(with_numbers_for_them).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, with_numbers_for_them(value))).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn frames(frame in frame()) {
        let ours = encode::encode_stream(Dialect::V1, &frame, false);
        // A number that has no place in 64 bits is read by this crate alone.
        let ours = String::from_utf8(ours).unwrap().replace("1e400", "7");
        let ours = with_numbers_for_them(serde_json::from_str(&ours).unwrap());
        let back = through::<protojson::StreamResponse>(&serde_json::to_vec(&ours).unwrap()).unwrap();
        prop_assert_eq!(without_nothing(even_out(&back)), without_nothing(even_out(&ours)));
    }
}

#[test]
fn cards() {
    for name in ["js-1.3.0/server-http-card.http", "python-1.3.0/server-compat03-http-card.http"] {
        let body = capture::one(name).exchanges[0].results().pop().unwrap();
        let card = AgentCard::decode(&serde_json::to_vec(&body).unwrap()).unwrap();
        let v1 = card.encode(CardFormat::V1);
        assert_same(name, &v1, &through::<protojson::AgentCard>(&v1).unwrap());
    }
}
