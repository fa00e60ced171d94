//! Whether an agent that insists on extensions says so to those who do not know them, and takes those who do. All other
//! checks declare what the card requires.

use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::DECLINED;
use crate::request::TestRequest;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "extension-required",
        group: Group::Extensions,
        title: "callers that do not declare a required extension are refused with -32008",
        rule: "A2A 1.0 §3.3.4, §4.6.3",
        severity: Severity::Must,
        fix: "answer ExtensionSupportRequiredError, or do not mark the extension as required",
        run: Run::Interface(|interface| Box::pin(required(interface))),
    },
    Check {
        id: "extension-declared",
        group: Group::Extensions,
        title: "callers that declare the required extensions are taken",
        rule: "A2A 1.0 §3.2.6, §4.6.3",
        severity: Severity::Must,
        fix: "read A2A-Extensions, a list with commas",
        run: Run::Interface(|interface| Box::pin(declared(interface))),
    },
    Check {
        id: "extension-echoed",
        group: Group::Extensions,
        title: "answers name the required extensions as active",
        rule: "A2A 1.0 §3.2.6, §4.6",
        severity: Severity::Should,
        fix: "send the active extensions in A2A-Extensions (0.3: X-A2A-Extensions) with every answer",
        run: Run::Interface(|interface| Box::pin(echoed(interface))),
    },
];

const NONE: &str = "the card requires no extension";

async fn required(interface: &TestedInterface) -> Verdict {
    if interface.agent.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 names no error for it");
    }
    let request = Request::Send(interface.message(true));
    let reply = interface.call_with(Operation::SendMessage, request, |test_request| TestRequest {
        declares_extensions: false,
        ..test_request
    });
    reply.await.expect(&[ErrorKind::ExtensionRequired])
}

async fn declared(interface: &TestedInterface) -> Verdict {
    if interface.agent.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    let reply = &interface.first().await.reply;
    match () {
        () if reply.is_refused_with(ErrorKind::ExtensionRequired) => reply.failure(),
        () if reply.result().is_some() => Verdict::pass(),
        () => Verdict::not_applicable(DECLINED),
    }
}

async fn echoed(interface: &TestedInterface) -> Verdict {
    if interface.agent.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    let reply = &interface.first().await.reply;
    if reply.result().is_none() {
        return Verdict::not_applicable(DECLINED);
    }
    let names: &[&str] = if interface.is_v1() { &["a2a-extensions"] } else { &["x-a2a-extensions", "a2a-extensions"] };
    let values = names.iter().flat_map(|name| reply.headers.get_all(*name)).filter_map(|value| value.to_str().ok());
    let active: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let missing: Vec<String> =
        interface.agent.required.iter().filter(|uri| !active.contains(&uri.as_str())).cloned().collect();
    match missing.is_empty() {
        true => Verdict::pass(),
        false => Verdict::fail(&reply.sent, format!("{} is not named as active", missing.join(", "))),
    }
}
