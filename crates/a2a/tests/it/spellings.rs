//! One lenient reader: the same value in every spelling that peers have been seen to send.

use switchboard_a2a::{
    Dialect, Json, Message, Operation, Part, PartContent, Role, StreamResponse, TaskState, TaskStatus, Version, decode,
    parse_version,
};

fn part(json: &str) -> Part {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn parts() {
    for text in [
        r#"{"text":"hi"}"#,
        r#"{"kind":"text","text":"hi"}"#,
        r#"{"type":"text","text":"hi","unknown":{"a":1}}"#,
        r#"{"content":{"$case":"text","value":"hi"}}"#,
        r#"{"text":"hi","filename":"","mediaType":"","metadata":null}"#,
        r#"{"raw":"","text":"hi","url":"","data":null}"#,
    ] {
        assert_eq!(part(text), Part::text("hi"), "{text}");
    }
    let file = Part {
        content: PartContent::Raw(b"hi?>".to_vec()),
        metadata: None,
        filename: Some("a".to_owned()),
        media_type: Some("t/p".to_owned()),
    };
    for text in [
        r#"{"raw":"aGk/Pg==","filename":"a","mediaType":"t/p"}"#,
        r#"{"raw":"aGk/Pg","filename":"a","media_type":"t/p"}"#,
        r#"{"raw":"aGk_Pg==","filename":"a","mediaType":"t/p"}"#,
        r#"{"raw":"aGk_Pg","filename":"a","mediaType":"t/p"}"#,
        r#"{"kind":"file","file":{"bytes":"aGk/Pg==","name":"a","mimeType":"t/p"}}"#,
        r#"{"kind":"file","file":{"fileWithBytes":"aGk/Pg==","name":"a","mimeType":"t/p"}}"#,
        r#"{"type":"file","file":{"data":"aGk/Pg==","name":"a","mime_type":"t/p"}}"#,
        r#"{"file":{"file_with_bytes":"aGk/Pg==","name":"a","mime_type":"t/p"}}"#,
        r#"{"content":{"$case":"raw","value":"aGk/Pg=="},"filename":"a","mediaType":"t/p"}"#,
    ] {
        assert_eq!(part(text), file, "{text}");
    }
    let link = PartContent::Url("http://x".to_owned());
    for text in [
        r#"{"url":"http://x"}"#,
        r#"{"kind":"file","file":{"uri":"http://x"}}"#,
        r#"{"file":{"fileWithUri":"http://x"}}"#,
        r#"{"kind":"file","file":{"uri":"http://x","bytes":""}}"#,
    ] {
        assert_eq!(part(text).content, link, "{text}");
    }
    for (text, value) in [
        (r#"{"data":null}"#, "null"),
        (r#"{"data":{"a":[1, 2]}}"#, r#"{"a":[1,2]}"#),
        (r#"{"kind":"data","data":{"value":[1]},"metadata":{"data_part_compat":true}}"#, "[1]"),
        (r#"{"metadata":{"data_part_compat":true},"data":{"value":[1]},"kind":"data"}"#, "[1]"),
        (r#"{"data":{"value":[1]},"metadata":{"data_part_compat":true}}"#, r#"{"value":[1]}"#),
        (r#"{"content":{"$case":"data","value":7}}"#, "7"),
    ] {
        assert_eq!(part(text).content, PartContent::Data(Json::parse(value).unwrap()), "{text}");
    }
    let kept = part(r#"{"kind":"data","data":{"value":1},"metadata":{"data_part_compat":true,"k":1}}"#);
    assert_eq!(serde_json::to_string(&kept.metadata).unwrap(), r#"{"k":1}"#);
    for bad in ["{}", "[]", "null", r#"{"kind":"video"}"#, r#"{"file":{}}"#, r#"{"content":{"$case":"x","value":1}}"#] {
        assert!(serde_json::from_str::<Part>(bad).is_err(), "{bad}");
    }
}

#[test]
fn roles_and_states() {
    for text in ["\"ROLE_USER\"", "\"user\"", "1"] {
        assert_eq!(serde_json::from_str::<Role>(text).unwrap(), Role::User);
    }
    assert!(serde_json::from_str::<Role>("\"king\"").is_err());
    for (text, state) in [
        ("\"TASK_STATE_CANCELED\"", TaskState::Canceled),
        ("\"TASK_STATE_CANCELLED\"", TaskState::Canceled),
        ("\"canceled\"", TaskState::Canceled),
        ("\"cancelled\"", TaskState::Canceled),
        ("5", TaskState::Canceled),
        ("\"input-required\"", TaskState::InputRequired),
        ("\"input_required\"", TaskState::InputRequired),
        ("\"TASK_STATE_AUTH_REQUIRED\"", TaskState::AuthRequired),
        ("\"unknown\"", TaskState::Unspecified),
        ("\"TASK_STATE_FROM_THE_FUTURE\"", TaskState::Unspecified),
        ("99", TaskState::Unspecified),
    ] {
        assert_eq!(serde_json::from_str::<TaskState>(text).unwrap(), state, "{text}");
    }
    let status: TaskStatus = serde_json::from_str(r#"{"state":null,"message":null,"timestamp":null}"#).unwrap();
    assert_eq!(status.state, TaskState::Unspecified);
    let status: TaskStatus =
        serde_json::from_str(r#"{"state":"working","update":{"message_id":"m","role":"agent","content":[]}}"#).unwrap();
    assert_eq!(status.message.unwrap().message_id.as_str(), "m");
}

#[test]
fn messages_in_snake_case_and_with_nulls() {
    let message: Message = serde_json::from_str(
        r#"{"kind":"message","message_id":"m","context_id":"","task_id":null,"role":"user","content":[{"text":"a"}],
            "metadata":null,"extensions":null,"reference_task_ids":["t"]}"#,
    )
    .unwrap();
    assert_eq!((message.context_id, message.task_id), (None, None));
    assert_eq!((message.parts.len(), message.reference_task_ids.len()), (1, 1));
}

#[test]
fn frames_with_and_without_discriminators() {
    let kind = |json: &str| match serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")) {
        StreamResponse::Task(_) => "task",
        StreamResponse::Message(_) => "message",
        StreamResponse::StatusUpdate(_) => "status",
        StreamResponse::ArtifactUpdate(_) => "artifact",
    };
    let status = r#""status":{"state":"working"}"#;
    assert_eq!(kind(&format!(r#"{{"task":{{"id":"t",{status}}}}}"#)), "task");
    assert_eq!(kind(&format!(r#"{{"message":null,"task":{{"id":"t",{status}}},"extra":1}}"#)), "task");
    assert_eq!(kind(&format!(r#"{{"id":"t","kind":"task",{status}}}"#)), "task");
    assert_eq!(kind(&format!(r#"{{"id":"t","contextId":"c",{status}}}"#)), "task");
    assert_eq!(kind(r#"{"messageId":"m","taskId":"t","role":"agent","parts":[]}"#), "message");
    assert_eq!(kind(r#"{"msg":{"messageId":"m","role":"agent","content":[]}}"#), "message");
    assert_eq!(kind(&format!(r#"{{"taskId":"t","contextId":"c",{status},"final":true}}"#)), "status");
    assert_eq!(kind(&format!(r#"{{"type":"TaskStatusUpdateEvent","taskId":"t",{status}}}"#)), "status");
    assert_eq!(kind(&format!(r#"{{"status_update":{{"task_id":"t","context_id":"c",{status}}}}}"#)), "status");
    assert_eq!(kind(r#"{"taskId":"t","artifact":{"artifactId":"a","parts":[]},"append":null}"#), "artifact");
    assert!(serde_json::from_str::<StreamResponse>(r#"{"novelty":{}}"#).is_err());
}

#[test]
fn method_names_and_versions() {
    for (method, version, operation) in [
        ("SendMessage", Version::V1, Operation::SendMessage),
        ("GetAgentCard", Version::V1, Operation::GetCard),
        ("ListTaskPushNotificationConfigs", Version::V1, Operation::ListPushConfigs),
        ("message/sendStream", Version::V03, Operation::SendStreamingMessage),
        ("tasks/list", Version::V03, Operation::ListTasks),
        ("tasks/resubscribe", Version::V03, Operation::SubscribeToTask),
        ("tasks/pushNotificationConfig/set", Version::V03, Operation::CreatePushConfig),
    ] {
        assert_eq!(Operation::from_method(method), Some((version, operation)), "{method}");
    }
    assert_eq!(Operation::from_method("sendmessage"), None);
    assert_eq!(Operation::SubscribeToTask.method(Version::V03), "tasks/resubscribe");
    assert_eq!(Operation::GetExtendedCard.method(Version::V1), "GetExtendedAgentCard");
    for (text, spoken) in [
        ("1.0", Some(Version::V1)),
        ("1.0.7", Some(Version::V1)),
        (" 0.3 ", Some(Version::V03)),
        ("0.3.0", Some(Version::V03)),
        ("1.1", None),
        ("9.9", None),
    ] {
        assert_eq!(parse_version(text).unwrap().spoken(), spoken, "{text}");
    }
    for text in ["", "1", "1.", "v1.0", "1.0.0.0", "1.0-rc", "+1.0", "1.0."] {
        assert_eq!(parse_version(text), None, "{text}");
    }
}

#[test]
fn a_page_of_tasks_may_be_a_bare_array() {
    let page = decode::decode_list(Dialect::V03Rpc, br#" [{"kind":"task","id":"t1","status":{"state":"working"}}]"#);
    let page = page.unwrap();
    assert_eq!((page.tasks[0].id.as_str(), page.tasks[0].status.state), ("t1", TaskState::Working));
    assert_eq!((page.next_page_token.as_str(), page.page_size, page.total_size), ("", 1, 1));
}
