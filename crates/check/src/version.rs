//! Whether versions of the protocol are told apart as callers ask for them.

use switchboard_a2a::{ErrorKind, TaskId};

use crate::card::speaks;
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "version-unknown",
        group: Group::Version,
        title: "a version that is not spoken is refused with -32009",
        rule: "A2A 1.0 §3.6.2",
        severity: Severity::Must,
        fix: "read A2A-Version, and answer VersionNotSupportedError",
        run: Run::Interface(|interface| Box::pin(unknown(interface))),
    },
    Check {
        id: "version-minor",
        group: Group::Version,
        title: "a minor version that is not on the card is refused with -32009",
        rule: "A2A 1.0 §3.6.2",
        severity: Severity::Must,
        fix: "compare major and minor, not the major version alone",
        run: Run::Interface(|interface| Box::pin(minor(interface))),
    },
    Check {
        id: "version-malformed",
        group: Group::Version,
        title: "a version without a minor number is refused",
        rule: "A2A 1.0 §3.6, §3.6.2",
        severity: Severity::Should,
        fix: "answer VersionNotSupportedError to an A2A-Version that is not major and minor",
        run: Run::Interface(|interface| Box::pin(malformed(interface))),
    },
    Check {
        id: "version-patch",
        group: Group::Version,
        title: "a patch number in A2A-Version changes nothing",
        rule: "A2A 1.0 §3.6",
        severity: Severity::Must,
        fix: "compare major and minor only",
        run: Run::Interface(|interface| Box::pin(patch(interface))),
    },
    Check {
        id: "version-absent",
        group: Group::Version,
        title: "an interface of version 0.3 understands callers without A2A-Version",
        rule: "A2A 1.0 §3.6.2",
        severity: Severity::Must,
        fix: "read an absent header as version 0.3",
        run: Run::Interface(|interface| Box::pin(absent(interface))),
    },
    Check {
        id: "version-old-callers",
        group: Group::Version,
        title: "callers of version 0.3 are understood",
        rule: "A2A 1.0 §3.6.2 leaves it open",
        severity: Severity::Quality,
        fix: "serve version 0.3 beside 1.0, and declare it on the card: many callers speak nothing else",
        run: Run::Interface(|interface| Box::pin(old_callers(interface))),
    },
];

/// Asks something harmless in another version than the interface's.
async fn asked(interface: &TestedInterface, version: Option<&'static str>) -> Reply {
    match interface.harmless_request() {
        Ok(mut test_request) => {
            test_request.version = version;
            interface.ask(&test_request).await
        }
        Err(problem) => Reply { seen: problem, ..Reply::default() },
    }
}

/// Whoever answers has understood; whether a task that does not exist is refused has a check of its own.
fn understood(reply: &Reply) -> Verdict {
    if reply.result().is_some() { Verdict::pass() } else { reply.expect(&[ErrorKind::TaskNotFound]) }
}

async fn unknown(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 does not know the header");
    }
    asked(interface, Some("9.9")).await.expect(&[ErrorKind::VersionNotSupported])
}

/// Later minor versions that a server may be built for, and names on its card then.
const MINORS: [&str; 3] = ["1.7", "1.8", "1.9"];

async fn minor(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 does not know the header");
    }
    match MINORS.into_iter().find(|version| !speaks(&interface.agent.card, version)) {
        Some(version) => asked(interface, Some(version)).await.expect(&[ErrorKind::VersionNotSupported]),
        None => Verdict::not_applicable("the card has every minor version that is tried"),
    }
}

/// The specification names no error for what is no version, so that any refusal of the request will do.
async fn malformed(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 does not know the header");
    }
    let kinds = [ErrorKind::VersionNotSupported, ErrorKind::InvalidRequest, ErrorKind::InvalidParams];
    asked(interface, Some("1")).await.expect(&kinds)
}

async fn patch(interface: &TestedInterface) -> Verdict {
    if !interface.is_v1() {
        return Verdict::not_applicable("version 0.3 does not know the header");
    }
    understood(&asked(interface, Some("1.0.0")).await)
}

async fn absent(interface: &TestedInterface) -> Verdict {
    if interface.is_v1() {
        return Verdict::not_applicable("no interface of version 0.3 is declared");
    }
    understood(&asked(interface, None).await)
}

async fn old_callers(interface: &TestedInterface) -> Verdict {
    if !interface.is_rpc() {
        return Verdict::not_applicable("only JSON-RPC serves both versions at one address");
    }
    if interface.is_v1() && speaks(&interface.agent.card, "0.3") {
        return Verdict::not_applicable("version 0.3 has an interface of its own");
    }
    let mut test_request = interface.rpc("tasks/get", serde_json::json!({ "id": TaskId::generate() }));
    test_request.version = None;
    understood(&interface.ask(&test_request).await)
}
