//! A front of the test's own, behind everything that A2A is behind.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Method, Response};
use serde_json::{Value, json};
use switchboard_engine::{CallerRole, Settings};
use switchboard_server::{Access, Body, Exchange, FrameFormat, Front, StreamFlow, WrongMethod};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::edge::running::Running;
use crate::edge::traces::Lines;
use crate::edge::wire::{PATIENCE, Wire};

const JSON: &str = "Content-Type: application/json";
const ANN: &str = "Authorization: Bearer a2a_ann";
const BOB: &str = "Authorization: Bearer a2a_bob";

/// `GET /front/show` for viewers, `POST /front/echo` and the stream `GET /front/feed` for any key.
struct TestFront {
    feed: broadcast::Sender<Value>,
}

impl Front for TestFront {
    fn name(&self) -> &'static str {
        "test"
    }

    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>> {
        let (offered, allow, access) = match path {
            "/front/show" => (Method::GET, "GET, HEAD", Access::role(CallerRole::Viewer)),
            "/front/echo" => (Method::POST, "POST", Access::role(CallerRole::None).with_json()),
            "/front/feed" => (Method::GET, "GET", Access::role(CallerRole::None).with_stream()),
            _ => return None,
        };
        Some(if offered == *method { Ok(access) } else { Err(WrongMethod(allow)) })
    }

    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            match exchange.parts.uri.path() {
                "/front/feed" => exchange.event_stream(JsonLines(self.feed.subscribe())),
                "/front/echo" => match exchange.read_body().await {
                    Ok(body) => Response::new(Body::full(body)),
                    Err(refused) => refused,
                },
                _ => Response::new(Body::full(exchange.caller().id.to_string())),
            }
        })
    }
}

/// Plain JSON, a frame each; the text `end` is the last one.
struct JsonLines(broadcast::Receiver<Value>);

impl FrameFormat for JsonLines {
    type Events = Value;

    async fn next(&mut self, drained: &CancellationToken) -> Option<Value> {
        tokio::select! {
            biased;
            event = self.0.recv() => event.ok(),
            () = drained.cancelled() => None,
        }
    }

    fn frame_bytes(&self, _: &Value) -> usize {
        64
    }

    fn write(&mut self, event: Value, out: &mut Vec<u8>) -> StreamFlow {
        write!(out, "data: {event}\n\n").unwrap();
        if event == "end" { StreamFlow::End } else { StreamFlow::Continue }
    }
}

async fn server(change: impl FnOnce(&mut switchboard_server::Options)) -> (Running, broadcast::Sender<Value>) {
    let (feed, _) = broadcast::channel(16);
    let settings = Settings { drain: Duration::from_millis(50), ..Settings::default() };
    let front = Arc::new(TestFront { feed: feed.clone() });
    (Running::keyed_with_fronts(change, settings, vec![front]).await, feed)
}

/// An open stream of a caller.
async fn open(running: &Running, key: &str) -> Wire {
    let mut stream = running.connect().await;
    stream.send(&crate::edge::running::request("GET /front/feed", &[key], "")).await;
    let head = stream.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
    stream
}

#[tokio::test]
async fn a_front_is_behind_guards_keys_roles_and_the_limit_of_bodies() {
    let lines = Lines::of_this_process();
    let (running, _) = server(|options| options.request_body = 64).await;
    let none = running.ask("GET /front/show", &[], "").await;
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer realm=\"switchboard\"")));
    let bob = running.ask("GET /front/show", &[BOB], "").await;
    assert!(bob.status == 403 && bob.header("www-authenticate").unwrap().contains("insufficient_scope"), "{bob:?}");
    let message = bob.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("role viewer") && message.contains("switchboard keys create --role viewer"), "{message}");
    let ann = running.ask("GET /front/show", &[ANN], "").await;
    assert_eq!((ann.status, ann.body.as_str()), (200, "ann"));
    let page = running.ask("GET /front/show", &[ANN, "Origin: https://evil.test"], "").await;
    assert_eq!(page.status, 403, "{page:?}");
    for (head, allow) in [("POST /front/show", "GET, HEAD"), ("GET /front/echo", "POST"), ("PUT /front/feed", "GET")] {
        let wrong = running.ask(head, &[ANN], "").await;
        assert_eq!((wrong.status, wrong.header("allow")), (405, Some(allow)), "{head}");
        // Without a key nobody learns which paths there are.
        let unknown = running.ask(head, &[], "").await;
        assert_eq!((unknown.status, unknown.header("allow")), (401, None), "{head}");
    }
    assert_eq!(running.ask("GET /front/other", &[ANN], "").await.status, 404);
    assert_eq!(running.ask("GET /nothing", &[], "").await.status, 404);
    let public = running.ask("DELETE /healthz", &[], "").await;
    assert_eq!((public.status, public.header("allow")), (405, Some("GET, HEAD")), "it is there for everybody");

    let echoed = running.ask("POST /front/echo", &[ANN, JSON], "{\"n\":1}").await;
    assert_eq!((echoed.status, echoed.body.as_str()), (200, "{\"n\":1}"));
    // Of these bodies not a byte is sent, so that waiting for one would never end.
    let large = running.ask("POST /front/echo", &[ANN, JSON, "Content-Length: 65"], "").await;
    assert!(large.status == 413 && large.body.contains("limits.requestBody"), "{large:?}");
    let unknown = running.ask("POST /front/echo", &[JSON, "Content-Length: 65"], "").await;
    assert_eq!(unknown.status, 401);
    let form = running.ask("POST /front/echo", &[ANN, "Content-Type: text/plain"], "{}").await;
    assert!(form.status == 400 && form.body.contains("application/json"), "{form:?}");
    // A body that the front does not read leaves the connection usable.
    let mut wire = running.connect().await;
    for _ in 0..2 {
        wire.send(&crate::edge::running::request("GET /front/show", &[ANN, JSON], "{\"unread\":1}")).await;
        assert_eq!(wire.reply().await.body, "ann");
    }

    let written = lines.written();
    let logged = |status: &str, caller: &str| {
        let mut lines = written.lines().filter(|line| line.contains("\"path\":\"/front/show\""));
        lines.any(|line| line.contains(status) && line.contains(caller))
    };
    assert!(
        logged("\"status\":200", "\"caller\":\"ann\"") && logged("\"status\":403", "\"caller\":\"bob\""),
        "{written}"
    );
    assert!(logged("\"status\":401", "\"caller\":\"-\""), "{written}");
}

#[tokio::test]
async fn streams_of_a_front_have_slots_pings_and_an_end() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    // Tests run on one thread, the server's tasks too.
    let _counts = metrics::set_default_local_recorder(&recorder);
    let handle = recorder.handle();
    let (mut running, feed) = server(|options| {
        options.streams = 2;
        options.ping = Duration::from_millis(1);
    })
    .await;
    let mut stream = open(&running, ANN).await;
    let mut bobs = open(&running, BOB).await;
    let refused = running.ask("GET /front/feed", &[BOB], "").await;
    assert!(refused.status == 503 && refused.header("retry-after") == Some("1"), "{refused:?}");
    assert!(refused.body.contains("limits.streams"), "{refused:?}");
    let shown = handle.render();
    for line in [
        "a2a_stream_subscribers 2",
        "a2a_front_requests_total{front=\"test\",status=\"200\"} 2",
        "a2a_front_requests_total{front=\"test\",status=\"503\"} 1",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in {shown}");
    }
    assert_eq!(stream.chunk().await.unwrap(), ": ping\n\n");
    feed.send(json!({"n": 1})).unwrap();
    for stream in [&mut stream, &mut bobs] {
        assert_eq!(next_frame(stream).await.unwrap(), "data: {\"n\":1}\n\n");
    }
    // The key's end is the stream's, without a word.
    running.keys.revoke("a2a_bob");
    assert_eq!(next_frame(&mut bobs).await, None);
    let mut third = open(&running, ANN).await;
    feed.send(json!("end")).unwrap();
    assert_eq!(next_frame(&mut third).await.unwrap(), "data: \"end\"\n\n");
    assert_eq!(third.chunk().await, None, "the format has ended it");
    assert_eq!(next_frame(&mut stream).await.unwrap(), "data: \"end\"\n\n");
    assert_eq!(stream.chunk().await, None);

    let mut last = open(&running, ANN).await;
    running.stop_all().await;
    assert_eq!(next_frame(&mut last).await.unwrap(), "retry: 1000\n\n");
    assert_eq!(last.chunk().await, None);
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
}

/// The next chunk that is no keep-alive.
async fn next_frame(stream: &mut Wire) -> Option<String> {
    loop {
        let chunk = stream.chunk().await?;
        if chunk != ": ping\n\n" {
            return Some(chunk);
        }
    }
}
