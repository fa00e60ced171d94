//! Checks of TLS, authentication and task ownership.

pub(crate) mod second_caller;

use http::header::WWW_AUTHENTICATE;
use switchboard_a2a::{ErrorKind, ListRequest, Operation, Request, TaskId};

use crate::card::security::is_demanded;
use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::Caller;
use crate::verdict::{CheckResult, OrSkip, applies_if, fail, skip};

pub(crate) fn is_loopback(url: &str) -> bool {
    match url::Url::parse(url).ok().as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

pub(crate) async fn tls(interface: &TestedInterface) -> CheckResult {
    let url = &interface.endpoint.url;
    match () {
        () if url.starts_with("https://") => Ok(()),
        () if is_loopback(url) => skip("the agent is on this machine"),
        () => fail(format!("requests to {url}"), "the address is not encrypted"),
    }
}

const OPEN: &str = "the card does not demand credentials of every caller";

/// Requests that do no harm even if they are let in: all of them name tasks that do not exist.
fn operations(interface: &TestedInterface) -> Vec<(Operation, Request)> {
    let unknown = TaskId::generate;
    let mut operations = vec![
        (Operation::GetTask, interface.get_request(unknown())),
        (Operation::SendMessage, interface.message_to(unknown())),
        (Operation::CancelTask, interface.cancel_request(unknown())),
    ];
    if interface.is_v1() {
        let list = ListRequest { page_size: Some(1), tenant: interface.tenant(), ..ListRequest::default() };
        operations.push((Operation::ListTasks, Request::List(list)));
    }
    if interface.agent.has_capability("pushNotifications") {
        operations.push((Operation::ListPushConfigs, interface.list_webhooks_request(unknown())));
    }
    operations
}

/// Whether a caller is refused for its credentials. Over JSON-RPC the specification has no code for it.
fn is_refused(reply: &Reply) -> bool {
    let kinds = [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied];
    matches!(reply.status, 401 | 403)
        || matches!(reply.content, ReplyContent::Error(None))
        || reply.is_refused_with_any(&kinds)
}

/// Passes if every one of the operations is refused.
async fn all_refused(
    interface: &TestedInterface,
    caller: Caller,
    operations: Vec<(Operation, Request)>,
) -> CheckResult {
    applies_if(is_demanded(&interface.agent.card), OPEN)?;
    for (operation, request) in operations {
        let reply = interface.call_as(caller, operation, request).await;
        if !is_refused(&reply) {
            return reply.failure();
        }
    }
    Ok(())
}

pub(crate) async fn enforced(interface: &TestedInterface) -> CheckResult {
    all_refused(interface, Caller::Anonymous, operations(interface)).await
}

pub(crate) async fn wrong(interface: &TestedInterface) -> CheckResult {
    // Few attempts: agents may block clients that try many keys.
    let operations = operations(interface).into_iter().take(2).collect();
    all_refused(interface, Caller::WrongCredentials, operations).await
}

pub(crate) async fn challenge(interface: &TestedInterface) -> CheckResult {
    applies_if(is_demanded(&interface.agent.card), OPEN)?;
    let request = interface.get_request(TaskId::generate());
    let reply = interface.call_as(Caller::Anonymous, Operation::GetTask, request).await;
    match reply.status {
        401 if reply.headers.contains_key(WWW_AUTHENTICATE) => Ok(()),
        401 => reply.failure_because("there is no WWW-Authenticate"),
        _ => skip("it was not refused with 401"),
    }
}

pub(crate) async fn foreign_task(interface: &TestedInterface) -> CheckResult {
    applies_if(is_demanded(&interface.agent.card), OPEN)?;
    applies_if(interface.agent.has_credentials, "the agent was called without credentials")?;
    let id = interface.first_id().await.or_skip("the agent has made no task")?;
    let reply = interface.call_as(Caller::Anonymous, Operation::GetTask, interface.get_request(id)).await;
    match &reply.content {
        ReplyContent::Result(task) if task["id"] == id => reply.failure_because("a caller without credentials got it"),
        _ => Ok(()),
    }
}
