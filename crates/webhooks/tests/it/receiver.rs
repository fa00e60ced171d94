//! A receiver on loopback that answers as it is told and remembers what it was sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// What it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Delivery {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id").unwrap()
    }

    /// The state it tells, in the words of version 0.3, or the text of an artifact update.
    pub(crate) fn about(&self) -> String {
        let json = self.json();
        let frame = json.get("statusUpdate").or(json.get("task")).unwrap_or(&json);
        if let Some(state) = frame.pointer("/status/state") {
            return state.as_str().unwrap().trim_start_matches("TASK_STATE_").to_lowercase().replace('-', "_");
        }
        let text = json.pointer("/artifactUpdate/artifact/parts/0/text").or(json.pointer("/artifact/parts/0/text"));
        text.and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// How it answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Status(u16),
    RetryAfter(u16, String),
    Redirect(String),
    /// Takes the request and says nothing until it is let go.
    Hang,
    /// The same, and then this.
    HangThen(u16),
}

#[derive(Default)]
struct State {
    got: Vec<Delivery>,
    script: VecDeque<Answer>,
    otherwise: Option<Answer>,
}

/// A receiver; it is gone when dropped.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    let_go: Arc<Notify>,
}

impl Receiver {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, state: Arc::default(), changed: Arc::default(), let_go: Arc::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let receiver = serving.clone();
                let service = service_fn(move |request| {
                    let receiver = receiver.clone();
                    async move { Ok::<_, Infallible>(receiver.answer(request).await) }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        receiver
    }

    /// The next requests are answered like this, one each.
    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state.lock().script.extend(answers);
    }

    /// Everything without a script is answered like this.
    pub(crate) fn otherwise(&self, answer: Answer) {
        self.state.lock().otherwise = Some(answer);
    }

    /// Lets those go that hang.
    pub(crate) fn let_go(&self) {
        self.let_go.notify_waiters();
    }

    /// Everything it was sent.
    pub(crate) fn all(&self) -> Vec<Delivery> {
        self.state.lock().got.clone()
    }

    /// Waits until it was sent so many, and gives all.
    pub(crate) async fn got(&self, count: usize) -> Vec<Delivery> {
        let waiting = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                let got = self.all();
                if got.len() >= count {
                    return got;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(120), waiting).await {
            Ok(got) => got,
            Err(_) => panic!("{} of {count} deliveries: {:?}", self.all().len(), self.abouts()),
        }
    }

    pub(crate) fn abouts(&self) -> Vec<String> {
        self.all().iter().map(Delivery::about).collect()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let delivery = Delivery { headers: parts.headers, body };
        let mut let_go = std::pin::pin!(self.let_go.notified());
        let_go.as_mut().enable();
        let answer = {
            let mut state = self.state.lock();
            state.got.push(delivery);
            state.script.pop_front().or_else(|| state.otherwise.clone()).unwrap_or(Answer::Status(200))
        };
        self.changed.notify_waiters();
        let mut response = Response::new(Full::default());
        match answer {
            Answer::Status(status) => *response.status_mut() = StatusCode::from_u16(status).unwrap(),
            Answer::RetryAfter(status, after) => {
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response.headers_mut().insert("retry-after", after.parse().unwrap());
            }
            Answer::Redirect(to) => {
                *response.status_mut() = StatusCode::FOUND;
                response.headers_mut().insert("location", to.parse().unwrap());
            }
            Answer::Hang => let_go.await,
            Answer::HangThen(status) => {
                let_go.await;
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response.headers_mut().insert("retry-after", "86400".parse().unwrap());
            }
        }
        response
    }
}
