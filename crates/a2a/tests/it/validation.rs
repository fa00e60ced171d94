//! Requests that must be refused, and the field the refusal names.

use serde_json::value::RawValue;
use switchboard_a2a::{
    Dialect, Error, ErrorKind, Operation, PushRequest, Request, RestParts, decode_params, decode_rest,
};

fn params(dialect: Dialect, operation: Operation, json: &str) -> Result<Request, Error> {
    let raw = RawValue::from_string(json.to_owned()).unwrap();
    decode_params(dialect, operation, Some(&raw))
}

#[track_caller]
fn refused(operation: Operation, json: &str, field: &str) {
    let error = params(Dialect::V1, operation, json).expect_err(json);
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{json}: {error}");
    let fields: Vec<&str> = error.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert!(fields.contains(&field), "{json}: {fields:?} lacks {field}: {error}");
}

#[test]
fn a_bad_message_is_refused_by_the_path_of_its_fault() {
    let send = Operation::SendMessage;
    refused(send, "{}", "message");
    refused(send, r#"{"message":null}"#, "message");
    refused(send, r#"{"message":[]}"#, "message");
    refused(send, r#"{"message":"hi"}"#, "message");
    refused(send, r#"{"message":{"role":"ROLE_USER","parts":[{"text":"a"}]}}"#, "message.messageId");
    refused(send, r#"{"message":{"messageId":"","role":"ROLE_USER","parts":[{"text":"a"}]}}"#, "message.messageId");
    refused(send, r#"{"message":{"messageId":7,"role":"ROLE_USER","parts":[{"text":"a"}]}}"#, "message.messageId");
    refused(send, r#"{"message":{"messageId":"m","parts":[{"text":"a"}]}}"#, "message.role");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_KING","parts":[{"text":"a"}]}}"#, "message.role");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}"#, "message.parts");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#, "message.parts");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":{}}}"#, "message.parts");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{}]}}"#, "message.parts[1]");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":7}]}}"#, "message.parts[0].text");
    refused(send, r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"%%"}]}}"#, "message.parts[0]");
    refused(
        send,
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","url":"b"}]}}"#,
        "message.parts[0]",
    );
    let good = r#""message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]}"#;
    refused(send, &format!(r#"{{{good},"configuration":[]}}"#), "configuration");
    refused(send, &format!(r#"{{{good},"configuration":{{"historyLength":-1}}}}"#), "configuration.historyLength");
    refused(send, &format!(r#"{{{good},"configuration":{{"historyLength":1.5}}}}"#), "configuration.historyLength");
    refused(send, &format!(r#"{{{good},"metadata":[1]}}"#), "metadata");
    refused(send, &format!(r#"{{{good},"tenant":5}}"#), "tenant");
}

#[test]
fn a_v03_part_of_an_unknown_kind_is_refused_and_v1_does_not_look_at_it() {
    let send = |dialect, members: &str, part: &str| {
        let json =
            format!(r#"{{"message":{{"messageId":"m","role":"user","{members}":[{{"text":"a"}},{{{part}}}]}}}}"#);
        params(dialect, Operation::SendMessage, &json)
    };
    for part in [
        r#""kind":"video","text":"a""#,
        r#""type":"video","text":"a""#,
        r#""kind":"text","type":"video","text":"a""#,
        r#""kind":7,"text":"a""#,
        r#""kind":"video","video":"a""#,
    ] {
        for (dialect, members) in [(Dialect::V03Rpc, "parts"), (Dialect::V03Rest, "content")] {
            let error = send(dialect, members, part).expect_err(part);
            let violation = &error.violations[0];
            assert_eq!((error.kind, violation.field.as_str()), (ErrorKind::InvalidParams, "message.parts[1].kind"));
            assert!(violation.description.ends_with("is unknown: use text, file or data"), "{part}: {error}");
        }
    }
    for part in [r#""kind":"video","text":"a""#, r#""type":7,"text":"a""#] {
        assert!(send(Dialect::V1, "parts", part).is_ok(), "{part}");
    }
    for part in [
        r#""text":"a""#,
        r#""kind":null,"text":"a""#,
        r#""kind":"","text":"a""#,
        r#""type":"text","text":"a""#,
        r#""kind":"te\u0078t","text":"a""#,
        r#""kind":"data","data":{"kind":"video"}"#,
        r#""kind":"file","file":{"uri":"https://f.test/a"}"#,
    ] {
        for dialect in Dialect::ALL {
            assert!(send(dialect, "parts", part).is_ok(), "{dialect:?} {part}");
        }
    }
    let error = params(Dialect::V03Rpc, Operation::SendMessage, r#"{"message":{"parts":[{}]}}"#).unwrap_err();
    assert_eq!(error.violations[0].field, "message.parts[0]", "the full reader still speaks for itself");
}

#[test]
fn the_context_is_found_in_three_places_and_must_agree() {
    let message = |context: &str, metadata: &str, beside: &str| {
        let json = format!(
            r#"{{"message":{{"messageId":"m","role":"user","parts":[{{"text":"a"}}]{context}{metadata}}}{beside}}}"#
        );
        params(Dialect::V1, Operation::SendMessage, &json)
    };
    let context = |request: Result<Request, Error>| match request.unwrap() {
        Request::Send(send) => send.message.context_id.map(|context| context.to_string()),
        other => panic!("{other:?}"),
    };
    let in_message = r#","contextId":"c""#;
    let in_metadata = r#","metadata":{"contextId":"c"}"#;
    assert_eq!(context(message("", "", "")), None);
    assert_eq!(context(message(in_message, "", "")), Some("c".to_owned()));
    assert_eq!(context(message("", "", in_message)), Some("c".to_owned()));
    assert_eq!(context(message("", in_metadata, "")), Some("c".to_owned()));
    assert_eq!(context(message(in_message, in_metadata, in_message)), Some("c".to_owned()));
    let error = message(in_message, "", r#","contextId":"d""#).unwrap_err();
    assert_eq!((error.kind, error.violations[0].field.as_str()), (ErrorKind::InvalidParams, "contextId"));
    let error = message("", in_metadata, r#","contextId":"d""#).unwrap_err();
    assert_eq!(error.violations[0].field, "message.metadata.contextId");
}

#[test]
fn other_operations_name_their_faults_too() {
    refused(Operation::GetTask, "{}", "id");
    refused(Operation::GetTask, r#"{"id":5}"#, "id");
    refused(Operation::GetTask, r#"{"id":"a","taskId":"b"}"#, "taskId");
    refused(Operation::GetTask, r#"{"id":"a","historyLength":-1}"#, "historyLength");
    refused(Operation::GetTask, r#"{"id":"a","historyLength":"many"}"#, "historyLength");
    for size in ["0", "101", "150", "-1", "1.5", r#""-1""#, r#""many""#, "4294967297", "true"] {
        for (operation, members) in [(Operation::ListTasks, ""), (Operation::ListPushConfigs, r#","taskId":"t""#)] {
            let error = params(Dialect::V1, operation, &format!(r#"{{"pageSize":{size}{members}}}"#)).unwrap_err();
            let expected = format!("{} is out of range: use 1 to 100", size.trim_matches('"'));
            let violation = &error.violations[0];
            assert_eq!((violation.field.as_str(), &violation.description), ("pageSize", &expected), "{operation:?}");
        }
    }
    let sizes = [("1", Some(1)), (r#""100""#, Some(100)), ("7.0", Some(7)), ("null", None), (r#""""#, None)];
    for (size, expected) in sizes {
        let request = params(Dialect::V1, Operation::ListTasks, &format!(r#"{{"pageSize":{size}}}"#)).unwrap();
        let Request::List(list) = request else { panic!("{request:?}") };
        assert_eq!(list.page_size, expected, "{size}");
    }
    refused(Operation::ListTasks, r#"{"status":"TASK_STATE_ASLEEP"}"#, "status");
    refused(Operation::ListTasks, r#"{"statusTimestampAfter":"yesterday"}"#, "statusTimestampAfter");
    refused(Operation::ListTasks, r#"{"includeArtifacts":"maybe"}"#, "includeArtifacts");
    refused(Operation::CreatePushConfig, r#"{"taskId":"t"}"#, "url");
    refused(Operation::CreatePushConfig, r#"{"url":"http://h"}"#, "taskId");
    refused(Operation::GetPushConfig, r#"{"taskId":"t"}"#, "id");
    refused(Operation::DeletePushConfig, r#"{"taskId":"t"}"#, "id");
    let error = decode_params(Dialect::V1, Operation::GetTask, None).unwrap_err();
    assert_eq!(error.violations[0].field, "params");
    assert!(decode_params(Dialect::V1, Operation::ListTasks, None).is_ok());
    assert!(decode_params(Dialect::V03Rpc, Operation::GetExtendedCard, None).is_ok());
    assert!(decode_params(Dialect::V1, Operation::GetCard, None).is_ok());
}

#[test]
fn what_a_v03_push_request_lacks_has_the_name_of_its_version() {
    for dialect in [Dialect::V03Rpc, Dialect::V03Rest] {
        for (operation, json, field) in [
            (Operation::CreatePushConfig, r#"{"taskId":"t"}"#, "pushNotificationConfig.url"),
            (
                Operation::CreatePushConfig,
                r#"{"taskId":"t","pushNotificationConfig":{}}"#,
                "pushNotificationConfig.url",
            ),
            (Operation::CreatePushConfig, r#"{"pushNotificationConfig":{"url":"http://h"}}"#, "taskId"),
            (Operation::GetPushConfig, "{}", "id"),
            (Operation::ListPushConfigs, "{}", "id"),
            (Operation::DeletePushConfig, "{}", "id"),
            (Operation::DeletePushConfig, r#"{"id":"t"}"#, "pushNotificationConfigId"),
        ] {
            let error = params(dialect, operation, json).expect_err(json);
            let violation = &error.violations[0];
            assert_eq!((violation.field.as_str(), violation.description.as_str()), (field, "is missing"), "{json}");
        }
    }
}

#[test]
fn a_v03_push_get_may_leave_the_configuration_out() {
    let request = params(Dialect::V03Rpc, Operation::GetPushConfig, r#"{"id":"t"}"#).unwrap();
    let Request::Push(PushRequest::Get { task_id, id, .. }) = request else { panic!("{request:?}") };
    assert_eq!((task_id.as_str(), id), ("t", None));
}

#[test]
fn absent_blocking_means_what_the_dialect_says() {
    let returns = |dialect, configuration: &str| {
        let json =
            format!(r#"{{"message":{{"messageId":"m","role":"user","parts":[{{"text":"a"}}]}}{configuration}}}"#);
        match params(dialect, Operation::SendMessage, &json).unwrap() {
            Request::Send(send) => send.configuration.is_some_and(|configuration| configuration.return_immediately),
            other => panic!("{other:?}"),
        }
    };
    let empty = r#","configuration":{}"#;
    let waiting = r#","configuration":{"blocking":true}"#;
    let leaving = r#","configuration":{"blocking":false}"#;
    for dialect in Dialect::ALL {
        assert!(!returns(dialect, ""), "{dialect:?} without configuration waits");
        assert!(!returns(dialect, waiting), "{dialect:?}");
        assert!(returns(dialect, leaving), "{dialect:?}");
    }
    assert!(!returns(Dialect::V1, empty));
    assert!(!returns(Dialect::V03Rpc, empty));
    assert!(returns(Dialect::V03Rest, empty), "no field presence on v0.3 REST: absent is false");
    assert!(returns(Dialect::V1, r#","configuration":{"returnImmediately":true}"#));
}

#[test]
fn rest_reads_path_query_and_body() {
    let query: Vec<(String, String)> =
        [("history_length", "3"), ("tenant", "a")].map(|(key, value)| (key.into(), value.into())).into();
    let parts = RestParts { task_id: Some("t"), query: &query, body: b" null ", ..RestParts::default() };
    let request = decode_rest(Dialect::V1, Operation::GetTask, parts).unwrap();
    assert_eq!(request.tenant(), Some("a"));
    let Request::Get { id, history_length, .. } = request else { panic!("{request:?}") };
    assert_eq!((id.as_str(), history_length), ("t", Some(3)));

    let conflict = RestParts { tenant: Some("b"), ..parts };
    let error = decode_rest(Dialect::V1, Operation::GetTask, conflict).unwrap_err();
    assert_eq!(error.violations[0].field, "tenant");

    let body = br#"{"id":"other","metadata":{"big":18446744073709551617}}"#;
    let request = decode_rest(Dialect::V1, Operation::CancelTask, RestParts { query: &[], body, ..parts }).unwrap();
    let Request::Cancel { id, metadata, .. } = request else { panic!("{request:?}") };
    assert_eq!((id.as_str(), metadata.unwrap().get("big").unwrap().as_str()), ("t", "18446744073709551617"));

    for (body, kind) in
        [(&b"{"[..], ErrorKind::Parse), (b"[1]", ErrorKind::InvalidParams), (b"", ErrorKind::InvalidParams)]
    {
        let parts = RestParts { body, ..RestParts::default() };
        assert_eq!(decode_rest(Dialect::V1, Operation::SendMessage, parts).unwrap_err().kind, kind, "{body:?}");
    }
}

#[test]
fn the_name_of_a_new_webhook_holds_its_id_and_the_path_its_task() {
    let bodies = [
        r#"{"name":"tasks/other/pushNotificationConfigs/mine","pushNotificationConfig":{"url":"https://a.test"}}"#,
        r#"{"config":{"name":"tasks/other/pushNotificationConfigs/mine","pushNotificationConfig":{"url":"https://a.test"}}}"#,
        r#"{"parent":"tasks/other","configId":"mine","config":{"pushNotificationConfig":{"url":"https://a.test"}}}"#,
    ];
    for body in bodies {
        let parts = RestParts { task_id: Some("t"), body: body.as_bytes(), ..RestParts::default() };
        let request = decode_rest(Dialect::V03Rest, Operation::CreatePushConfig, parts).unwrap();
        let Request::Push(PushRequest::Create(config)) = request else { panic!("{body}: {request:?}") };
        assert_eq!((config.task_id.as_deref(), config.id.as_deref()), (Some("t"), Some("mine")), "{body}");
    }
}
