//! Checks of the extended card: there if it is declared, and for authenticated callers only.

use serde_json::Value;
use switchboard_a2a::{ErrorKind, Operation, Request};

use crate::interface::TestedInterface;
use crate::reply::{Reply, ReplyContent};
use crate::request::Caller;
use crate::verdict::{CheckResult, applies_if, no_problems, skip};
use crate::wire::without_text;

const UNDECLARED: &str = "the card declares no extended card";

async fn is_declared(interface: &TestedInterface) -> bool {
    if interface.is_v1() {
        return interface.agent.has_capability("extendedAgentCard");
    }
    let old = &interface.agent.v03_card().await.json;
    old.as_ref().is_some_and(|card| card["supportsAuthenticatedExtendedCard"] == true)
}

async fn get_extended_card(interface: &TestedInterface, caller: Caller) -> Reply {
    interface.call_as(caller, Operation::GetExtendedCard, Request::ExtendedCard { tenant: interface.tenant() }).await
}

pub(crate) async fn given(interface: &TestedInterface) -> CheckResult {
    applies_if(is_declared(interface).await, UNDECLARED)?;
    applies_if(interface.agent.has_credentials, "the agent was called without credentials")?;
    let reply = get_extended_card(interface, Caller::First).await;
    let Some(card) = reply.result() else { return reply.failure() };
    let name = without_text(card, &["name"]).map(|member| format!("it has no {member}"));
    let lists = ["skills", "supportedInterfaces"].into_iter().filter(|member| interface.is_v1() || *member == "skills");
    let lists = lists.filter(|member| !card[*member].is_array()).map(|member| format!("{member} is no array"));
    no_problems(name.chain(lists), &reply.sent)
}

pub(crate) async fn guarded(interface: &TestedInterface) -> CheckResult {
    applies_if(is_declared(interface).await, UNDECLARED)?;
    let reply = get_extended_card(interface, Caller::Anonymous).await;
    match reply.result() {
        Some(card) if *card != Value::Null => reply.failure(),
        _ => Ok(()),
    }
}

pub(crate) async fn undeclared(interface: &TestedInterface) -> CheckResult {
    applies_if(!is_declared(interface).await, "the card declares an extended card")?;
    let reply = get_extended_card(interface, Caller::First).await;
    match reply.content {
        // Without authentication nothing is known of the card.
        _ if matches!(reply.status, 401 | 403) => skip("it needs credentials that are accepted"),
        // Version 0.3 does not demand its error; over REST the path may not exist at all.
        ReplyContent::Error(_) if !interface.is_v1() => Ok(()),
        ReplyContent::NotA2a if !interface.is_v1() && reply.status >= 400 => Ok(()),
        _ => reply.expect(&[ErrorKind::UnsupportedOperation]),
    }
}
