//! Whether the card for known callers is there where it is declared, for those who are known and for nobody else.

use serde_json::Value;
use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::answer::{Reply, Said};
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::question::Caller;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "card-extended",
        group: Group::Card,
        title: "an extended card that is declared is given to callers with credentials",
        rule: "A2A 1.0 §3.1.11; 0.3 §7.10",
        severity: Severity::Should,
        fix: "answer GetExtendedAgentCard with a whole card, or do not declare capabilities.extendedAgentCard",
        run: Run::Interface(|line| Box::pin(given(line))),
    },
    Check {
        id: "card-extended-guarded",
        group: Group::Card,
        title: "callers without credentials do not get the extended card",
        rule: "A2A 1.0 §3.1.11, §13.3",
        severity: Severity::Must,
        fix: "check credentials before GetExtendedAgentCard, and answer 401",
        run: Run::Interface(|line| Box::pin(guarded(line))),
    },
    Check {
        id: "card-extended-undeclared",
        group: Group::Card,
        title: "an extended card that is not declared is refused with -32004",
        rule: "A2A 1.0 §3.1.11, §3.3.4",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError, or declare capabilities.extendedAgentCard",
        run: Run::Interface(|line| Box::pin(undeclared(line))),
    },
];

const UNDECLARED: &str = "the card declares no extended card";

async fn is_declared(line: &Line) -> bool {
    if line.is_v1() {
        return line.subject.can("extendedAgentCard");
    }
    let old = &line.subject.old_card().await.json;
    old.as_ref().is_some_and(|card| card["supportsAuthenticatedExtendedCard"] == true)
}

async fn asked(line: &Line, caller: Caller) -> Reply {
    line.call_as(caller, Operation::GetExtendedCard, Request::ExtendedCard { tenant: line.tenant() }).await
}

async fn given(line: &Line) -> Verdict {
    if !is_declared(line).await {
        return Verdict::not_applicable(UNDECLARED);
    }
    if !line.subject.has_credentials {
        return Verdict::not_applicable("the agent was called without credentials");
    }
    let reply = asked(line, Caller::Us).await;
    let Some(card) = reply.result() else { return reply.complaint() };
    let mut problems = Vec::new();
    if card["name"].as_str().is_none_or(str::is_empty) {
        problems.push("it has no name".to_owned());
    }
    let mut lists = vec!["skills"];
    if line.is_v1() {
        lists.push("supportedInterfaces");
    }
    lists.retain(|member| !card[*member].is_array());
    problems.extend(lists.iter().map(|member| format!("{member} is no array")));
    Verdict::of(&problems, &reply.sent)
}

async fn guarded(line: &Line) -> Verdict {
    if !is_declared(line).await {
        return Verdict::not_applicable(UNDECLARED);
    }
    let reply = asked(line, Caller::Nobody).await;
    match reply.result() {
        Some(card) if *card != Value::Null => reply.complaint(),
        _ => Verdict::pass(),
    }
}

async fn undeclared(line: &Line) -> Verdict {
    if is_declared(line).await {
        return Verdict::not_applicable("the card declares an extended card");
    }
    let reply = asked(line, Caller::Us).await;
    match reply.said {
        // At the door nothing is said about the house.
        _ if matches!(reply.status, 401 | 403) => Verdict::not_applicable("it needs credentials that are accepted"),
        // Version 0.3 has an error for it and does not demand it; over REST its path may not be there at all.
        Said::Refused(_) if !line.is_v1() => Verdict::pass(),
        Said::Nonsense if !line.is_v1() && reply.status >= 400 => Verdict::pass(),
        _ => reply.expect(&[ErrorKind::UnsupportedOperation]),
    }
}
