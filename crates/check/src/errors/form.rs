//! Checks of the form of errors: members, HTTP status and media type.

use serde_json::Value;
use switchboard_a2a::ErrorKind;

use super::NOT_RPC;
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::verdict::{CheckResult, applies_if, fail, no_problems, skip};
use crate::wire::short;

const NOT_REFUSED: &str = "a task that does not exist was not refused";

pub(crate) async fn form(interface: &TestedInterface) -> CheckResult {
    let reply = interface.get_unknown_task().await;
    applies_if(reply.result().is_none(), NOT_REFUSED)?;
    let Some(json) = reply.json.as_ref().filter(|_| !matches!(reply.content, ReplyContent::Unknown(_))) else {
        return reply.failure_because("this is no JSON");
    };
    applies_if(interface.is_v1() || interface.is_rpc(), "version 0.3 leaves the form open over REST")?;
    let error = &json["error"];
    let mut problems = Vec::new();
    if !error["code"].is_i64() {
        problems.push(format!("code is {}", short(&error["code"])));
    }
    if error["message"].as_str().is_none_or(str::is_empty) {
        problems.push(format!("message is {}", short(&error["message"])));
    }
    if interface.is_rpc() {
        if json["jsonrpc"] != "2.0" {
            problems.push(format!("jsonrpc is {}", short(&json["jsonrpc"])));
        }
        if json["id"] != 1 {
            problems.push(format!("id is {}, and 1 was asked with", short(&json["id"])));
        }
    } else {
        if error["code"] != reply.status {
            problems.push(format!("code is {} with status {}", short(&error["code"]), reply.status));
        }
        if reply.status == 404 && error["status"] != "NOT_FOUND" {
            problems.push(format!("status is {}, and NOT_FOUND goes with 404", short(&error["status"])));
        } else if !error["status"].is_string() {
            problems.push("status is missing".to_owned());
        }
    }
    if interface.is_v1() {
        let name = if interface.is_rpc() { "data" } else { "details" };
        match &error[name] {
            Value::Null => {}
            Value::Array(entries) if entries.iter().all(|entry| entry["@type"].is_string()) => {}
            Value::Array(_) => problems.push(format!("{name} has entries without @type: {}", short(&error[name]))),
            other => problems.push(format!("{name} is no array: {}", short(other))),
        }
    }
    no_problems(problems, &reply.sent)
}

pub(crate) async fn info_rpc(interface: &TestedInterface) -> CheckResult {
    if interface.is_rpc() { info(interface).await } else { skip(NOT_RPC) }
}

pub(crate) async fn info_rest(interface: &TestedInterface) -> CheckResult {
    if interface.is_rpc() { skip("only REST has it") } else { info(interface).await }
}

async fn info(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not know it")?;
    let reply = interface.get_unknown_task().await;
    applies_if(matches!(reply.content, ReplyContent::Error(_)), NOT_REFUSED)?;
    let error = reply.json.as_ref().map(|json| &json["error"]).unwrap_or(&Value::Null);
    let entries = if interface.is_rpc() { &error["data"] } else { &error["details"] };
    let mut entries = entries.as_array().into_iter().flatten();
    let is_there = entries.any(|entry| {
        let is_info = entry["@type"].as_str().is_some_and(|name| name.ends_with("google.rpc.ErrorInfo"));
        is_info && entry["reason"] == "TASK_NOT_FOUND" && entry["domain"] == "a2a-protocol.org"
    });
    if is_there { Ok(()) } else { reply.failure() }
}

pub(crate) async fn media_type(interface: &TestedInterface) -> CheckResult {
    let reply = interface.get_unknown_task().await;
    applies_if(matches!(reply.content, ReplyContent::Error(_)), NOT_REFUSED)?;
    match reply.media_type().as_str() {
        "application/json" => Ok(()),
        // The specification's own samples differ.
        other if interface.is_v1() && !interface.is_rpc() && other.ends_with("+json") => Ok(()),
        other => fail(&reply.sent, format!("Content-Type: {other}")),
    }
}

pub(crate) async fn status(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.is_rpc(), "JSON-RPC says it in the body")?;
    applies_if(interface.is_v1(), "version 0.3 leaves it open")?;
    let mut asked: Vec<(Reply, ErrorKind, &[u16])> =
        vec![(interface.get_unknown_task().await, ErrorKind::TaskNotFound, &[404])];
    if let Some(id) = interface.ended().await {
        // Version 1.0.0 said 409 where 1.0.1 says 400.
        asked.push((interface.cancel(id).await, ErrorKind::TaskNotCancelable, &[400, 409]));
    }
    if let Ok(mut test_request) = interface.harmless_request() {
        test_request.version = Some("9.9");
        asked.push((interface.ask(&test_request).await, ErrorKind::VersionNotSupported, &[400]));
    }
    // Other error kinds have a check of their own.
    asked.retain(|(reply, kind, statuses)| reply.is_refused_with(*kind) && !statuses.contains(&reply.status));
    match asked.first() {
        None => Ok(()),
        Some((reply, _, statuses)) => reply.failure_because(&format!("{} and not {}", reply.status, statuses[0])),
    }
}

pub(crate) async fn status_rpc(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), NOT_RPC)?;
    let reply = interface.get_unknown_task().await;
    match reply.content {
        ReplyContent::Error(_) if reply.status == 200 => Ok(()),
        ReplyContent::Error(_) => reply.failure(),
        _ => skip(NOT_REFUSED),
    }
}
