//! Plain axum that reads the same requests and builds the same replies, with no store and no events behind them:
//! the ceiling that any A2A server on this stack can reach. `POST /a2a` speaks JSON-RPC v1.0.

mod reply;
mod request;
mod stream;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use bytes::Bytes;
use clap::Parser;
use std::net::SocketAddr;

use crate::request::{Call, Request};

#[derive(Parser)]
struct Arguments {
    /// Loopback address to listen on
    #[arg(long)]
    bind: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    anyhow::ensure!(arguments.bind.ip().is_loopback(), "{} is not a loopback address", arguments.bind);
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/.well-known/agent-card.json", get(|| async { json(reply::card()) }))
        .route("/a2a", post(answer));
    // Without this, Nagle's algorithm holds every second small frame back for 40 ms.
    let listener = tokio::net::TcpListener::bind(arguments.bind).await?.tap_io(|stream| {
        // A socket that refuses the option still works, only slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn answer(body: Bytes) -> Response {
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    match Call::of(&request) {
        Call::Send(message) => json(reply::completed(&request.id, message)),
        Call::Stream(message) => stream::message(request.id.clone(), message),
        Call::Subscribe => stream::subscription(request.id.clone()),
        Call::Unknown => json(reply::method_not_found(&request.id)),
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
