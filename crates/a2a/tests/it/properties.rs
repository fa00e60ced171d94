//! What must hold for every task, message and part, and for every byte a peer may send.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::{
    Artifact, Dialect, Json, Message, Metadata, Operation, Part, PartContent, Request, RestParts, Role, StreamResponse,
    Task, TaskArtifactUpdate, TaskState, TaskStatus, TaskStatusUpdate, Timestamp, decode, decode_params, decode_rest,
    encode, jsonrpc,
};

const OPERATIONS: [Operation; 12] = [
    Operation::SendMessage,
    Operation::SendStreamingMessage,
    Operation::GetTask,
    Operation::ListTasks,
    Operation::CancelTask,
    Operation::SubscribeToTask,
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
    Operation::GetExtendedCard,
    Operation::GetCard,
];

/// JSON texts, with the numbers that a float or a 64-bit integer would spoil.
fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("18446744073709551617".to_owned()),
        Just("1e400".to_owned()),
        Just("0.10".to_owned()),
        Just("-0".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        ".{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let tree = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            vec(("[a-z]{1,5}", inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    tree.prop_map(|text| Json::parse(&text).unwrap())
}

pub(crate) fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    option::of(vec((".{1,6}", json()), 0..4).prop_map(|members| {
        let mut metadata = Metadata::default();
        for (key, value) in members {
            metadata.insert(key, value);
        }
        metadata
    }))
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".{0,12}".prop_map(PartContent::Text),
        vec(any::<u8>(), 0..12).prop_map(PartContent::Raw),
        ".{1,12}".prop_map(PartContent::Url),
        json().prop_map(PartContent::Data),
    ];
    (content, metadata(), option::of(".{1,5}"), option::of(".{1,5}"))
        .prop_map(|(content, metadata, filename, media_type)| Part { content, metadata, filename, media_type })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let ids = (".{1,5}", option::of(".{1,5}"), option::of(".{1,5}"));
    (ids, role, vec(part(), 0..4), metadata(), vec(".{0,5}", 0..2), vec(".{1,5}", 0..2)).prop_map(
        |((id, context, task), role, parts, metadata, extensions, references)| Message {
            message_id: id.into(),
            context_id: context.map(Into::into),
            task_id: task.map(Into::into),
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids: references.into_iter().map(Into::into).collect(),
        },
    )
}

fn status() -> impl Strategy<Value = TaskStatus> {
    let state = (0u64..9).prop_map(|number| TaskState::from_number(number).unwrap());
    (state, option::of(message()), option::of(0i64..253_402_300_799_999))
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp: timestamp.map(Timestamp) })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let names = (".{1,5}", option::of(".{1,5}"), option::of(".{1,5}"));
    (names, vec(part(), 0..4), metadata(), vec(".{0,5}", 0..2)).prop_map(
        |((id, name, description), parts, metadata, extensions)| Artifact {
            artifact_id: id.into(),
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    (".{1,5}", ".{0,5}", status(), vec(artifact(), 0..3), vec(message(), 0..3), metadata()).prop_map(
        |(id, context, status, artifacts, history, metadata)| Task {
            id: id.into(),
            context_id: context.into(),
            status,
            artifacts,
            history,
            metadata,
        },
    )
}

pub(crate) fn frame() -> impl Strategy<Value = StreamResponse> {
    let update = (".{1,5}", ".{0,5}", status(), metadata()).prop_map(|(task, context, status, metadata)| {
        TaskStatusUpdate { task_id: task.into(), context_id: context.into(), status, metadata }
    });
    let chunk = (".{1,5}", ".{0,5}", artifact(), any::<bool>(), any::<bool>(), metadata()).prop_map(
        |(task, context, artifact, append, last_chunk, metadata)| TaskArtifactUpdate {
            task_id: task.into(),
            context_id: context.into(),
            artifact,
            append,
            last_chunk,
            metadata,
        },
    );
    prop_oneof![
        task().prop_map(StreamResponse::Task),
        message().prop_map(StreamResponse::Message),
        update.prop_map(StreamResponse::StatusUpdate),
        chunk.prop_map(StreamResponse::ArtifactUpdate),
    ]
}

/// What v0.3 cannot carry: names and media types of text and data, and on REST the referenced tasks.
pub(crate) fn after_v03(mut frame: StreamResponse, dialect: Dialect) -> StreamResponse {
    fn parts(parts: &mut [Part]) {
        for part in parts {
            if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
                part.filename = None;
                part.media_type = None;
            }
            // Beside the flag for values that are no objects, an empty metadata object cannot be told from none.
            let is_wrapped = matches!(&part.content, PartContent::Data(value) if !value.is_object());
            part.metadata = part.metadata.take().filter(|metadata| !(is_wrapped && metadata.is_empty()));
        }
    }
    let message = |message: &mut Message| {
        parts(&mut message.parts);
        if dialect == Dialect::V03Rest {
            message.reference_task_ids.clear();
        }
    };
    match &mut frame {
        StreamResponse::Task(task) => {
            task.status.message.iter_mut().for_each(message);
            task.history.iter_mut().for_each(message);
            task.artifacts.iter_mut().for_each(|artifact| parts(&mut artifact.parts));
        }
        StreamResponse::Message(of) => message(of),
        StreamResponse::StatusUpdate(update) => update.status.message.iter_mut().for_each(message),
        StreamResponse::ArtifactUpdate(update) => parts(&mut update.artifact.parts),
    }
    frame
}

/// Everything that reads bytes from outside.
fn read_everything(bytes: &[u8]) {
    let _ = jsonrpc::parse(bytes);
    let _ = jsonrpc::depth_exceeds(bytes, 8);
    let _ = jsonrpc::parse_response(bytes, 64);
    let _ = AgentCard::decode(bytes).map(|card| card.encode(switchboard_a2a::card::CardFormat::Hybrid));
    for dialect in Dialect::ALL {
        let _ = decode::decode_list(dialect, bytes);
        let _ = decode::decode_send(dialect, bytes);
        if let Ok(frame) = decode::decode_stream(dialect, bytes) {
            for other in Dialect::ALL {
                encode::encode_stream(other, &frame, true);
            }
        }
        for operation in OPERATIONS {
            let parts = RestParts { task_id: Some("t"), config_id: Some("c"), body: bytes, ..RestParts::default() };
            let _ = decode_rest(dialect, operation, parts);
            if let Ok(raw) = serde_json::from_slice::<&RawValue>(bytes) {
                let _ = decode_params(dialect, operation, Some(raw));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The text of a time is that of the calendar, whatever second was written before it.
    #[test]
    fn timestamps_are_written_as_the_calendar_has_them(times in vec(prop_oneof![
        any::<i64>(),
        -62_200_000_000_000i64..253_500_000_000_000,
        1_800_000_000_000i64..1_800_000_003_000,
    ], 1..8)) {
        for time in times {
            let known = jiff::Timestamp::from_millisecond(time);
            let nearest = if time < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
            let expected = format!("{:.3}", known.unwrap_or(nearest));
            prop_assert_eq!(Timestamp(time).to_string(), expected.clone());
            prop_assert_eq!(serde_json::to_string(&Timestamp(time)).unwrap(), format!("\"{expected}\""));
        }
    }

    #[test]
    fn v1_is_lossless(frame in frame()) {
        let bytes = encode::encode_stream(Dialect::V1, &frame, false);
        let back = decode::decode_stream(Dialect::V1, &bytes).unwrap();
        prop_assert_eq!(&back, &frame);
        prop_assert_eq!(encode::encode_stream(Dialect::V1, &back, false), bytes);
    }

    #[test]
    fn v03_loses_only_what_it_cannot_carry(frame in frame(), is_final in any::<bool>()) {
        for dialect in [Dialect::V03Rpc, Dialect::V03Rest] {
            let bytes = encode::encode_stream(dialect, &frame, is_final);
            let back = decode::decode_stream(dialect, &bytes).unwrap();
            prop_assert_eq!(back, after_v03(frame.clone(), dialect));
        }
    }

    #[test]
    fn a_message_sent_is_the_message_read(message in message()) {
        prop_assume!(!message.parts.is_empty());
        for dialect in Dialect::ALL {
            let sent = encode::encode_send_message(dialect, &message);
            let sent = if dialect == Dialect::V03Rpc { [br#"{"message":"#, &sent[..], b"}"].concat() } else { sent };
            let parts = RestParts { body: &sent, ..RestParts::default() };
            let request = decode_rest(dialect, Operation::SendMessage, parts).unwrap();
            let Request::Send(send) = request else { panic!("{request:?}") };
            let mut expected = StreamResponse::Message(message.clone());
            if dialect != Dialect::V1 {
                expected = after_v03(expected, dialect);
            }
            prop_assert_eq!(StreamResponse::Message(send.message), expected);
        }
    }

    #[test]
    fn no_bytes_can_panic_a_reader(bytes in vec(any::<u8>(), 0..64)) {
        read_everything(&bytes);
    }

    #[test]
    fn no_json_can_panic_a_reader(value in json(), key in "(message|parts|task|id|config|name|data|\\$case|content|file|scheme|flows)") {
        read_everything(value.as_str().as_bytes());
        read_everything(format!("{{{key:?}:{}}}", value.as_str()).as_bytes());
        read_everything(format!("{{\"message\":{{\"messageId\":\"m\",\"role\":1,\"parts\":[{{{key:?}:{}}}]}}}}", value.as_str()).as_bytes());
    }

    #[test]
    fn no_cut_or_flipped_request_can_panic_a_reader(frame in frame(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for dialect in Dialect::ALL {
            let mut bytes = encode::encode_stream(dialect, &frame, true);
            let index = at.index(bytes.len());
            read_everything(&bytes[..index]);
            bytes[index] = byte;
            read_everything(&bytes);
        }
    }
}

#[test]
fn numbers_pass_through_untouched_in_every_dialect() {
    for number in ["18446744073709551617", "1e400", "0.10", "-0", "1E+2", "3.0"] {
        let object = format!(r#"{{"n":{number}}}"#);
        let mut part = Part::data(Json::parse(&object).unwrap());
        let metadata: Metadata = serde_json::from_str(&object).unwrap();
        part.metadata = Some(metadata.clone());
        let mut message = Message::text(Role::Agent, "");
        message.parts = vec![part];
        message.metadata = Some(metadata);
        for dialect in Dialect::ALL {
            let bytes = encode::encode_message(dialect, &message);
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert_eq!(text.matches(&object).count(), 3, "{text}");
            let back = decode::decode_message(dialect, &bytes).unwrap();
            assert_eq!(encode::encode_message(dialect, &back), bytes);
            assert_eq!(back, message);
        }
    }
}

#[test]
fn a_hundred_thousand_keys_are_read_in_linear_time() {
    let object = |count: usize| {
        let members: Vec<String> = (0..count).map(|number| format!("\"k{number}\":{number}")).collect();
        let task = r#""kind":"task","id":"t","contextId":"c","status":{"state":"completed"}"#;
        format!("{{{},{task},\"k1\":\"last\"}}", members.join(","))
    };
    let text = object(100_000);
    let metadata: Metadata = serde_json::from_str(&text).unwrap();
    assert_eq!(metadata.len(), 100_004);
    assert_eq!(metadata.get("k1").unwrap().as_str(), "\"last\"");

    // A frame without an envelope keeps its members until it is known what it is. With a scan for each key it would
    // take hundreds of times as long as the object alone.
    let text = object(20_000);
    let fastest = |read: &dyn Fn()| {
        let timed = |_| {
            let began = std::time::Instant::now();
            read();
            began.elapsed()
        };
        (0..5).map(timed).min().unwrap()
    };
    let frame = fastest(&|| assert!(matches!(serde_json::from_str(&text).unwrap(), StreamResponse::Task(_))));
    let alone = fastest(&|| drop(serde_json::from_str::<Metadata>(&text).unwrap()));
    assert!(frame < alone * 20, "{frame:?}, and {alone:?} for the object alone");
}

#[test]
fn a_time_is_read_and_written_the_same_whatever_was_read_before() {
    let texts = [
        "2026-01-02T03:04:05.678Z",
        "2026-01-02T03:04:05.001Z",
        "2026-01-02t03:04:05.002z",
        "2026-01-02T03:04:05.67Z",
        "2026-01-02T05:04:05+02:00",
        "2026-01-02T03:04:59.500Z",
        "2026-01-02T03:04:60.500Z",
        "1969-12-31T23:59:59.250Z",
        "20260102T030405.123456Z",
        "2026-01-02T03:04:05.6x8Z",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00123Z",
    ];
    // What was read last is kept by the thread.
    let fresh = |text: &'static str| {
        let read = std::thread::spawn(move || Timestamp::parse(text).map(|time| time.to_string()));
        read.join().unwrap()
    };
    let expected = texts.map(|text| (text, fresh(text)));
    assert_eq!(expected.iter().filter(|(_, written)| written.is_some()).count(), 9, "{expected:?}");
    for (before, _) in &expected {
        for (text, written) in &expected {
            Timestamp::parse(before);
            assert_eq!(Timestamp::parse(text).map(|time| time.to_string()), *written, "{text} after {before}");
        }
    }
}
