//! Whether an agent that insists on extensions says so to those who do not know them, and takes those who do. All other
//! checks declare what the card requires.

use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::answer::DECLINED;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::question::Question;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "extension-required",
        group: Group::Extensions,
        title: "callers that do not declare a required extension are refused with -32008",
        rule: "A2A 1.0 §3.3.4, §4.6.3",
        severity: Severity::Must,
        fix: "answer ExtensionSupportRequiredError, or do not mark the extension as required",
        run: Run::Interface(|line| Box::pin(required(line))),
    },
    Check {
        id: "extension-declared",
        group: Group::Extensions,
        title: "callers that declare the required extensions are taken",
        rule: "A2A 1.0 §3.2.6, §4.6.3",
        severity: Severity::Must,
        fix: "read A2A-Extensions, a list with commas",
        run: Run::Interface(|line| Box::pin(declared(line))),
    },
    Check {
        id: "extension-echoed",
        group: Group::Extensions,
        title: "answers name the required extensions as active",
        rule: "A2A 1.0 §3.2.6, §4.6",
        severity: Severity::Should,
        fix: "send the active extensions in A2A-Extensions (0.3: X-A2A-Extensions) with every answer",
        run: Run::Interface(|line| Box::pin(echoed(line))),
    },
];

const NONE: &str = "the card requires no extension";

async fn required(line: &Line) -> Verdict {
    if line.subject.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    if !line.is_v1() {
        return Verdict::not_applicable("version 0.3 names no error for it");
    }
    let request = Request::Send(line.message(true));
    let reply = line.call_with(Operation::SendMessage, request, |question| Question { declares: false, ..question });
    reply.await.expect(&[ErrorKind::ExtensionRequired])
}

async fn declared(line: &Line) -> Verdict {
    if line.subject.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    let reply = &line.first().await.reply;
    match () {
        () if reply.is_refused_with(ErrorKind::ExtensionRequired) => reply.complaint(),
        () if reply.result().is_some() => Verdict::pass(),
        () => Verdict::not_applicable(DECLINED),
    }
}

async fn echoed(line: &Line) -> Verdict {
    if line.subject.required.is_empty() {
        return Verdict::not_applicable(NONE);
    }
    let reply = &line.first().await.reply;
    if reply.result().is_none() {
        return Verdict::not_applicable(DECLINED);
    }
    let names: &[&str] = if line.is_v1() { &["a2a-extensions"] } else { &["x-a2a-extensions", "a2a-extensions"] };
    let values = names.iter().flat_map(|name| reply.headers.get_all(*name)).filter_map(|value| value.to_str().ok());
    let active: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let missing: Vec<String> =
        line.subject.required.iter().filter(|uri| !active.contains(&uri.as_str())).cloned().collect();
    match missing.is_empty() {
        true => Verdict::pass(),
        false => Verdict::fail(&reply.sent, format!("{} is not named as active", missing.join(", "))),
    }
}
