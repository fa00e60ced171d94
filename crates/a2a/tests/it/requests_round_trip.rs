//! Whatever we ask for, a peer of the dialect reads the same request, as far as the dialect can say it.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;
use switchboard_a2a::{
    AuthenticationInfo, Dialect, EncodeError, ListRequest, Operation, PushConfig, PushPayload, PushRequest, Request,
    RestCall, RestParts, SendConfiguration, SendRequest, StreamResponse, TaskState, Timestamp, decode_params,
    decode_rest, encode_params, encode_rest,
};

use crate::capture::route;
use crate::properties::{after_v03, message, metadata};

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,6}")
}

fn config() -> impl Strategy<Value = PushConfig> {
    let authentication =
        (".{0,5}", text()).prop_map(|(scheme, credentials)| AuthenticationInfo { scheme, credentials });
    let payload = option::of(prop_oneof![Just(PushPayload::Task), Just(PushPayload::StreamResponse)]);
    (text(), text(), text(), ".{1,8}", text(), option::of(authentication), payload).prop_map(
        |(tenant, id, task_id, url, token, authentication, payload)| PushConfig {
            tenant,
            id,
            task_id,
            url,
            token,
            authentication,
            payload,
        },
    )
}

fn send() -> impl Strategy<Value = Request> {
    let configuration = (vec(".{0,5}", 0..3), option::of(config()), option::of(0u32..3), any::<bool>()).prop_map(
        |(accepted_output_modes, push, history_length, return_immediately)| SendConfiguration {
            accepted_output_modes,
            task_push_notification_config: push,
            history_length,
            return_immediately,
        },
    );
    let message = message().prop_filter("a request needs a part", |message| !message.parts.is_empty());
    (text(), message, option::of(configuration), metadata()).prop_map(|(tenant, message, configuration, metadata)| {
        Request::Send(SendRequest { tenant, message, configuration, metadata })
    })
}

fn list() -> impl Strategy<Value = Request> {
    let state = option::of((0u64..9).prop_map(|number| TaskState::from_number(number).unwrap()));
    let page = (option::of(1u32..=100), text(), option::of(0u32..3));
    (text(), state, page, option::of(0i64..253_402_300_799_999), any::<bool>(), text()).prop_map(
        |(context, status, (page_size, page_token, history_length), after, include_artifacts, tenant)| {
            Request::List(ListRequest {
                context_id: context.map(Into::into),
                status,
                page_size,
                page_token,
                history_length,
                status_timestamp_after: after.map(Timestamp),
                include_artifacts,
                tenant,
            })
        },
    )
}

fn request() -> impl Strategy<Value = (Operation, Request)> {
    let id = || "(.{1,5}|\\.{1,2}|[a-z]/[a-z]|t1:cancel)";
    let push = prop_oneof![
        config().prop_map(|config| (Operation::CreatePushConfig, PushRequest::Create(config))),
        (id(), option::of(id()), text()).prop_map(|(task, id, tenant)| {
            (Operation::GetPushConfig, PushRequest::Get { task_id: task.into(), id, tenant })
        }),
        (id(), option::of(1u32..=100), text(), text()).prop_map(|(task, page_size, page_token, tenant)| {
            (Operation::ListPushConfigs, PushRequest::List { task_id: task.into(), page_size, page_token, tenant })
        }),
        (id(), id(), text()).prop_map(|(task, id, tenant)| {
            (Operation::DeletePushConfig, PushRequest::Delete { task_id: task.into(), id, tenant })
        }),
    ];
    prop_oneof![
        send().prop_map(|request| (Operation::SendMessage, request)),
        send().prop_map(|request| (Operation::SendStreamingMessage, request)),
        list().prop_map(|request| (Operation::ListTasks, request)),
        push.prop_map(|(operation, request)| (operation, Request::Push(request))),
        (id(), option::of(0u32..3), text()).prop_map(|(id, history_length, tenant)| {
            (Operation::GetTask, Request::Get { id: id.into(), history_length, tenant })
        }),
        (id(), metadata(), text()).prop_map(|(id, metadata, tenant)| {
            (Operation::CancelTask, Request::Cancel { id: id.into(), metadata, tenant })
        }),
        (id(), text())
            .prop_map(|(id, tenant)| (Operation::SubscribeToTask, Request::Subscribe { id: id.into(), tenant })),
        text().prop_map(|tenant| (Operation::GetExtendedCard, Request::ExtendedCard { tenant })),
    ]
}

/// What is left of a request when a peer of the dialect has read it.
fn as_read(dialect: Dialect, mut request: Request) -> Request {
    let is_v1 = dialect == Dialect::V1;
    match &mut request {
        Request::Send(send) if !is_v1 => {
            let StreamResponse::Message(message) = after_v03(StreamResponse::Message(send.message.clone()), dialect)
            else {
                panic!("a message stays one")
            };
            send.message = message;
            let configuration = send.configuration.get_or_insert_default();
            configuration.history_length = configuration.history_length.filter(|length| *length != 0);
            if let Some(push) = &mut configuration.task_push_notification_config {
                push.task_id = None;
            }
        }
        Request::List(list) => {
            list.status = list.status.filter(|state| *state != TaskState::Unspecified);
            list.history_length = list.history_length.filter(|length| is_v1 || *length != 0);
        }
        Request::Get { history_length, .. } => *history_length = history_length.filter(|length| is_v1 || *length != 0),
        _ => {}
    }
    request
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next().unwrap(), rest.next().unwrap()];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

/// Reads a call as a server does, from its method, its target and its body.
fn received(
    dialect: Dialect,
    tenant: bool,
    call: &RestCall,
    form: (&'static str, &Option<Vec<u8>>),
) -> (Operation, Request) {
    let target = call.target();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = if dialect == Dialect::V03Rest { path.strip_prefix("/v1").unwrap() } else { path };
    let (tenant, path) = match tenant {
        true => path[1..].find('/').map(|end| (Some(unescaped(&path[1..=end])), &path[end + 1..])).unwrap(),
        false => (None, path),
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query: Vec<(String, String)> = pairs.map(|(key, value)| (key.to_owned(), unescaped(value))).collect();
    let method = if path.ends_with(":subscribe") { "POST" } else { form.0 };
    let (operation, task, config) = route(method, path);
    let (task, config) = (task.map(unescaped), config.map(unescaped));
    let parts = RestParts {
        task_id: task.as_deref(),
        config_id: config.as_deref(),
        tenant: tenant.as_deref(),
        query: &query,
        body: form.1.as_deref().unwrap_or_default(),
    };
    (operation, decode_rest(dialect, operation, parts).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn json_rpc_parameters_are_read_back((operation, request) in request()) {
        for dialect in [Dialect::V1, Dialect::V03Rpc] {
            let mut request = request.clone();
            request.remove_unsupported(dialect);
            let params = match encode_params(dialect, operation, &request) {
                Ok(params) => params,
                Err(EncodeError::Missing { .. }) => continue,
                Err(other) => panic!("{other}"),
            };
            let raw: Option<&RawValue> = (!params.is_empty()).then(|| serde_json::from_slice(&params).unwrap());
            let read = decode_params(dialect, operation, raw).unwrap();
            prop_assert_eq!(read, as_read(dialect, request));
        }
    }

    #[test]
    fn rest_calls_are_read_back((operation, request) in request()) {
        for dialect in [Dialect::V1, Dialect::V03Rest] {
            let mut request = request.clone();
            request.remove_unsupported(dialect);
            let call = match encode_rest(dialect, operation, &request) {
                Ok(call) => call,
                Err(EncodeError::Missing { .. } | EncodeError::Segment { .. }) => continue,
                Err(other) => panic!("{other}"),
            };
            let has_tenant = request.tenant().is_some();
            let expected = as_read(dialect, request);
            let usual = received(dialect, has_tenant, &call, (call.method, &call.body));
            prop_assert_eq!(&usual, &(operation, expected));
            if let Some(other) = &call.fallback {
                prop_assert_eq!(received(dialect, has_tenant, &call, (other.method, &other.body)), usual);
            }
        }
    }
}
