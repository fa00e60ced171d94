//! An agent built with the official Rust SDK, for our client to call: `server PORT`, 0 for a free one. Prints the
//! port first. Everything is as the SDK has it by default, but that it calls webhooks on this machine and that answers
//! leave without waiting for more.

mod behaviours;
mod card;
mod events;
mod executions;

use std::sync::Arc;
use std::time::Duration;

use a2a::AgentCard;
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{
    DefaultRequestHandler, HttpPushSender, HttpPushSenderConfig, InMemoryPushConfigStore, InMemoryTaskStore,
    StaticAgentCard,
};
use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::behaviours::Behaviours;

/// How long it waits for a webhook's receiver. The SDK's own 5 s show the same and take longer.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port = std::env::args().nth(1).context("usage: server PORT")?;
    let port: u16 = port.parse().with_context(|| format!("{port:?} is not a port"))?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();
    println!("{port}");
    let listener = listener.tap_io(|stream| {
        // A socket that refuses the option still works, only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, application(&format!("http://127.0.0.1:{port}"))).await?;
    Ok(())
}

/// The agent, and under `/plain` the same without webhooks, which leave it a little time between two events. Each interface
/// has a card of its own as well, under `/only/INTERFACE`.
fn application(address: &str) -> Router {
    let plain = format!("{address}/plain");
    let mut router = agent(address, true).nest("/plain", agent(&plain, false));
    let whole = card::card(address, true);
    for interface in &whole.supported_interfaces {
        let binding = interface.url.rsplit('/').next().unwrap_or_default();
        let alone = vec![interface.clone()];
        let card = StaticAgentCard::new(AgentCard { supported_interfaces: alone, ..whole.clone() });
        router = router.nest(&format!("/only/{binding}-1.0"), agent_card_router(Arc::new(card)));
    }
    router
}

fn agent(address: &str, has_webhooks: bool) -> Router {
    let card = card::card(address, has_webhooks);
    let mut handler = DefaultRequestHandler::new(Behaviours::default(), InMemoryTaskStore::new())
        .with_capabilities(card.capabilities.clone());
    if has_webhooks {
        let sender = HttpPushSender::new(Some(HttpPushSenderConfig {
            timeout: WEBHOOK_TIMEOUT,
            fail_on_error: false,
            // It would refuse this machine's own addresses.
            validate_urls: false,
        }));
        handler = handler.with_push_notifications(InMemoryPushConfigStore::new(), sender);
    }
    let handler = Arc::new(handler);
    Router::new()
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .nest("/jsonrpc", jsonrpc_router(Arc::clone(&handler)))
        .nest("/rest", rest_router(handler))
}
