//! One object in three dialects, typed by hand from the specification.

use switchboard_a2a::{
    Artifact, AuthenticationInfo, Dialect, Json, ListResponse, Message, Metadata, Part, PartContent, PushConfig,
    PushPayload, Role, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatus, TaskStatusUpdate, Timestamp,
    encode,
};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn task() -> Task {
    let mut message = Message::text(Role::User, "hi");
    message.message_id = "m1".into();
    message.reference_task_ids = vec!["t0".into()];
    Task {
        id: "t1".into(),
        context_id: "c1".into(),
        status: TaskStatus {
            state: TaskState::Canceled,
            message: None,
            timestamp: Some(Timestamp::parse("2026-01-02T03:04:05Z").unwrap()),
        },
        artifacts: Vec::new(),
        history: vec![message],
        metadata: None,
    }
}

#[test]
fn a_task() {
    let task = task();
    assert_eq!(
        text(encode::encode_send_task(Dialect::V1, &task)),
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_CANCELED","timestamp":"2026-01-02T03:04:05.000Z"},"history":[{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}],"referenceTaskIds":["t0"]}]}}"#
    );
    assert_eq!(
        text(encode::encode_send_task(Dialect::V03Rpc, &task)),
        r#"{"kind":"task","id":"t1","contextId":"c1","status":{"state":"canceled","timestamp":"2026-01-02T03:04:05.000Z"},"history":[{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}],"referenceTaskIds":["t0"]}]}"#
    );
    assert_eq!(
        text(encode::encode_send_task(Dialect::V03Rest, &task)),
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_CANCELLED","timestamp":"2026-01-02T03:04:05.000Z"},"history":[{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}]}}"#
    );
}

#[test]
fn parts_of_every_kind() {
    let named = |content| Part {
        content,
        metadata: None,
        filename: Some("a.txt".to_owned()),
        media_type: Some("text/plain".to_owned()),
    };
    let mut flagged = Part::data(Json::parse("[1,null]").unwrap());
    let mut metadata = Metadata::default();
    metadata.insert("k", Json::parse("0.10").unwrap());
    flagged.metadata = Some(metadata);
    let mut artifact = Artifact::new(vec![
        named(PartContent::Text("hello".to_owned())),
        named(PartContent::Raw(b"hi".to_vec())),
        named(PartContent::Url("https://ex.test/a".to_owned())),
        Part::data(Json::parse(r#"{"k":[1,2]}"#).unwrap()),
        flagged,
    ]);
    artifact.artifact_id = "a1".into();
    let update = StreamResponse::ArtifactUpdate(TaskArtifactUpdate {
        task_id: "t1".into(),
        context_id: "c1".into(),
        artifact,
        append: false,
        last_chunk: true,
        metadata: None,
    });
    assert_eq!(
        text(encode::encode_stream(Dialect::V1, &update, false)),
        r#"{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"text":"hello","filename":"a.txt","mediaType":"text/plain"},{"raw":"aGk=","filename":"a.txt","mediaType":"text/plain"},{"url":"https://ex.test/a","filename":"a.txt","mediaType":"text/plain"},{"data":{"k":[1,2]}},{"data":[1,null],"metadata":{"k":0.10}}]},"lastChunk":true}}"#
    );
    assert_eq!(
        text(encode::encode_stream(Dialect::V03Rpc, &update, false)),
        r#"{"kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"hello"},{"kind":"file","file":{"bytes":"aGk=","mimeType":"text/plain","name":"a.txt"}},{"kind":"file","file":{"uri":"https://ex.test/a","mimeType":"text/plain","name":"a.txt"}},{"kind":"data","data":{"k":[1,2]}},{"kind":"data","data":{"value":[1,null]},"metadata":{"k":0.10,"data_part_compat":true}}]},"append":false,"lastChunk":true}"#
    );
    assert_eq!(
        text(encode::encode_stream(Dialect::V03Rest, &update, false)),
        r#"{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"text":"hello"},{"file":{"fileWithBytes":"aGk=","mimeType":"text/plain","name":"a.txt"}},{"file":{"fileWithUri":"https://ex.test/a","mimeType":"text/plain","name":"a.txt"}},{"data":{"data":{"k":[1,2]}}},{"data":{"data":{"value":[1,null]}},"metadata":{"k":0.10,"data_part_compat":true}}]},"append":false,"lastChunk":true}}"#
    );
}

#[test]
fn a_status_update_and_its_final_flag() {
    let update = StreamResponse::StatusUpdate(TaskStatusUpdate {
        task_id: "t1".into(),
        context_id: "c1".into(),
        status: TaskStatus { state: TaskState::InputRequired, message: None, timestamp: None },
        metadata: None,
    });
    let v1 = encode::encode_stream(Dialect::V1, &update, true);
    assert_eq!(
        text(v1.clone()),
        r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#
    );
    assert_eq!(
        text(encode::from_v1(Dialect::V03Rpc, &v1, true).unwrap()),
        r#"{"kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"input-required"},"final":true}"#
    );
    assert_eq!(
        text(encode::from_v1(Dialect::V03Rest, &v1, false).unwrap()),
        r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED"},"final":false}}"#
    );
    assert_eq!(encode::from_v1(Dialect::V1, &v1, true).unwrap(), v1);
    assert!(encode::from_v1(Dialect::V03Rpc, b"{}", true).is_err());
}

#[test]
fn a_page_has_every_key() {
    let empty = ListResponse { page_size: 50, ..ListResponse::default() };
    assert_eq!(
        text(encode::encode_list(Dialect::V1, &empty, false)),
        r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#
    );
    let mut task = task();
    task.history.clear();
    task.status.timestamp = None;
    let mut page = ListResponse { tasks: vec![task], next_page_token: "n".to_owned(), page_size: 1, total_size: 2 };
    let listed = |artifacts: &str| {
        format!(
            r#"{{"tasks":[{{"id":"t1","contextId":"c1","status":{{"state":"TASK_STATE_CANCELED"}}{artifacts}}}],"nextPageToken":"n","pageSize":1,"totalSize":2}}"#
        )
    };
    assert_eq!(text(encode::encode_list(Dialect::V1, &page, true)), listed(r#","artifacts":[]"#));
    let mut artifact = Artifact::text("x");
    artifact.artifact_id = "a".into();
    page.tasks[0].artifacts.push(artifact);
    assert_eq!(text(encode::encode_list(Dialect::V1, &page, false)), listed(""));
    assert_eq!(
        text(encode::encode_list(Dialect::V1, &page, true)),
        listed(r#","artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]"#)
    );
}

#[test]
fn a_webhook() {
    let config = PushConfig {
        tenant: None,
        id: Some("p1".to_owned()),
        task_id: Some("t1".to_owned()),
        url: "https://cb.test/h".to_owned(),
        token: Some("opaque".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("s3cr3t".to_owned()),
        }),
        payload: None,
    };
    let forms = [
        r#"{"id":"p1","taskId":"t1","url":"https://cb.test/h","token":"opaque","authentication":{"scheme":"Bearer","credentials":"s3cr3t"}}"#,
        r#"{"taskId":"t1","pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3cr3t"}}}"#,
        r#"{"name":"tasks/t1/pushNotificationConfigs/p1","pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","token":"opaque","authentication":{"schemes":["Bearer"],"credentials":"s3cr3t"}}}"#,
    ];
    for (dialect, form) in Dialect::ALL.into_iter().zip(forms) {
        assert_eq!(text(encode::encode_push_config(dialect, &config)), form);
        assert_eq!(serde_json::from_str::<PushConfig>(form).unwrap(), config);
    }
    let chosen = PushConfig { payload: Some(PushPayload::StatusUpdate), token: None, authentication: None, ..config };
    let forms = [
        r#"{"id":"p1","taskId":"t1","url":"https://cb.test/h","payload":"status-update"}"#,
        r#"{"taskId":"t1","pushNotificationConfig":{"id":"p1","url":"https://cb.test/h","payload":"status-update"}}"#,
    ];
    for (dialect, form) in Dialect::ALL.into_iter().zip(forms) {
        assert_eq!(text(encode::encode_push_config(dialect, &chosen)), form);
        assert_eq!(serde_json::from_str::<PushConfig>(form).unwrap(), chosen);
    }
    assert_eq!(text(encode::encode_push_list(Dialect::V03Rpc, &[], "")), "[]");
    assert_eq!(text(encode::encode_push_list(Dialect::V1, &[], "")), r#"{"configs":[],"nextPageToken":""}"#);
}
