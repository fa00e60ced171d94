//! Whether the card for known callers is there where it is declared, for those who are known and for nobody else.

use serde_json::Value;
use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::Caller;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "card-extended",
        group: Group::Card,
        title: "an extended card that is declared is given to callers with credentials",
        rule: "A2A 1.0 §3.1.11; 0.3 §7.10",
        severity: Severity::Should,
        fix: "answer GetExtendedAgentCard with a whole card, or do not declare capabilities.extendedAgentCard",
        run: Run::Interface(|interface| Box::pin(given(interface))),
    },
    Check {
        id: "card-extended-guarded",
        group: Group::Card,
        title: "callers without credentials do not get the extended card",
        rule: "A2A 1.0 §3.1.11, §13.3",
        severity: Severity::Must,
        fix: "check credentials before GetExtendedAgentCard, and answer 401",
        run: Run::Interface(|interface| Box::pin(guarded(interface))),
    },
    Check {
        id: "card-extended-undeclared",
        group: Group::Card,
        title: "an extended card that is not declared is refused with -32004",
        rule: "A2A 1.0 §3.1.11, §3.3.4",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError, or declare capabilities.extendedAgentCard",
        run: Run::Interface(|interface| Box::pin(undeclared(interface))),
    },
];

const UNDECLARED: &str = "the card declares no extended card";

async fn is_declared(interface: &TestedInterface) -> bool {
    if interface.is_v1() {
        return interface.agent.has_capability("extendedAgentCard");
    }
    let old = &interface.agent.v03_card().await.json;
    old.as_ref().is_some_and(|card| card["supportsAuthenticatedExtendedCard"] == true)
}

async fn asked(interface: &TestedInterface, caller: Caller) -> Reply {
    interface.call_as(caller, Operation::GetExtendedCard, Request::ExtendedCard { tenant: interface.tenant() }).await
}

async fn given(interface: &TestedInterface) -> Verdict {
    if !is_declared(interface).await {
        return Verdict::not_applicable(UNDECLARED);
    }
    if !interface.agent.has_credentials {
        return Verdict::not_applicable("the agent was called without credentials");
    }
    let reply = asked(interface, Caller::First).await;
    let Some(card) = reply.result() else { return reply.failure() };
    let mut problems = Vec::new();
    if card["name"].as_str().is_none_or(str::is_empty) {
        problems.push("it has no name".to_owned());
    }
    let mut lists = vec!["skills"];
    if interface.is_v1() {
        lists.push("supportedInterfaces");
    }
    lists.retain(|member| !card[*member].is_array());
    problems.extend(lists.iter().map(|member| format!("{member} is no array")));
    Verdict::of(&problems, &reply.sent)
}

async fn guarded(interface: &TestedInterface) -> Verdict {
    if !is_declared(interface).await {
        return Verdict::not_applicable(UNDECLARED);
    }
    let reply = asked(interface, Caller::Anonymous).await;
    match reply.result() {
        Some(card) if *card != Value::Null => reply.failure(),
        _ => Verdict::pass(),
    }
}

async fn undeclared(interface: &TestedInterface) -> Verdict {
    if is_declared(interface).await {
        return Verdict::not_applicable("the card declares an extended card");
    }
    let reply = asked(interface, Caller::First).await;
    match reply.content {
        // At the door nothing is said about the house.
        _ if matches!(reply.status, 401 | 403) => Verdict::not_applicable("it needs credentials that are accepted"),
        // Version 0.3 has an error for it and does not demand it; over REST its path may not be there at all.
        ReplyContent::Error(_) if !interface.is_v1() => Verdict::pass(),
        ReplyContent::NotA2a if !interface.is_v1() && reply.status >= 400 => Verdict::pass(),
        _ => reply.expect(&[ErrorKind::UnsupportedOperation]),
    }
}
