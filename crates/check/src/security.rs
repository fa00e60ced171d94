//! Whether strangers are kept out: encryption, credentials that are demanded, tasks of somebody else.

pub(crate) mod other;

use http::header::WWW_AUTHENTICATE;
use switchboard_a2a::{ErrorKind, Operation, Request, TaskId};

use crate::answer::{Reply, Said};
use crate::card::security::demanded;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::subject::Caller;
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "security-tls",
        group: Group::Security,
        title: "the agent is called over an encrypted connection",
        rule: "A2A 1.0 §7.1",
        severity: Severity::Must,
        fix: "serve https, and put https addresses on the card",
        run: Run::Interface(|line| Box::pin(tls(line))),
    },
    Check {
        id: "security-enforced",
        group: Group::Security,
        title: "callers without the credentials that the card demands are refused",
        rule: "A2A 1.0 §7.4",
        severity: Severity::Must,
        fix: "check credentials before anything else, and answer 401",
        run: Run::Interface(|line| Box::pin(enforced(line))),
    },
    Check {
        id: "security-challenge",
        group: Group::Security,
        title: "a refusal for lack of credentials says which are wanted",
        rule: "A2A 1.0 §7.4",
        severity: Severity::Should,
        fix: "send WWW-Authenticate with 401",
        run: Run::Interface(|line| Box::pin(challenge(line))),
    },
    Check {
        id: "security-foreign-task",
        group: Group::Security,
        title: "the task of one caller cannot be read by a stranger",
        rule: "A2A 1.0 §13.1",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|line| Box::pin(foreign_task(line))),
    },
];

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    match url::Url::parse(url).ok().as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

async fn tls(line: &Line) -> Verdict {
    let url = &line.interface.url;
    match () {
        () if url.starts_with("https://") => Verdict::pass(),
        () if is_loopback(url) => Verdict::not_applicable("the agent is on this machine"),
        () => Verdict::fail(format!("requests to {url}"), "the address is not encrypted"),
    }
}

/// Something harmless, asked by nobody in particular.
async fn anonymous(line: &Line) -> Reply {
    match line.harmless() {
        Ok(mut question) => {
            question.caller = Caller::Nobody;
            line.ask(&question).await
        }
        Err(problem) => Reply { seen: problem, ..Reply::default() },
    }
}

async fn enforced(line: &Line) -> Verdict {
    if demanded(&line.subject.card).is_empty() {
        return Verdict::not_applicable("the card demands no credentials");
    }
    let reply = anonymous(line).await;
    let is_refused = matches!(reply.status, 401 | 403) || reply.is_refused_with(ErrorKind::Unauthenticated);
    if is_refused { Verdict::pass() } else { reply.complaint() }
}

async fn challenge(line: &Line) -> Verdict {
    if demanded(&line.subject.card).is_empty() {
        return Verdict::not_applicable("the card demands no credentials");
    }
    let reply = anonymous(line).await;
    match reply.status {
        401 if reply.headers.contains_key(WWW_AUTHENTICATE) => Verdict::pass(),
        401 => reply.complaint_that("there is no WWW-Authenticate"),
        _ => Verdict::not_applicable("it was not refused with 401"),
    }
}

async fn foreign_task(line: &Line) -> Verdict {
    if !line.subject.has_credentials {
        return Verdict::not_applicable("the agent was called without credentials");
    }
    let Some(id) = line.first_id().await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: line.tenant() };
    let Ok((mut question, _)) = line.question(Operation::GetTask, &request) else {
        return Verdict::not_applicable("the task cannot be asked for");
    };
    question.caller = Caller::Nobody;
    let reply = line.ask(&question).await;
    match &reply.said {
        Said::Result(task) if task["id"] == id => reply.complaint_that("a caller without credentials got it"),
        _ => Verdict::pass(),
    }
}
