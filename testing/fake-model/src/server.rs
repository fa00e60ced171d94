//! The HTTP side: takes a request of any wire, remembers it, and sends what the model answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::answer::{self, Answer, Reply, Then, Tries};
use crate::conversation::Conversation;
use crate::seen::Seen;
use crate::wire::{Events, Operation, Wire, gemini_generate_content};

/// Agents send their whole conversation, which is far less than this in any test.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

type Body = BoxBody<Bytes, Infallible>;

/// What the requests share.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) seen: watch::Sender<Vec<Seen>>,
    pub(crate) open: watch::Sender<usize>,
    tries: Mutex<Tries>,
}

/// Counts a request as open for as long as it lives.
struct Open(Arc<State>);

impl Open {
    fn new(state: &Arc<State>) -> Self {
        state.open.send_modify(|open| *open += 1);
        Self(state.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open = open.saturating_sub(1));
    }
}

pub(crate) async fn run(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        // Each piece is to arrive when it is sent.
        let _ = connection.set_nodelay(true);
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| handle(request, state.clone()));
            let mut http = hyper::server::conn::http1::Builder::new();
            // A client that goes away is none of our concern.
            let _ = http.timer(TokioTimer::new()).serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

async fn handle(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Infallible> {
    let open = Open::new(&state);
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.as_str(), head.uri.path());
    let body = Limited::new(body, LARGEST_BODY).collect().await.map(|body| body.to_bytes());
    let asked = Wire::route(method, path).map(|route| {
        let body: Option<Value> = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
        let conversation = body.as_ref().map(|body| route.wire.read(body));
        (route, conversation)
    });
    let mut seen = Seen {
        at: SystemTime::now(),
        wire: asked.as_ref().map(|(route, _)| route.wire),
        method: method.to_owned(),
        path: head.uri.path_and_query().map_or(path, |whole| whole.as_str()).to_owned(),
        key: key(&head.headers),
        model: String::new(),
        is_side: false,
        prompt: String::new(),
        prompts: 0,
        tool_results: 0,
        tools: Vec::new(),
    };
    let Some((route, conversation)) = asked else {
        remember(&state, seen);
        let note = format!("the fake model does not serve {method} {path}");
        return Ok(json_response(StatusCode::NOT_FOUND, &json!({ "error": { "message": note } })));
    };
    let Some(mut conversation) = conversation else {
        remember(&state, seen);
        return Ok(refusal(route.wire, 400, "the body is not JSON"));
    };
    if let Operation::AnswerOf { model, is_streamed } = route.operation {
        conversation.model = model.to_owned();
        conversation.is_streamed = is_streamed;
    }
    let prompt = conversation.prompt();
    seen.model.clone_from(&conversation.model);
    seen.is_side = conversation.is_side;
    seen.prompt = prompt.text.to_owned();
    seen.prompts = conversation.prompts().count();
    seen.tool_results = prompt.results.len();
    seen.tools.clone_from(&conversation.tools);
    let number = remember(&state, seen);
    if route.operation == Operation::Count {
        return Ok(json_response(StatusCode::OK, &gemini_generate_content::count()));
    }
    let answer = answer::answer(route.wire, &conversation, &mut state.tries.lock());
    Ok(match answer {
        // Until the client goes away, or we do.
        Answer::Hang => std::future::pending().await,
        Answer::Refuse { status, message } => refusal(route.wire, status, &message),
        Answer::Reply(reply) => respond(route.wire, &conversation, number, reply, open),
    })
}

/// Adds a request to those that came, and gives its number, counted from 1.
fn remember(state: &State, seen: Seen) -> usize {
    let mut number = 0;
    state.seen.send_modify(|all| {
        all.push(seen);
        number = all.len();
    });
    number
}

fn key(headers: &HeaderMap) -> Option<String> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = header(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    bearer.or_else(|| header("x-api-key")).or_else(|| header("x-goog-api-key")).map(str::to_owned)
}

fn respond(wire: Wire, conversation: &Conversation, number: usize, reply: Reply, open: Open) -> Response<Body> {
    if !conversation.is_streamed {
        return match wire.whole(&conversation.model, number, &reply) {
            Some(whole) => json_response(StatusCode::OK, &whole),
            None => refusal(wire, 400, "only `stream: true` is served on this wire"),
        };
    }
    // One at a time, so that nothing is sent ahead of its pause.
    let (sender, receiver) = mpsc::channel(1);
    let writer = wire.events(&conversation.model, number);
    tokio::spawn(play(reply, writer, sender));
    let events = stream::unfold((receiver, open), async |(mut receiver, open)| {
        let event: String = receiver.recv().await?;
        Some((event, (receiver, open)))
    });
    let frames = events.map(|event| Ok(Frame::data(Bytes::from(event))));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/event-stream"));
    response
}

/// Sends the events of an answer as they become due; ends early once the client is gone.
async fn play(reply: Reply, mut writer: Box<dyn Events>, sender: mpsc::Sender<String>) {
    let mut events = writer.begin();
    if let Some(thought) = &reply.thought {
        events.push_str(&writer.thought(thought));
    }
    if !events.is_empty() && sender.send(events).await.is_err() {
        return;
    }
    let pieces = match &reply.then {
        Then::Call(call) => {
            if !reply.is_cut {
                let _ = sender.send(writer.call(call) + &writer.end()).await;
            }
            return;
        }
        Then::Say(pieces) => pieces,
    };
    let count = if reply.is_cut { pieces.count().div_ceil(2) } else { pieces.count() };
    for number in 0..count {
        if !pieces.pause().is_zero() {
            tokio::time::sleep(pieces.pause()).await;
        }
        if sender.send(writer.text(&pieces.piece(number))).await.is_err() {
            return;
        }
    }
    if !reply.is_cut {
        let _ = sender.send(writer.end()).await;
    }
}

fn refusal(wire: Wire, status: u16, message: &str) -> Response<Body> {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(code, &wire.refusal(status, message));
    if code == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, hyper::header::HeaderValue::from_static("1"));
    }
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Full::from(body.to_string()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    response
}
