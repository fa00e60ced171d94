//! A webhook's receiver on this machine, and what must have come to it by the end of a task.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::run::{Answer, Checked, equal};

/// Servers that deliver do so within moments.
const PATIENCE: Duration = Duration::from_secs(25);

/// The headers that carry the token of a webhook: version 0.3 has the first for an example, 1.0 leaves it open.
const TOKEN: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];

pub(crate) struct Receiver {
    address: SocketAddr,
    deliveries: mpsc::Receiver<Delivery>,
    work: JoinHandle<()>,
}

struct Delivery {
    token: Option<String>,
    body: Value,
}

impl Receiver {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, deliveries) = mpsc::channel(64);
        let work = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let sender = sender.clone();
                let service = service_fn(move |request| taken(request, sender.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
        Ok(Self { address, deliveries, work })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Waits until the task has ended as far as this webhook was told. Every delivery must be of this task and carry the
    /// token, and what the task has produced must be among them.
    pub(crate) async fn heard(mut self, task_id: &str, token: &str, produced: &str) -> Checked {
        let mut bodies = Vec::new();
        loop {
            let next = tokio::time::timeout(PATIENCE, self.deliveries.recv()).await;
            let next = next.with_context(|| format!("the webhook was not told of the end, only {bodies:?}"))?;
            let Delivery { token: sent, body } = next.context("the receiver has ended")?;
            equal(sent.as_deref(), Some(token))?;
            // Version 1.0 wraps what it sends in its kind.
            let told = ["task", "statusUpdate", "artifactUpdate"].iter().find_map(|kind| body.get(kind));
            let told = told.unwrap_or(&body).clone();
            let id = told.get("taskId").or_else(|| told.get("id"));
            equal(id.and_then(Value::as_str), Some(task_id)).with_context(|| format!("in {body}"))?;
            let state = told["status"]["state"].as_str().unwrap_or_default().to_ascii_lowercase();
            let artifacts = [&told["artifacts"], &told["artifact"]].map(Value::to_string);
            bodies.push(artifacts.concat());
            if state.ends_with("completed") {
                break;
            }
        }
        anyhow::ensure!(bodies.iter().any(|body| body.contains(produced)), "{produced:?} is not in {bodies:?}");
        Ok(Answer::Given)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn taken(
    request: Request<Incoming>,
    sender: mpsc::Sender<Delivery>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let token = TOKEN.iter().find_map(|name| request.headers().get(*name));
    let token = token.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = match request.into_body().collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => Value::Null,
    };
    // The receiver of the channel is gone once the check is over.
    let _ = sender.send(Delivery { token, body }).await;
    Ok(Response::new(Empty::new()))
}
