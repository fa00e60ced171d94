//! Whether strangers are kept out: encryption, credentials that are demanded, tasks of somebody else.

pub(crate) mod second_caller;

use http::header::WWW_AUTHENTICATE;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, PushRequest, Request, TaskId};

use crate::card::security::is_demanded;
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::{Caller, TestRequest};
use crate::verdict::Verdict;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "security-tls",
        group: Group::Security,
        title: "the agent is called over an encrypted connection",
        rule: "A2A 1.0 §7.1",
        severity: Severity::Must,
        fix: "serve https, and put https addresses on the card",
        run: Run::Interface(|interface| Box::pin(tls(interface))),
    },
    Check {
        id: "security-enforced",
        group: Group::Security,
        title: "callers without the credentials that the card demands are refused",
        rule: "A2A 1.0 §7.4",
        severity: Severity::Must,
        fix: "check credentials before anything else, whatever is asked for, and answer 401",
        run: Run::Interface(|interface| Box::pin(enforced(interface))),
    },
    Check {
        id: "security-wrong",
        group: Group::Security,
        title: "callers with credentials that were never given out are refused",
        rule: "A2A 1.0 §3.3.2, §7.4",
        severity: Severity::Must,
        fix: "look credentials up instead of only looking whether there are any, and answer 401",
        run: Run::Interface(|interface| Box::pin(wrong(interface))),
    },
    Check {
        id: "security-challenge",
        group: Group::Security,
        title: "a refusal for lack of credentials says which are wanted",
        rule: "A2A 1.0 §7.4",
        severity: Severity::Should,
        fix: "send WWW-Authenticate with 401",
        run: Run::Interface(|interface| Box::pin(challenge(interface))),
    },
    Check {
        id: "security-foreign-task",
        group: Group::Security,
        title: "the task of one caller cannot be read by a stranger",
        rule: "A2A 1.0 §13.1",
        severity: Severity::Must,
        fix: "look for tasks among those of the caller only, and answer TaskNotFoundError for all others",
        run: Run::Interface(|interface| Box::pin(foreign_task(interface))),
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

async fn tls(interface: &TestedInterface) -> Verdict {
    let url = &interface.endpoint.url;
    match () {
        () if url.starts_with("https://") => Verdict::pass(),
        () if is_loopback(url) => Verdict::not_applicable("the agent is on this machine"),
        () => Verdict::fail(format!("requests to {url}"), "the address is not encrypted"),
    }
}

const OPEN: &str = "the card does not demand credentials of everybody";

/// Something harmless, asked by nobody in particular.
async fn anonymous(interface: &TestedInterface) -> Reply {
    match interface.harmless_request() {
        Ok(test_request) => interface.ask(&TestRequest { caller: Caller::Anonymous, ..test_request }).await,
        Err(problem) => Reply { seen: problem, ..Reply::default() },
    }
}

/// What can be asked without doing any harm, should the door be open: all of it is about tasks that nobody has.
fn doors(interface: &TestedInterface) -> Vec<(Operation, Request)> {
    let (none, tenant) = (TaskId::generate, || interface.tenant());
    let mut doors = vec![
        (Operation::GetTask, Request::Get { id: none(), history_length: None, tenant: tenant() }),
        (Operation::SendMessage, interface.message_to(none())),
        (Operation::CancelTask, Request::Cancel { id: none(), metadata: None, tenant: tenant() }),
    ];
    if interface.is_v1() {
        let list = ListRequest { page_size: Some(1), tenant: tenant(), ..ListRequest::default() };
        doors.push((Operation::ListTasks, Request::List(list)));
    }
    if interface.agent.has_capability("pushNotifications") {
        let list = PushRequest::List { task_id: none(), page_size: None, page_token: None, tenant: tenant() };
        doors.push((Operation::ListPushConfigs, Request::Push(list)));
    }
    doors
}

/// Whether somebody is refused for who he is. Over JSON-RPC the specification has no code for it.
fn is_kept_out(reply: &Reply) -> bool {
    let kinds = [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied];
    matches!(reply.status, 401 | 403)
        || matches!(reply.content, ReplyContent::Error(None))
        || kinds.into_iter().any(|kind| reply.is_refused_with(kind))
}

/// Whether somebody is refused at every door.
async fn kept_out(interface: &TestedInterface, caller: Caller, doors: Vec<(Operation, Request)>) -> Verdict {
    if !is_demanded(&interface.agent.card) {
        return Verdict::not_applicable(OPEN);
    }
    for (operation, request) in doors {
        let reply = interface.call_as(caller, operation, request).await;
        if !is_kept_out(&reply) {
            return reply.failure();
        }
    }
    Verdict::pass()
}

async fn enforced(interface: &TestedInterface) -> Verdict {
    kept_out(interface, Caller::Anonymous, doors(interface)).await
}

async fn wrong(interface: &TestedInterface) -> Verdict {
    // Whoever tries too many keys is suspicious.
    let doors = doors(interface).into_iter().take(2).collect();
    kept_out(interface, Caller::WrongCredentials, doors).await
}

async fn challenge(interface: &TestedInterface) -> Verdict {
    if !is_demanded(&interface.agent.card) {
        return Verdict::not_applicable(OPEN);
    }
    let reply = anonymous(interface).await;
    match reply.status {
        401 if reply.headers.contains_key(WWW_AUTHENTICATE) => Verdict::pass(),
        401 => reply.failure_because("there is no WWW-Authenticate"),
        _ => Verdict::not_applicable("it was not refused with 401"),
    }
}

async fn foreign_task(interface: &TestedInterface) -> Verdict {
    if !is_demanded(&interface.agent.card) {
        return Verdict::not_applicable(OPEN);
    }
    if !interface.agent.has_credentials {
        return Verdict::not_applicable("the agent was called without credentials");
    }
    let Some(id) = interface.first_id().await else {
        return Verdict::not_applicable("the agent has made no task");
    };
    let request = Request::Get { id: TaskId::from(id), history_length: None, tenant: interface.tenant() };
    let reply = interface.call_as(Caller::Anonymous, Operation::GetTask, request).await;
    match &reply.content {
        ReplyContent::Result(task) if task["id"] == id => reply.failure_because("a caller without credentials got it"),
        _ => Verdict::pass(),
    }
}
