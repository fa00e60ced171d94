//! Whether strangers are kept out: encryption, credentials that are demanded, tasks of somebody else.

pub(crate) mod other;

use http::header::WWW_AUTHENTICATE;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, PushRequest, Request, TaskId};

use crate::answer::{Reply, Said};
use crate::card::security::is_demanded;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::Line;
use crate::question::{Caller, Question};
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
        fix: "check credentials before anything else, whatever is asked for, and answer 401",
        run: Run::Interface(|line| Box::pin(enforced(line))),
    },
    Check {
        id: "security-wrong",
        group: Group::Security,
        title: "callers with credentials that were never given out are refused",
        rule: "A2A 1.0 §3.3.2, §7.4",
        severity: Severity::Must,
        fix: "look credentials up instead of only looking whether there are any, and answer 401",
        run: Run::Interface(|line| Box::pin(wrong(line))),
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

const OPEN: &str = "the card does not demand credentials of everybody";

/// Something harmless, asked by nobody in particular.
async fn anonymous(line: &Line) -> Reply {
    match line.harmless() {
        Ok(question) => line.ask(&Question { caller: Caller::Nobody, ..question }).await,
        Err(problem) => Reply { seen: problem, ..Reply::default() },
    }
}

/// What can be asked without doing any harm, should the door be open: all of it is about tasks that nobody has.
fn doors(line: &Line) -> Vec<(Operation, Request)> {
    let (none, tenant) = (TaskId::generate, || line.tenant());
    let mut doors = vec![
        (Operation::GetTask, Request::Get { id: none(), history_length: None, tenant: tenant() }),
        (Operation::SendMessage, line.message_to(none())),
        (Operation::CancelTask, Request::Cancel { id: none(), metadata: None, tenant: tenant() }),
    ];
    if line.is_v1() {
        let list = ListRequest { page_size: Some(1), tenant: tenant(), ..ListRequest::default() };
        doors.push((Operation::ListTasks, Request::List(list)));
    }
    if line.subject.can("pushNotifications") {
        let list = PushRequest::List { task_id: none(), page_size: None, page_token: None, tenant: tenant() };
        doors.push((Operation::ListPushConfigs, Request::Push(list)));
    }
    doors
}

/// Whether somebody is refused for who he is. Over JSON-RPC the specification has no code for it.
fn is_kept_out(reply: &Reply) -> bool {
    let kinds = [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied];
    matches!(reply.status, 401 | 403)
        || matches!(reply.said, Said::Refused(None))
        || kinds.into_iter().any(|kind| reply.is_refused_with(kind))
}

/// Whether somebody is refused at every door.
async fn kept_out(line: &Line, caller: Caller, doors: Vec<(Operation, Request)>) -> Verdict {
    if !is_demanded(&line.subject.card) {
        return Verdict::not_applicable(OPEN);
    }
    for (operation, request) in doors {
        let reply = line.call_as(caller, operation, request).await;
        if !is_kept_out(&reply) {
            return reply.complaint();
        }
    }
    Verdict::pass()
}

async fn enforced(line: &Line) -> Verdict {
    kept_out(line, Caller::Nobody, doors(line)).await
}

async fn wrong(line: &Line) -> Verdict {
    // Whoever tries too many keys is suspicious.
    let doors = doors(line).into_iter().take(2).collect();
    kept_out(line, Caller::Impostor, doors).await
}

async fn challenge(line: &Line) -> Verdict {
    if !is_demanded(&line.subject.card) {
        return Verdict::not_applicable(OPEN);
    }
    let reply = anonymous(line).await;
    match reply.status {
        401 if reply.headers.contains_key(WWW_AUTHENTICATE) => Verdict::pass(),
        401 => reply.complaint_that("there is no WWW-Authenticate"),
        _ => Verdict::not_applicable("it was not refused with 401"),
    }
}

async fn foreign_task(line: &Line) -> Verdict {
    if !is_demanded(&line.subject.card) {
        return Verdict::not_applicable(OPEN);
    }
    if !line.subject.has_credentials {
        return Verdict::not_applicable("the agent was called without credentials");
    }
    let Some(id) = line.first_id().await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: line.tenant() };
    let reply = line.call_as(Caller::Nobody, Operation::GetTask, request).await;
    match &reply.said {
        Said::Result(task) if task["id"] == id => reply.complaint_that("a caller without credentials got it"),
        _ => Verdict::pass(),
    }
}
