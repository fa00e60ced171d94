//! Checks of version negotiation by `A2A-Version`.

use switchboard_a2a::{ErrorKind, Operation, TaskId};

use crate::card::speaks;
use crate::interface::TestedInterface;
use crate::reply::Reply;
use crate::request::TestRequest;
use crate::verdict::{CheckResult, applies_if, skip};

/// Sends the harmless request with another version than the interface's.
async fn ask_in_version(interface: &TestedInterface, version: Option<&'static str>) -> Reply {
    let request = interface.get_request(TaskId::generate());
    interface.call_with(Operation::GetTask, request, |test_request| TestRequest { version, ..test_request }).await
}

/// A result means the version was understood; whether an unknown task is refused has its own check.
fn understood(reply: &Reply) -> CheckResult {
    if reply.result().is_some() { Ok(()) } else { reply.expect(&[ErrorKind::TaskNotFound]) }
}

pub(crate) async fn unknown(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not know the header")?;
    ask_in_version(interface, Some("9.9")).await.expect(&[ErrorKind::VersionNotSupported])
}

/// Later minor versions; a server built for one names it on its card.
const MINORS: [&str; 3] = ["1.7", "1.8", "1.9"];

pub(crate) async fn minor(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not know the header")?;
    match MINORS.into_iter().find(|version| !speaks(&interface.agent.card, version)) {
        Some(version) => ask_in_version(interface, Some(version)).await.expect(&[ErrorKind::VersionNotSupported]),
        None => skip("the card has every minor version that is tried"),
    }
}

/// The specification names no error for a malformed version, so any refusal of the request will do.
pub(crate) async fn malformed(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not know the header")?;
    let kinds = [ErrorKind::VersionNotSupported, ErrorKind::InvalidRequest, ErrorKind::InvalidParams];
    ask_in_version(interface, Some("1")).await.expect(&kinds)
}

pub(crate) async fn patch(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_v1(), "version 0.3 does not know the header")?;
    understood(&ask_in_version(interface, Some("1.0.0")).await)
}

pub(crate) async fn absent(interface: &TestedInterface) -> CheckResult {
    applies_if(!interface.is_v1(), "no interface of version 0.3 is declared")?;
    understood(&ask_in_version(interface, None).await)
}

pub(crate) async fn old_callers(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.is_rpc(), "only JSON-RPC serves both versions at one address")?;
    let has_own_interface = interface.is_v1() && speaks(&interface.agent.card, "0.3");
    applies_if(!has_own_interface, "version 0.3 has an interface of its own")?;
    let mut test_request = interface.rpc("tasks/get", serde_json::json!({ "id": TaskId::generate() }));
    test_request.version = None;
    understood(&interface.ask(&test_request).await)
}
