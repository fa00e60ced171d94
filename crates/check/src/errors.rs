//! Whether what is wrong is refused, as what it is and in the form that the binding and the version have for it.

pub(crate) mod form;

use serde_json::json;
use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::answer::Reply;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::verdict::Verdict;
use crate::wire;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "error-method-unknown",
        group: Group::Errors,
        title: "a method that does not exist is refused with -32601",
        rule: "A2A 1.0 §9.5; JSON-RPC 2.0 §5.1",
        severity: Severity::Must,
        fix: "answer MethodNotFoundError",
        run: Run::Interface(|line| Box::pin(method_unknown(line))),
    },
    Check {
        id: "error-params-invalid",
        group: Group::Errors,
        title: "parameters that lack what is required are refused with -32602",
        rule: "A2A 1.0 §3.3.2, §5.7",
        severity: Severity::Must,
        fix: "check parameters before anything is done, and answer InvalidParamsError; 400 over REST",
        run: Run::Interface(|line| Box::pin(params_invalid(line))),
    },
    Check {
        id: "error-json-malformed",
        group: Group::Errors,
        title: "a body that is no JSON is refused with -32700",
        rule: "A2A 1.0 §9.5; JSON-RPC 2.0 §5.1",
        severity: Severity::Must,
        fix: "answer JSONParseError with a null id; 400 over REST",
        run: Run::Interface(|line| Box::pin(json_malformed(line))),
    },
    Check {
        id: "error-request-invalid",
        group: Group::Errors,
        title: "JSON that is no request is refused with -32600",
        rule: "A2A 1.0 §9.5; JSON-RPC 2.0 §5.1",
        severity: Severity::Must,
        fix: "answer InvalidRequestError where jsonrpc or method is missing",
        run: Run::Interface(|line| Box::pin(request_invalid(line))),
    },
    Check {
        id: "error-task-unknown",
        group: Group::Errors,
        title: "a task that does not exist is refused with -32001, over REST with 404",
        rule: "A2A 1.0 §3.1.3, §5.4",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|line| Box::pin(task_unknown(line))),
    },
    Check {
        id: "error-cancel-unknown",
        group: Group::Errors,
        title: "canceling a task that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.1.5",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|line| Box::pin(cancel_unknown(line))),
    },
    Check {
        id: "error-send-unknown",
        group: Group::Errors,
        title: "a message to a task that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.4.2",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError; tasks are never made with an id of the caller's",
        run: Run::Interface(|line| Box::pin(send_unknown(line))),
    },
    Check {
        id: "error-cancel-ended",
        group: Group::Errors,
        title: "canceling a task that has ended is refused with -32002",
        rule: "A2A 1.0 §3.1.5, §3.3.1, §3.3.2",
        severity: Severity::Must,
        fix: "answer TaskNotCancelableError; one that was canceled may be canceled again",
        run: Run::Interface(|line| Box::pin(cancel_ended(line))),
    },
];

pub(crate) const NOT_RPC: &str = "only JSON-RPC has it";

async fn method_unknown(line: &Line) -> Verdict {
    if !line.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    let method = if line.is_v1() { "NoSuchMethod" } else { "no/such" };
    line.ask(&line.rpc(method, json!({}))).await.expect(&[ErrorKind::MethodNotFound])
}

async fn params_invalid(line: &Line) -> Verdict {
    let question = if line.is_rpc() {
        line.rpc(Operation::SendMessage.method(line.interface.version), json!({}))
    } else {
        line.rest("POST", "/message:send", Some(b"{}".to_vec()))
    };
    let reply = line.ask(&question).await;
    if let Some(id) = line.task_id(&reply) {
        // It should not be there, and nobody waits for it.
        line.cancel(&id).await;
    }
    reply.expect_or_bad_request(line.interface.binding, &[ErrorKind::InvalidParams])
}

async fn json_malformed(line: &Line) -> Verdict {
    let bytes = b"{\"jsonrpc\": \"2.0\", ".to_vec();
    let question = if line.is_rpc() { line.bytes(bytes) } else { line.rest("POST", "/message:send", Some(bytes)) };
    line.ask(&question).await.expect_or_bad_request(line.interface.binding, &[ErrorKind::Parse])
}

async fn request_invalid(line: &Line) -> Verdict {
    if !line.is_rpc() {
        return Verdict::not_applicable(NOT_RPC);
    }
    let reply = line.ask(&line.bytes(json!({ "id": 1, "hello": "there" }).to_string().into_bytes())).await;
    reply.expect(&[ErrorKind::InvalidRequest])
}

async fn task_unknown(line: &Line) -> Verdict {
    let reply = line.get_nobodys().await;
    if !line.is_rpc() && reply.status != 404 {
        return reply.complaint();
    }
    reply.expect(&[ErrorKind::TaskNotFound])
}

async fn cancel_unknown(line: &Line) -> Verdict {
    line.cancel(TaskId::generate().as_str()).await.expect(&[ErrorKind::TaskNotFound])
}

async fn send_unknown(line: &Line) -> Verdict {
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 leaves it open");
    }
    line.call(Operation::SendMessage, line.message_to(TaskId::generate())).await.expect(&[ErrorKind::TaskNotFound])
}

async fn cancel_ended(line: &Line) -> Verdict {
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let reply = line.cancel(id).await;
    let state = |reply: &Reply| reply.result().and_then(|task| wire::state(line.dialect(), task));
    // What was canceled may be canceled again, and be forgotten after that.
    let is_repeated = state(&reply) == Some("canceled") || reply.is_refused_with(ErrorKind::TaskNotFound);
    if is_repeated && line.canceled().await.is_some_and(|canceled| canceled.id == id && canceled.is_done(line)) {
        return Verdict::pass();
    }
    reply.expect(&[ErrorKind::TaskNotCancelable]).about(id)
}
