//! Checks of required extensions. All other checks declare what the card requires.

use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::interface::TestedInterface;
use crate::reply::DECLINED;
use crate::request::TestRequest;
use crate::verdict::{CheckResult, applies_if, no_problems, skip};

const NONE: &str = "the card requires no extension";

pub(crate) async fn required(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.agent.required.is_empty(), NONE)?;
    applies_if(interface.is_v1(), "version 0.3 names no error for it")?;
    let request = Request::Send(interface.message(true));
    let reply = interface.call_with(Operation::SendMessage, request, |test_request| TestRequest {
        declares_extensions: false,
        ..test_request
    });
    reply.await.expect(&[ErrorKind::ExtensionRequired])
}

pub(crate) async fn declared(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.agent.required.is_empty(), NONE)?;
    let reply = &interface.first().await.reply;
    match () {
        () if reply.is_refused_with(ErrorKind::ExtensionRequired) => reply.failure(),
        () if reply.result().is_some() => Ok(()),
        () => skip(DECLINED),
    }
}

pub(crate) async fn echoed(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.agent.required.is_empty(), NONE)?;
    let reply = &interface.first().await.reply;
    applies_if(reply.result().is_some(), DECLINED)?;
    let names: &[&str] = if interface.is_v1() { &["a2a-extensions"] } else { &["x-a2a-extensions", "a2a-extensions"] };
    let values = names.iter().flat_map(|name| reply.headers.get_all(*name)).filter_map(|value| value.to_str().ok());
    let active: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let missing = interface.agent.required.iter().filter(|uri| !active.contains(&uri.as_str()));
    no_problems(missing.map(|uri| format!("{uri} is not named as active")), &reply.sent)
}
