//! Checks of error kinds: invalid requests are refused with the error the specification names.

pub(crate) mod form;

use serde_json::json;
use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if};
use crate::wire;

pub(crate) const NOT_RPC: &str = "only JSON-RPC has it";

pub(crate) async fn method_unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let method = if interface.is_v1() { "NoSuchMethod" } else { "no/such" };
    interface.ask(&interface.rpc(method, json!({}))).await.expect(&[ErrorKind::MethodNotFound])
}

pub(crate) async fn params_invalid(interface: &TestedInterface) -> CheckResult {
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

pub(crate) async fn json_malformed(interface: &TestedInterface) -> CheckResult {
    let bytes = b"{\"jsonrpc\": \"2.0\", ".to_vec();
    let test_request =
        if interface.is_rpc() { interface.bytes(bytes) } else { interface.rest("POST", "/message:send", Some(bytes)) };
    interface.ask(&test_request).await.expect_or_bad_request(interface.endpoint.binding, &[ErrorKind::Parse])
}

pub(crate) async fn request_invalid(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let reply = interface.ask(&interface.bytes(json!({ "id": 1, "hello": "there" }).to_string().into_bytes())).await;
    reply.expect(&[ErrorKind::InvalidRequest])
}

pub(crate) async fn task_unknown(interface: &TestedInterface) -> CheckResult {
    let reply = interface.get_unknown_task().await;
    if !interface.is_rpc() && reply.status != 404 {
        return reply.failure();
    }
    reply.expect(&[ErrorKind::TaskNotFound])
}

pub(crate) async fn cancel_unknown(interface: &TestedInterface) -> CheckResult {
    interface.cancel(TaskId::generate().as_str()).await.expect(&[ErrorKind::TaskNotFound])
}

pub(crate) async fn send_unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    interface
        .call(Operation::SendMessage, interface.message_to(TaskId::generate()))
        .await
        .expect(&[ErrorKind::TaskNotFound])
}

pub(crate) async fn cancel_ended(interface: &TestedInterface) -> CheckResult {
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
