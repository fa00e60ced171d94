//! Checks of error kinds: invalid requests are refused with the error the specification names.

pub(crate) mod form;

use serde_json::json;
use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::checks::{Check, Group, Must};
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if};
use crate::wire;

pub(crate) const CHECKS: &[Check] = &[
    Check::of_interface(Group::Errors, Must, "error-method-unknown", |interface| Box::pin(method_unknown(interface)))
        .title("a method that does not exist is refused with -32601")
        .rule("A2A 1.0 §9.5; JSON-RPC 2.0 §5.1")
        .fix("answer MethodNotFoundError"),
    Check::of_interface(Group::Errors, Must, "error-params-invalid", |interface| Box::pin(params_invalid(interface)))
        .title("parameters that lack what is required are refused with -32602")
        .rule("A2A 1.0 §3.3.2, §5.7")
        .fix("check parameters before anything is done, and answer InvalidParamsError; 400 over REST"),
    Check::of_interface(Group::Errors, Must, "error-json-malformed", |interface| Box::pin(json_malformed(interface)))
        .title("a body that is no JSON is refused with -32700")
        .rule("A2A 1.0 §9.5; JSON-RPC 2.0 §5.1")
        .fix("answer JSONParseError with a null id; 400 over REST"),
    Check::of_interface(Group::Errors, Must, "error-request-invalid", |interface| Box::pin(request_invalid(interface)))
        .title("JSON that is no request is refused with -32600")
        .rule("A2A 1.0 §9.5; JSON-RPC 2.0 §5.1")
        .fix("answer InvalidRequestError where jsonrpc or method is missing"),
    Check::of_interface(Group::Errors, Must, "error-task-unknown", |interface| Box::pin(task_unknown(interface)))
        .title("a task that does not exist is refused with -32001, over REST with 404")
        .rule("A2A 1.0 §3.1.3, §5.4")
        .fix("answer TaskNotFoundError"),
    Check::of_interface(Group::Errors, Must, "error-cancel-unknown", |interface| Box::pin(cancel_unknown(interface)))
        .title("canceling a task that does not exist is refused with -32001")
        .rule("A2A 1.0 §3.1.5")
        .fix("answer TaskNotFoundError"),
    Check::of_interface(Group::Errors, Must, "error-send-unknown", |interface| Box::pin(send_unknown(interface)))
        .title("a message to a task that does not exist is refused with -32001")
        .rule("A2A 1.0 §3.4.2")
        .fix("answer TaskNotFoundError; tasks are never made with an id of the caller's"),
    Check::of_interface(Group::Errors, Must, "error-cancel-ended", |interface| Box::pin(cancel_ended(interface)))
        .title("canceling a task that has ended is refused with -32002")
        .rule("A2A 1.0 §3.1.5, §3.3.1, §3.3.2")
        .fix("answer TaskNotCancelableError; one that was canceled may be canceled again"),
];

pub(crate) const NOT_RPC: &str = "only JSON-RPC has it";

async fn method_unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let method = if interface.is_v1() { "NoSuchMethod" } else { "no/such" };
    interface.ask(&interface.rpc(method, json!({}))).await.expect(&[ErrorKind::MethodNotFound])
}

async fn params_invalid(interface: &TestedInterface) -> CheckResult {
    let test_request = if interface.is_rpc() {
        interface.rpc(Operation::SendMessage.method(interface.endpoint.version), json!({}))
    } else {
        interface.rest("POST", "/message:send", Some(b"{}".to_vec()))
    };
    let reply = interface.ask(&test_request).await;
    if let Some(id) = interface.task_id(&reply) {
        // The task should not exist, and no client reads it.
        interface.cancel(&id).await;
    }
    reply.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::InvalidParams])
}

async fn json_malformed(interface: &TestedInterface) -> CheckResult {
    let bytes = b"{\"jsonrpc\": \"2.0\", ".to_vec();
    let test_request =
        if interface.is_rpc() { interface.bytes(bytes) } else { interface.rest("POST", "/message:send", Some(bytes)) };
    interface.ask(&test_request).await.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::Parse])
}

async fn request_invalid(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let reply = interface.ask(&interface.bytes(json!({ "id": 1, "hello": "there" }).to_string().into_bytes())).await;
    reply.expect(&[ErrorKind::InvalidRequest])
}

async fn task_unknown(interface: &TestedInterface) -> CheckResult {
    let reply = interface.get_unknown_task().await;
    if !interface.is_rpc() && reply.status != 404 {
        return reply.failure();
    }
    reply.expect(&[ErrorKind::TaskNotFound])
}

async fn cancel_unknown(interface: &TestedInterface) -> CheckResult {
    interface.cancel(TaskId::generate().as_str()).await.expect(&[ErrorKind::TaskNotFound])
}

async fn send_unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    interface
        .call(Operation::SendMessage, interface.message_to(TaskId::generate()))
        .await
        .expect(&[ErrorKind::TaskNotFound])
}

async fn cancel_ended(interface: &TestedInterface) -> CheckResult {
    let id = interface.ended().await.or_skip("no task has ended")?;
    let reply = interface.cancel(id).await;
    let state = |reply: &Reply| reply.result().and_then(|task| wire::state(interface.dialect(), task));
    // A canceled task may be canceled again, and may be purged after that.
    let is_repeated = state(&reply) == Some("canceled") || reply.is_refused_with(ErrorKind::TaskNotFound);
    if is_repeated
        && interface.canceled().await.is_some_and(|canceled| canceled.id == id && canceled.is_canceled(interface))
    {
        return Ok(());
    }
    reply.expect(&[ErrorKind::TaskNotCancelable]).about_task(id)
}
