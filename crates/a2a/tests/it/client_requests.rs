//! Every request the four real SDK clients make is understood, and understood rightly.

use switchboard_a2a::{
    Dialect, Operation, Part, PartContent, PushRequest, Request, Role, SendRequest, TaskState, Version,
};

use crate::capture;

/// What a capture's name says its last word is about; captures may begin with a send that sets the scene.
fn expected(scenario: &str) -> Operation {
    let table = [
        ("send-", Operation::SendMessage),
        ("stream", Operation::SendStreamingMessage),
        ("get", Operation::GetTask),
        ("error-task-not-found", Operation::GetTask),
        ("cancel", Operation::CancelTask),
        ("error-not-cancelable", Operation::CancelTask),
        ("subscribe", Operation::SubscribeToTask),
        ("error-subscribe-not-found", Operation::SubscribeToTask),
        ("list", Operation::ListTasks),
        ("push-set", Operation::CreatePushConfig),
        ("push-get", Operation::GetPushConfig),
        ("push-list", Operation::ListPushConfigs),
        ("push-delete", Operation::DeletePushConfig),
        ("extended-card", Operation::GetExtendedCard),
    ];
    let found = table.iter().find(|(prefix, _)| scenario.starts_with(prefix));
    found.unwrap_or_else(|| panic!("no operation for scenario {scenario}")).1
}

#[test]
fn every_sdk_request_is_decoded_to_its_operation() {
    let mut decoded = 0;
    for capture in capture::all("client-") {
        let mut operations = Vec::new();
        for exchange in capture.exchanges.iter().filter(|exchange| !exchange.is_card()) {
            let (dialect, operation, request) = exchange.decode();
            let request = request.unwrap_or_else(|error| panic!("{}: {error:?}", capture.name));
            check(&capture.name, dialect, &request);
            operations.push(operation);
            decoded += 1;
        }
        let file = capture.name.split('/').next_back().unwrap().strip_suffix(".http").unwrap();
        let scenario = file.split_once("jsonrpc-").or_else(|| file.split_once("rest-")).map(|(_, scenario)| scenario);
        if let Some(scenario) = scenario {
            assert!(operations.contains(&expected(scenario)), "{}: {operations:?}", capture.name);
        }
    }
    assert!(decoded > 300, "only {decoded} requests were decoded");
}

/// What each scenario was written to carry.
fn check(name: &str, dialect: Dialect, request: &Request) {
    match request {
        Request::Send(send) => check_send(name, dialect, send),
        Request::Get { id, history_length, .. } => {
            assert!(!id.as_str().is_empty(), "{name}");
            let expected = name.contains("get-history-length").then_some(1);
            assert_eq!(*history_length, expected, "{name}");
        }
        Request::List(list) if name.contains("list-filter") => {
            assert_eq!(list.status, Some(TaskState::InputRequired), "{name}");
            assert_eq!((list.page_size, list.history_length), (Some(1), Some(1)), "{name}");
            assert!(list.include_artifacts, "{name}");
        }
        Request::List(list) => assert_eq!(list.page_size, Some(2), "{name}"),
        Request::Push(PushRequest::Create(config)) => {
            assert_eq!(config.task_id.as_deref(), Some("task-1"), "{name}");
            assert_eq!(config.id.as_deref(), Some("config-a"), "{name}");
            assert_eq!(config.url, "http://127.0.0.1:41243/webhook", "{name}");
            assert_eq!(config.token.as_deref(), Some("placeholder-token"), "{name}");
        }
        Request::Push(PushRequest::Get { task_id, id, .. }) => {
            assert_eq!((task_id.as_str(), id.as_deref()), ("task-1", Some("config-a")), "{name}");
        }
        Request::Push(PushRequest::Delete { task_id, id, .. }) => {
            assert_eq!((task_id.as_str(), id.as_str()), ("task-1", "config-a"), "{name}");
        }
        Request::Push(PushRequest::List { task_id, .. }) => assert_eq!(task_id.as_str(), "task-1", "{name}"),
        Request::Cancel { id, .. } | Request::Subscribe { id, .. } => assert!(id.as_str().contains("task"), "{name}"),
        Request::ExtendedCard { tenant } => assert_eq!(*tenant, None, "{name}"),
    }
}

fn check_send(name: &str, dialect: Dialect, send: &SendRequest) {
    let message = &send.message;
    assert_eq!(message.role, Role::User, "{name}");
    assert!(message.message_id.as_str().starts_with("message-user-"), "{name}");
    assert!(!message.parts.is_empty(), "{name}");
    let configuration = send.configuration.as_ref();
    let returns = configuration.is_some_and(|configuration| configuration.return_immediately);
    let is_old_rest = dialect == Dialect::V03Rest;
    if name.contains("-send-blocking") || name.contains("-send-text") {
        assert!(!returns, "{name}");
    }
    if name.contains("-send-nonblocking") {
        assert!(returns, "{name}");
    }
    if name.contains("-send-history-length.") {
        assert_eq!(configuration.and_then(|configuration| configuration.history_length), Some(1), "{name}");
    }
    if name.contains("-send-history-length-0") {
        let expected = (dialect.version() == Version::V1).then_some(0);
        assert_eq!(configuration.and_then(|configuration| configuration.history_length), expected, "{name}");
    }
    if name.contains("-send-push-config") {
        let push = configuration.and_then(|configuration| configuration.task_push_notification_config.as_ref());
        let push = push.unwrap_or_else(|| panic!("{name}: no push configuration"));
        let authentication = push.authentication.as_ref().unwrap();
        assert_eq!(push.token.as_deref(), Some("placeholder-token"), "{name}");
        assert_eq!(authentication.scheme, "Bearer", "{name}");
        assert_eq!(authentication.credentials.as_deref(), Some("placeholder-credentials"), "{name}");
    }
    if name.contains("-send-metadata") {
        let metadata = message.metadata.as_ref().unwrap();
        assert_eq!(metadata.get("k").unwrap().as_str(), "\"v\"", "{name}");
        assert_eq!(message.extensions, ["https://example.com/ext/v1"], "{name}");
        let references = if is_old_rest { 0 } else { 1 };
        assert_eq!(message.reference_task_ids.len(), references, "{name}");
        assert_eq!(send.metadata.as_ref().unwrap().get("trace").unwrap().as_str(), "\"x\"", "{name}");
    }
    if name.contains("-send-tenant") && dialect == Dialect::V1 {
        assert_eq!(send.tenant.as_deref(), Some("acme"), "{name}");
    }
    if name.contains("-send-file-bytes") {
        // Python encodes twice on v0.3 REST, which no reader can tell from a file that holds base64.
        let is_twice = is_old_rest && name.starts_with("python");
        let wanted: &[u8] = if is_twice { b"aGVsbG8=" } else { b"hello" };
        let file = message.parts.iter().find(|part| matches!(part.content, PartContent::Raw(_)));
        assert_eq!(file.unwrap().content, PartContent::Raw(wanted.to_vec()), "{name}");
        assert_eq!(file.unwrap().media_type.as_deref(), Some("text/plain"), "{name}");
    }
    if name.contains("-send-file-url") {
        let is_file = |part: &&Part| matches!(&part.content, PartContent::Url(url) if url.starts_with("https://"));
        assert!(message.parts.iter().find(is_file).is_some(), "{name}");
    }
    if name.contains("-send-data") {
        let data = message.parts.iter().find_map(|part| match &part.content {
            PartContent::Data(data) => Some(data),
            _ => None,
        });
        let data: serde_json::Value = data.unwrap().read().unwrap();
        assert_eq!((data["key"].as_str(), data["count"].as_f64()), (Some("value"), Some(42.0)), "{name}");
    }
}
