//! What the real SDK servers answer is read and written back as the same JSON, in all three dialects.

use serde_json::Value;
use switchboard_a2a::{Dialect, Operation, PushConfig, Request, SendResponse, StreamResponse, decode, encode};

use crate::capture::{self, Exchange};
use crate::json_eq::assert_same;

#[test]
fn every_sdk_answer_survives_reading_and_writing() {
    let mut compared = 0;
    for capture in capture::all("client-").into_iter().chain(capture::all("server-")) {
        for exchange in &capture.exchanges {
            if exchange.is_card() || !(200..300).contains(&exchange.status) {
                continue;
            }
            for theirs in exchange.results() {
                compared += usize::from(compare(&capture.name, exchange, &theirs));
            }
        }
    }
    assert!(compared > 400, "only {compared} answers were compared");
}

/// Whether there was anything to compare.
fn compare(name: &str, exchange: &Exchange, theirs: &Value) -> bool {
    let (dialect, operation, request) = exchange.decode();
    let bytes = serde_json::to_vec(theirs).unwrap();
    let ours = match operation {
        Operation::SendMessage => match decode::decode_send(dialect, &bytes).unwrap() {
            SendResponse::Task(task) => encode::encode_send_task(dialect, &task),
            SendResponse::Message(message) => encode::encode_send_message(dialect, &message),
        },
        Operation::GetTask | Operation::CancelTask => {
            encode::encode_task(dialect, &decode::decode_task(dialect, &bytes).unwrap())
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            let frame = decode::decode_stream(dialect, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            let inner = if dialect == Dialect::V03Rest { &theirs["statusUpdate"] } else { theirs };
            let is_final = inner["final"] == Value::Bool(true);
            let ours = encode::encode_stream(dialect, &frame, is_final);
            assert_eq!(transcoded(dialect, &frame, is_final), ours, "{name}");
            ours
        }
        Operation::ListTasks => {
            let Ok(Request::List(list)) = request else { panic!("{name}: {request:?}") };
            encode::encode_list(dialect, &decode::decode_list(dialect, &bytes).unwrap(), list.include_artifacts)
        }
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            encode::encode_push_config(dialect, &serde_json::from_slice::<PushConfig>(&bytes).unwrap())
        }
        Operation::ListPushConfigs => {
            let (configs, token) = decode::decode_push_list(&bytes).unwrap();
            encode::encode_push_list(dialect, &configs, &token)
        }
        Operation::DeletePushConfig | Operation::GetExtendedCard | Operation::GetCard => return false,
    };
    assert_same(name, &ours, theirs);
    true
}

/// The way a stored event goes: v1.0 bytes first, the reader's dialect after.
fn transcoded(dialect: Dialect, frame: &StreamResponse, is_final: bool) -> Vec<u8> {
    let stored = encode::encode_stream(Dialect::V1, frame, false);
    encode::from_v1(dialect, &stored, is_final).unwrap()
}
