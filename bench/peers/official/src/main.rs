//! The official Rust SDK with its default handler and in-memory store, serving the agent that all peers serve
//! in the comparison. `POST /a2a` speaks JSON-RPC v1.0.

mod agent;

use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::{
    DefaultRequestHandler, HttpPushSender, HttpPushSenderConfig, InMemoryPushConfigStore, InMemoryTaskStore,
};
use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::Parser;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[derive(Parser)]
struct Arguments {
    /// Loopback address to listen on
    #[arg(long)]
    bind: SocketAddr,

    /// Deliver webhooks, loopback ones too, with this timeout; without it push is off, which is the faster set-up
    #[arg(long)]
    push_timeout_ms: Option<u64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    anyhow::ensure!(arguments.bind.ip().is_loopback(), "{} is not a loopback address", arguments.bind);
    let mut handler = DefaultRequestHandler::new(agent::Probe::default(), InMemoryTaskStore::new());
    if let Some(timeout_ms) = arguments.push_timeout_ms {
        let sender = HttpPushSender::new(Some(HttpPushSenderConfig {
            timeout: Duration::from_millis(timeout_ms),
            fail_on_error: false,
            validate_urls: false,
        }));
        handler = handler.with_push_notifications(InMemoryPushConfigStore::new(), sender);
    }
    let routes =
        Router::new().route("/healthz", get(|| async { "ok" })).nest("/a2a", jsonrpc_router(Arc::new(handler)));
    // The SDK leaves the socket to its user, so the comparison gives it the option that streaming needs.
    let listener = tokio::net::TcpListener::bind(arguments.bind).await?.tap_io(|stream| {
        // A socket that refuses the option still works, only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}
