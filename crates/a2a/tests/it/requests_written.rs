//! Goldens of what we send: every operation in every dialect, and what is refused instead of being sent wrongly.

use switchboard_a2a::{
    AuthenticationInfo, Dialect, EncodeError, Json, ListRequest, Message, Metadata, Operation, Part, PushConfig,
    PushPayload, PushRequest, Request, RestCall, Role, SendConfiguration, SendRequest, TaskState, Timestamp,
    encode_params, encode_rest,
};

fn metadata() -> Metadata {
    serde_json::from_str(r#"{"trace":"x"}"#).unwrap()
}

fn config() -> PushConfig {
    PushConfig {
        tenant: None,
        id: Some("p1".to_owned()),
        task_id: Some("t1".to_owned()),
        url: "https://cb.test/h".to_owned(),
        token: Some("opaque".to_owned()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("s3".to_owned()) }),
        payload: None,
    }
}

fn send() -> SendRequest {
    let mut message = Message::text(Role::User, "hi");
    message.message_id = "m1".into();
    message.context_id = Some("c1".into());
    message.task_id = Some("t1".into());
    message.parts[0].media_type = Some("text/plain".to_owned());
    message.parts.push(Part::data(Json::parse("[1]").unwrap()));
    let push = PushConfig { task_id: None, ..config() };
    let configuration = SendConfiguration {
        accepted_output_modes: vec!["text/plain".to_owned()],
        task_push_notification_config: Some(push),
        history_length: Some(0),
        return_immediately: true,
    };
    SendRequest { tenant: None, message, configuration: Some(configuration), metadata: Some(metadata()) }
}

fn list() -> ListRequest {
    ListRequest {
        context_id: Some("c 1".into()),
        status: Some(TaskState::Canceled),
        page_size: Some(20),
        page_token: Some("a+b&c".to_owned()),
        history_length: Some(0),
        status_timestamp_after: Some(Timestamp(1_767_323_045_678)),
        include_artifacts: true,
        tenant: None,
    }
}

fn get(tenant: Option<&str>) -> Request {
    Request::Get { id: "t1".into(), history_length: Some(3), tenant: tenant.map(str::to_owned) }
}

fn cancel() -> Request {
    Request::Cancel { id: "t1".into(), metadata: None, tenant: None }
}

fn subscribe() -> Request {
    Request::Subscribe { id: "t1".into(), tenant: None }
}

fn push_get() -> Request {
    Request::Push(PushRequest::Get { task_id: "t1".into(), id: Some("p1".to_owned()), tenant: None })
}

fn push_list() -> Request {
    Request::Push(PushRequest::List { task_id: "t1".into(), page_size: None, page_token: None, tenant: None })
}

fn push_delete() -> Request {
    Request::Push(PushRequest::Delete { task_id: "t1".into(), id: "p1".to_owned(), tenant: None })
}

fn params(dialect: Dialect, operation: Operation, request: &Request) -> String {
    String::from_utf8(encode_params(dialect, operation, request).unwrap()).unwrap()
}

#[test]
fn json_rpc_parameters_of_every_operation() {
    let card = Request::ExtendedCard { tenant: None };
    let create = Request::Push(PushRequest::Create(config()));
    let cases = [
        (
            Operation::SendMessage,
            Request::Send(send()),
            r#"{"message":{"messageId":"m1","contextId":"c1","taskId":"t1","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/plain"},{"data":[1]}]},"configuration":{"acceptedOutputModes":["text/plain"],"taskPushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"scheme":"Bearer","credentials":"s3"}},"historyLength":0,"returnImmediately":true},"metadata":{"trace":"x"}}"#,
            r#"{"message":{"kind":"message","messageId":"m1","contextId":"c1","taskId":"t1","role":"user","parts":[{"kind":"text","text":"hi"},{"kind":"data","data":{"value":[1]},"metadata":{"data_part_compat":true}}]},"configuration":{"blocking":false,"acceptedOutputModes":["text/plain"],"historyLength":0,"pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3"}}},"metadata":{"trace":"x"}}"#,
        ),
        (Operation::GetTask, get(None), r#"{"id":"t1","historyLength":3}"#, r#"{"id":"t1","historyLength":3}"#),
        (
            Operation::ListTasks,
            Request::List(list()),
            r#"{"contextId":"c 1","status":"TASK_STATE_CANCELED","pageSize":20,"pageToken":"a+b&c","historyLength":0,"statusTimestampAfter":"2026-01-02T03:04:05.678Z","includeArtifacts":true}"#,
            r#"{"contextId":"c 1","status":"canceled","pageSize":20,"pageToken":"a+b&c","historyLength":0,"statusTimestampAfter":"2026-01-02T03:04:05.678Z","includeArtifacts":true}"#,
        ),
        (Operation::CancelTask, cancel(), r#"{"id":"t1"}"#, r#"{"id":"t1"}"#),
        (Operation::SubscribeToTask, subscribe(), r#"{"id":"t1"}"#, r#"{"id":"t1"}"#),
        (
            Operation::CreatePushConfig,
            create,
            r#"{"id":"p1","taskId":"t1","url":"https://cb.test/h","token":"opaque","authentication":{"scheme":"Bearer","credentials":"s3"}}"#,
            r#"{"taskId":"t1","pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3"}}}"#,
        ),
        (
            Operation::GetPushConfig,
            push_get(),
            r#"{"taskId":"t1","id":"p1"}"#,
            r#"{"id":"t1","pushNotificationConfigId":"p1"}"#,
        ),
        (Operation::ListPushConfigs, push_list(), r#"{"taskId":"t1"}"#, r#"{"id":"t1"}"#),
        (
            Operation::DeletePushConfig,
            push_delete(),
            r#"{"taskId":"t1","id":"p1"}"#,
            r#"{"id":"t1","pushNotificationConfigId":"p1"}"#,
        ),
        (Operation::GetExtendedCard, card.clone(), "{}", ""),
    ];
    for (operation, request, v1, v03) in &cases {
        assert_eq!(params(Dialect::V1, *operation, request), *v1);
        assert_eq!(params(Dialect::V03Rpc, *operation, request), *v03);
        let refused = encode_params(Dialect::V03Rest, *operation, request);
        assert_eq!(refused, Err(EncodeError::Operation { operation: *operation, dialect: Dialect::V03Rest }));
    }
    assert_eq!(params(Dialect::V1, Operation::GetCard, &card), "{}");
    let refused = encode_params(Dialect::V03Rpc, Operation::GetCard, &card);
    assert_eq!(refused, Err(EncodeError::Operation { operation: Operation::GetCard, dialect: Dialect::V03Rpc }));
}

/// `METHOD target body`, and behind `|` the other form.
fn shown(call: &RestCall) -> String {
    let body = |body: &Option<Vec<u8>>| match body {
        Some(body) => format!(" {}", std::str::from_utf8(body).unwrap()),
        None => String::new(),
    };
    let other = call.fallback.as_ref();
    let other = other.map(|other| format!(" | {}{}", other.method, body(&other.body))).unwrap_or_default();
    format!("{} {}{}{other}", call.method, call.target(), body(&call.body))
}

fn rest(dialect: Dialect, operation: Operation, request: &Request) -> String {
    shown(&encode_rest(dialect, operation, request).unwrap())
}

#[test]
fn rest_calls_of_every_operation() {
    let card = Request::ExtendedCard { tenant: None };
    let create = Request::Push(PushRequest::Create(config()));
    let v1_body = params(Dialect::V1, Operation::SendMessage, &Request::Send(send()));
    let v03_body = r#"{"message":{"messageId":"m1","contextId":"c1","taskId":"t1","role":"ROLE_USER","content":[{"text":"hi"},{"data":{"data":{"value":[1]}},"metadata":{"data_part_compat":true}}]},"configuration":{"blocking":false,"acceptedOutputModes":["text/plain"],"pushNotification":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3"}}},"metadata":{"trace":"x"}}"#;
    let flat = r#"{"id":"p1","taskId":"t1","url":"https://cb.test/h","token":"opaque","authentication":{"scheme":"Bearer","credentials":"s3"}}"#;
    let named = r#"{"name":"tasks/t1/pushNotificationConfigs/p1","pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3"}}}"#;
    let configs = "/tasks/t1/pushNotificationConfigs";
    let query = "pageSize=20&contextId=c%201&pageToken=a%2Bb%26c&statusTimestampAfter=2026-01-02T03%3A04%3A05.678Z";
    let cases = [
        (
            Operation::SendMessage,
            Request::Send(send()),
            format!("POST /message:send {v1_body}"),
            format!("POST /v1/message:send {v03_body}"),
        ),
        (
            Operation::SendStreamingMessage,
            Request::Send(send()),
            format!("POST /message:stream {v1_body}"),
            format!("POST /v1/message:stream {v03_body}"),
        ),
        (
            Operation::GetTask,
            get(None),
            "GET /tasks/t1?historyLength=3".to_owned(),
            "GET /v1/tasks/t1?historyLength=3".to_owned(),
        ),
        (
            Operation::CancelTask,
            cancel(),
            r#"POST /tasks/t1:cancel {"id":"t1"}"#.to_owned(),
            r#"POST /v1/tasks/t1:cancel {"name":"tasks/t1"}"#.to_owned(),
        ),
        (
            Operation::SubscribeToTask,
            subscribe(),
            "POST /tasks/t1:subscribe | GET".to_owned(),
            "POST /v1/tasks/t1:subscribe | GET".to_owned(),
        ),
        (
            Operation::CreatePushConfig,
            create,
            format!("POST {configs} {flat}"),
            format!(r#"POST /v1{configs} {{"parent":"tasks/t1","configId":"p1","config":{named}}} | POST {named}"#),
        ),
        (Operation::GetPushConfig, push_get(), format!("GET {configs}/p1"), format!("GET /v1{configs}/p1")),
        (Operation::ListPushConfigs, push_list(), format!("GET {configs}"), format!("GET /v1{configs}")),
        (Operation::DeletePushConfig, push_delete(), format!("DELETE {configs}/p1"), format!("DELETE /v1{configs}/p1")),
        (Operation::GetExtendedCard, card.clone(), "GET /extendedAgentCard".to_owned(), "GET /v1/card".to_owned()),
    ];
    for (operation, request, v1, v03) in &cases {
        assert_eq!(rest(Dialect::V1, *operation, request), *v1);
        assert_eq!(rest(Dialect::V03Rest, *operation, request), *v03);
        let refused = encode_rest(Dialect::V03Rpc, *operation, request);
        assert_eq!(refused, Err(EncodeError::Operation { operation: *operation, dialect: Dialect::V03Rpc }));
    }
    let call = encode_rest(Dialect::V1, Operation::ListTasks, &Request::List(list())).unwrap();
    let mut pairs: Vec<&str> = query.split('&').chain(["historyLength=0", "includeArtifacts=true"]).collect();
    pairs.push("status=TASK_STATE_CANCELED");
    pairs.sort_unstable();
    let target = call.target();
    let (path, written) = target.split_once('?').unwrap();
    let mut written: Vec<&str> = written.split('&').collect();
    written.sort_unstable();
    assert_eq!((call.method, path, written), ("GET", "/tasks", pairs));
    let old = encode_rest(Dialect::V03Rest, Operation::ListTasks, &Request::List(list())).unwrap();
    assert!(old.target().starts_with("/v1/tasks?") && old.target().contains("status=TASK_STATE_CANCELLED"));
    assert!(!old.target().contains("historyLength"), "zero is what is not written: {}", old.target());
    for dialect in [Dialect::V1, Dialect::V03Rest] {
        let refused = encode_rest(dialect, Operation::GetCard, &card);
        assert_eq!(refused, Err(EncodeError::Operation { operation: Operation::GetCard, dialect }));
    }
}

#[test]
fn a_v03_peer_is_always_told_whether_to_block() {
    let mut request = send();
    request.configuration = None;
    for (dialect, written) in [(Dialect::V1, ""), (Dialect::V03Rpc, r#","configuration":{"blocking":true}"#)] {
        let text = params(dialect, Operation::SendMessage, &Request::Send(request.clone()));
        assert_eq!(text.contains(r#""configuration":{"#), !written.is_empty(), "{text}");
        assert!(text.contains(written), "{text}");
    }
    let call = encode_rest(Dialect::V03Rest, Operation::SendMessage, &Request::Send(request)).unwrap();
    assert!(String::from_utf8(call.body.unwrap()).unwrap().contains(r#""configuration":{"blocking":true}"#));
}

#[test]
fn a_tenant_is_a_member_and_on_rest_a_segment_in_front() {
    let request = get(Some("a/b c"));
    let text = params(Dialect::V1, Operation::GetTask, &request);
    assert_eq!(text, r#"{"tenant":"a/b c","id":"t1","historyLength":3}"#);
    assert_eq!(rest(Dialect::V1, Operation::GetTask, &request), "GET /a%2Fb%20c/tasks/t1?historyLength=3");
    let call = rest(
        Dialect::V1,
        Operation::CancelTask,
        &Request::Cancel { id: "t:1".into(), metadata: Some(metadata()), tenant: Some("acme".to_owned()) },
    );
    let body = r#"{"tenant":"acme","id":"t:1","metadata":{"trace":"x"}}"#;
    assert_eq!(call, format!("POST /acme/tasks/t%3A1:cancel {body}"));
    let text = params(Dialect::V1, Operation::GetExtendedCard, &Request::ExtendedCard { tenant: Some("a".to_owned()) });
    assert_eq!(text, r#"{"tenant":"a"}"#);
}

#[test]
fn what_a_dialect_cannot_say_is_named_and_can_be_taken_out() {
    let mut request = send();
    request.tenant = Some("acme".to_owned());
    request.message.reference_task_ids = vec!["t0".into()];
    let push = request.configuration.as_mut().unwrap().task_push_notification_config.as_mut().unwrap();
    push.tenant = Some("acme".to_owned());
    push.payload = Some(PushPayload::Task);
    let push = "configuration.taskPushNotificationConfig";
    let (tenant, payload) = (format!("{push}.tenant"), format!("{push}.payload"));
    let create = PushConfig { payload: Some(PushPayload::Task), ..config() };
    let pages = PushRequest::List {
        task_id: "t1".into(),
        page_size: Some(1),
        page_token: Some("x".to_owned()),
        tenant: Some("acme".to_owned()),
    };
    let stop = Request::Cancel { id: "t1".into(), metadata: Some(metadata()), tenant: None };
    let cases: [(Operation, Request, Vec<&str>, Vec<&str>); 5] = [
        (
            Operation::SendMessage,
            Request::Send(request),
            vec!["tenant", &tenant, &payload],
            vec!["tenant", "message.referenceTaskIds", &tenant, &payload],
        ),
        (Operation::CancelTask, stop, vec![], vec!["metadata"]),
        (Operation::CreatePushConfig, Request::Push(PushRequest::Create(create)), vec!["payload"], vec!["payload"]),
        (Operation::ListPushConfigs, Request::Push(pages), vec!["tenant", "pageSize", "pageToken"], vec!["tenant"]),
        (Operation::GetTask, get(Some("acme")), vec!["tenant"], vec!["tenant"]),
    ];
    for (operation, request, on_rpc, on_rest) in cases {
        assert!(request.unsupported_fields(Dialect::V1).is_empty());
        for (dialect, fields) in [(Dialect::V03Rpc, on_rpc), (Dialect::V03Rest, on_rest)] {
            let write = |request: &Request| match dialect {
                Dialect::V03Rpc => encode_params(dialect, operation, request).map(|_| ()),
                _ => encode_rest(dialect, operation, request).map(|_| ()),
            };
            let mut request = request.clone();
            match (fields.first(), write(&request)) {
                (None, written) => assert_eq!(written, Ok(())),
                (Some(first), Err(EncodeError::Field { field, .. })) => assert_eq!(field, *first),
                (first, written) => panic!("{first:?} {written:?}"),
            }
            assert_eq!(request.remove_unsupported(dialect), fields);
            assert!(request.unsupported_fields(dialect).is_empty());
            assert_eq!(write(&request), Ok(()));
        }
    }
}

#[test]
fn ids_that_are_missing_or_would_lead_elsewhere_are_refused() {
    let get = |id: &str| Request::Get { id: id.into(), history_length: None, tenant: None };
    for dialect in [Dialect::V1, Dialect::V03Rest] {
        let missing = Err(EncodeError::Missing { field: "id", dialect });
        assert_eq!(encode_rest(dialect, Operation::GetTask, &get("")), missing);
        for id in [".", ".."] {
            let refused = Err(EncodeError::Segment { field: "id", id: id.to_owned(), dialect });
            assert_eq!(encode_rest(dialect, Operation::GetTask, &get(id)), refused);
        }
    }
    assert_eq!(rest(Dialect::V1, Operation::GetTask, &get("../é?#")), "GET /tasks/..%2F%C3%A9%3F%23");
    let refused = encode_rest(Dialect::V03Rest, Operation::GetTask, &get("a/b")).unwrap_err();
    assert_eq!(refused.to_string(), "id \"a/b\" cannot stand in a path of v0.3 on REST");
    let nameless = Request::Push(PushRequest::Get { task_id: "t1".into(), id: None, tenant: None });
    assert_eq!(params(Dialect::V03Rpc, Operation::GetPushConfig, &nameless), r#"{"id":"t1"}"#);
    let missing = encode_params(Dialect::V1, Operation::GetPushConfig, &nameless);
    assert_eq!(missing, Err(EncodeError::Missing { field: "id", dialect: Dialect::V1 }));
    let create = |id: Option<&str>, task: Option<&str>| {
        let (id, task_id) = (id.map(str::to_owned), task.map(str::to_owned));
        Request::Push(PushRequest::Create(PushConfig { id, task_id, ..config() }))
    };
    let missing = encode_rest(Dialect::V03Rest, Operation::CreatePushConfig, &create(None, Some("t1")));
    assert_eq!(missing, Err(EncodeError::Missing { field: "id", dialect: Dialect::V03Rest }));
    assert!(encode_rest(Dialect::V1, Operation::CreatePushConfig, &create(None, Some("t1"))).is_ok());
    let missing = encode_params(Dialect::V1, Operation::CreatePushConfig, &create(Some("p1"), None));
    assert_eq!(missing, Err(EncodeError::Missing { field: "taskId", dialect: Dialect::V1 }));
    let mismatch = Err(EncodeError::Mismatch { operation: Operation::CancelTask });
    assert_eq!(encode_params(Dialect::V1, Operation::CancelTask, &get("t1")), mismatch);
}

#[test]
fn an_operation_that_a_dialect_lacks_is_named() {
    let unknown = EncodeError::Operation { operation: Operation::GetCard, dialect: Dialect::V03Rpc };
    assert_eq!(unknown.to_string(), "v0.3 on JSON-RPC has no GetAgentCard on this binding");
}
