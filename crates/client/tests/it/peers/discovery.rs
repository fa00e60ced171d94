//! Cards: where they are looked for, and how they are kept.

use std::time::Duration;

use switchboard_client::{CallContext, CardAttempt, Client, ClientError};

use super::script::{Asked, COMPLETED, Peer, Reply, card, json, result, says, task};
use crate::world::{client, say};

#[tokio::test]
async fn every_place_without_a_card_is_told() {
    let peer = Peer::start(|asked, _| match asked.line().ends_with("agent.json") {
        true => says(200, "content-type: text/html", "<html><title>Welcome</title></html>"),
        false => says(404, "content-type: text/plain", "no"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    let ClientError::NoCard(tried) = &error else { panic!("{error}") };
    let places = |name: &str| format!("{}/.well-known/{name}", peer.url());
    let problem = "not there (404)".to_owned();
    let (url, status) = (places("agent-card.json"), Some(404));
    assert_eq!(tried[0], CardAttempt { url, status, is_asked: true, problem, is_json: false, location: None });
    assert_eq!((&tried[1].url, tried[1].status), (&places("agent.json"), Some(200)));
    let problem = &tried[1].problem;
    assert!(problem.contains("web page") && problem.contains("Welcome"), "{problem}");
    assert_eq!(tried.len(), 2);
}

#[tokio::test]
async fn a_card_may_be_at_the_older_place() {
    let peer = Peer::start(|asked, _| match asked.line().as_str() {
        "GET /.well-known/agent.json" => json(200, &card(false)),
        "POST /rpc" => result(serde_json::json!({"task": task(COMPLETED, "done")})),
        _ => says(404, "content-type: text/plain", "no"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    assert_eq!(client.card(&CallContext::default()).await.unwrap().card.name, "peer");
    client.send(&CallContext::default(), say("hello")).await.unwrap();
}

#[tokio::test]
async fn a_card_is_asked_for_once_and_then_only_whether_it_has_changed() {
    let peer = Peer::start(|asked, _| {
        let body = card(false).to_string();
        match asked.header("if-none-match") {
            Some("\"1\"") => says(304, "etag: \"1\"", ""),
            _ => says(200, "content-type: application/json\r\netag: \"1\"\r\ncache-control: max-age=0", &body),
        }
    })
    .await;
    let client = client(peer.url(), |_| {});
    let first = client.card(&CallContext::default()).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    let second = client.card(&CallContext::default()).await.unwrap();
    assert_eq!(first.json, second.json);
    client.card(&CallContext::default()).await.unwrap();
    let asked: Vec<_> = peer.cards().iter().map(|asked| asked.header("if-none-match").map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("\"1\"".to_owned())], "what has not changed is good for a while");
}

#[tokio::test]
async fn a_card_that_is_lost_on_the_way_is_asked_for_again() {
    let peer = Peer::start(|_, before| match before {
        0 => Reply::Closes,
        1 => Reply::Says(b"HTTP/1.1 200 So\r\ncontent-length: 900\r\n\r\n{\"name\"".to_vec()),
        2 => says(503, "content-type: text/plain", "no healthy upstream"),
        _ => json(200, &card(false)),
    })
    .await;
    let client = client(peer.url(), |_| {});
    assert_eq!(client.card(&CallContext::default()).await.unwrap().card.name, "peer");
    assert!(peer.cards().iter().all(|asked| asked.line().ends_with("agent-card.json")));
}

#[tokio::test]
async fn an_address_without_a_server_is_told_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client(format!("http://{address}"), |_| {});
    let error = client.card(&CallContext::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

/// The time for all that a probe asks.
const WHOLE: Duration = Duration::from_secs(600);

/// A client whose own limit for a request is no matter.
fn patient(url: String) -> Client {
    client(url, |peer| peer.limits.head = 2 * WHOLE)
}

/// Lets time go on by itself, also where what has stopped it is dropped.
struct Resumes;

impl Drop for Resumes {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

/// Why a probe has failed. Its time passes only while it waits for an answer that never comes, so much of it each time.
async fn failed_probe(
    client: &Client,
    peer: &Peer,
    step: Duration,
    is_silent: impl Fn(&Asked, usize) -> bool,
) -> ClientError {
    let context = CallContext::default();
    let passes = async {
        let mut passed = 0;
        loop {
            let asked = peer.cards();
            let silent = asked.iter().enumerate().filter(|(number, asked)| is_silent(asked, *number)).count();
            if silent > passed {
                passed = silent;
                tokio::time::pause();
                let _resumes = Resumes;
                tokio::time::advance(step).await;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = client.probe_card(&context, WHOLE) => answer.map(drop).unwrap_err(),
        () = passes => unreachable!("time has no end"),
    }
}

#[tokio::test]
async fn a_probe_tells_what_each_place_of_a_card_has_said() {
    let silence = "no answer within ";
    type Other = fn() -> Reply;
    let cases: [(Other, &str, Option<u16>); 4] = [
        (|| says(404, "content-type: text/plain", "no"), "not there (404)", Some(404)),
        (|| says(403, "content-type: text/plain", "no"), "403", Some(403)),
        (|| Reply::Closes, "the connection was closed before an answer came", None),
        (|| Reply::Stalls(Vec::new()), silence, None),
    ];
    for (other, said, status) in cases {
        for silent in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
            let peer = Peer::start(move |asked, _| match asked.line().ends_with(silent) {
                true => Reply::Stalls(Vec::new()),
                false => other(),
            })
            .await;
            let is_silent = |asked: &Asked, _: usize| asked.line().ends_with(silent) || said == silence;
            // Each silent place gets half of what is left at most.
            let error = failed_probe(&patient(peer.url()), &peer, WHOLE / 2, is_silent).await;
            let ClientError::NoCard(tried) = &error else { panic!("{silent}: {error}") };
            let [first, second] = &tried[..] else { panic!("{silent}: {error}") };
            assert!(first.url.ends_with("/agent-card.json") && second.url.ends_with("/agent.json"), "{error}");
            let (late, other) = if first.url.ends_with(silent) { (first, second) } else { (second, first) };
            assert!(late.status.is_none() && late.problem.starts_with(silence), "{error}");
            assert!(other.status == status && other.problem.contains(said), "{silent}: {error}");
        }
    }
}

#[tokio::test]
async fn a_probe_ends_with_what_a_place_has_said_before_its_time_was_over() {
    // The agent breaks off, and is silent when it is asked again.
    let peer = Peer::start(|_, before| if before == 0 { Reply::Closes } else { Reply::Stalls(Vec::new()) }).await;
    let error = failed_probe(&patient(peer.url()), &peer, WHOLE / 2, |_, number| number % 2 == 1).await;
    assert_eq!(error.to_string().matches("closed before an answer came").count(), 2, "{error}");
    // A card that is known is asked for at its own place, for all of the time, and stays.
    let headers = "content-type: application/json\r\ncache-control: max-age=3600";
    let peer = Peer::start(move |_, before| match before {
        0 => says(200, headers, &card(false).to_string()),
        _ => Reply::Stalls(Vec::new()),
    })
    .await;
    let client = patient(peer.url());
    client.probe_card(&CallContext::default(), WHOLE).await.unwrap();
    let error = failed_probe(&client, &peer, WHOLE, |_, number| number > 0).await;
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("/.well-known/agent-card.json gave no answer within 600 s"), "{error}");
    assert_eq!(client.card(&CallContext::default()).await.unwrap().card.name, "peer");
}

#[tokio::test]
async fn a_probe_keeps_its_time_though_another_call_waits_for_the_card() {
    let peer = Peer::start(|_, _| Reply::Stalls(Vec::new())).await;
    let (client, context) = (patient(peer.url()), CallContext::default());
    let other = client.clone();
    let other = tokio::spawn(async move { other.card(&CallContext::default()).await.map(drop) });
    while peer.cards().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut probe = std::pin::pin!(client.probe_card(&context, WHOLE));
    assert!(futures_util::poll!(&mut probe).is_pending());
    tokio::time::pause();
    let _resumes = Resumes;
    tokio::time::advance(WHOLE).await;
    let error = probe.await.map(drop).unwrap_err();
    assert!(matches!(error, ClientError::Timeout { after: WHOLE, .. }), "{error}");
    assert!(!other.is_finished(), "it may take twice as long");
    assert_eq!(peer.cards().len(), 1, "the probe has not asked for it as well");
    other.abort();
}

#[tokio::test]
async fn a_probe_of_an_address_without_a_server_is_answered_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(format!("http://{}", listener.local_addr().unwrap()), |_| {});
    drop(listener);
    let error = client.probe_card(&CallContext::default(), WHOLE).await.map(drop).unwrap_err();
    let ClientError::NoCard(tried) = &error else { panic!("{error}") };
    let paths: Vec<&str> = tried.iter().map(|attempt| attempt.url.rsplit('/').next().unwrap_or_default()).collect();
    assert_eq!(paths, ["agent-card.json", "agent.json"], "each place is named: {error}");
    assert!(tried.iter().all(|attempt| attempt.is_asked && attempt.status.is_none()), "{tried:?}");
}

/// A host with a card at its top, which names these interfaces, and nothing else but what the function answers.
async fn host(interfaces: &'static str, other: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |asked, _| match asked.line().as_str() {
        "GET /.well-known/agent-card.json" => {
            let mut card = card(false);
            let named = interfaces.split(' ');
            card["supportedInterfaces"] = named
                .map(|url| serde_json::json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}))
                .collect();
            json(200, &card)
        }
        line if line.starts_with("POST ") => result(serde_json::json!({"task": task(COMPLETED, "done")})),
        _ => other(asked),
    })
    .await
}

fn not_there(_: &Asked) -> Reply {
    says(404, "content-type: text/plain", "no")
}

#[tokio::test]
async fn a_mistyped_address_never_reaches_another_agent_of_the_host() {
    let answers: [fn(&Asked) -> Reply; 6] = [
        not_there,
        |_| says(401, "www-authenticate: Bearer", ""),
        |_| says(500, "content-type: text/plain", "oh"),
        |_| says(302, "location: /login", ""),
        |_| says(200, "content-type: text/html", "<html><title>Hi</title></html>"),
        |_| says(200, "content-type: application/json", ""),
    ];
    for answer in answers {
        for (typed, interface) in [
            ("a2a/echoo", "/a2a/guide"),
            ("a2a/echo", "/a2a/echoo"),
            ("a2a/echo", "http://agents.test/a2a"),
            ("a2a", "/"),
        ] {
            let peer = host(interface, answer).await;
            let client = client(format!("{}/{typed}", peer.url()), |_| {});
            let error = client.send(&CallContext::default(), say("secret")).await.unwrap_err();
            let ClientError::NoCard(tried) = &error else { panic!("{error}") };
            let (last, top) = (&tried[tried.len() - 1], format!("{}/.well-known/agent-card.json", peer.url()));
            assert_eq!((&last.url, last.status), (&top, Some(200)));
            assert!(last.problem.contains("another agent, \"peer\" at"), "{error}");
            assert!(peer.asked().is_empty(), "nothing was sent anywhere");
        }
    }
}

#[tokio::test]
async fn a_card_at_the_top_of_the_host_counts_if_it_names_the_address() {
    let odd: fn(&Asked) -> Reply = |_| says(405, "content-type: text/plain", "no");
    let cases = [
        ("a2a", "/a2a", not_there as fn(&Asked) -> Reply, "POST /a2a"),
        ("jsonrpc/", "http://inside:8080/jsonrpc", not_there, "POST /jsonrpc"),
        ("a2a", "/a2a/guide", not_there, "POST /a2a/guide"),
        ("a2a", "http://inside:8080/a2a/guide", not_there, "POST /a2a/guide"),
        ("a2a", "/a2a", odd, "POST /a2a"),
        ("a2a/echo", "/a2a/other /a2a/echo", not_there, "POST /a2a/echo"),
        ("a2a/echo", "/a2a/echo2 /a2a/echo", not_there, "POST /a2a/echo"),
        ("a2a/", "/zzz http://inside:8080/a2a?k=1", not_there, "POST /a2a?k=1"),
        // Version 0.3 adds this to its address over REST.
        ("a2a/echo/v1", "http://inside/a2a/echo", not_there, "POST /a2a/echo"),
    ];
    for (typed, interface, other, expected) in cases {
        let peer = host(interface, other).await;
        let client = client(format!("{}/{typed}", peer.url()), |_| {});
        client.send(&CallContext::default(), say("hello")).await.unwrap();
        assert_eq!(peer.asked()[0].line(), expected, "{typed} {interface}");
    }
    let peer = host("/a2a/guide", odd).await;
    let client = client(format!("{}/a2a", peer.url()), |_| {});
    let error = client.send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert!(matches!(error, ClientError::NoCard(_)), "there is something else at the address: {error}");
}

#[tokio::test]
async fn what_is_no_card_is_told_by_what_it_is() {
    let big = format!("{{\"name\":\"{}\"}}", "x".repeat(5 << 20));
    let deep = "[".repeat(1_000);
    let cases: [(Reply, &str, bool); 5] = [
        (
            says(301, "location: https://elsewhere.test/agent?k=secret", ""),
            "moved to https://elsewhere.test/agent?…",
            false,
        ),
        (says(500, "content-type: text/plain", "oh"), "500 with text/plain: \"oh\"", false),
        (says(200, "content-type: application/json", "{\"ok\":true}"), "200 with JSON that is no answer", true),
        (says(200, "content-type: application/json", &deep), "200 with JSON nested deeper than 67 levels", true),
        (says(200, "content-type: application/json", &big), "more than 4194304 bytes", true),
    ];
    for (reply, expected, is_json) in cases {
        let Reply::Says(bytes) = reply else { panic!("{expected}") };
        let peer = Peer::start(move |_, _| Reply::Says(bytes.clone())).await;
        let error = client(peer.url(), |_| {}).card(&CallContext::default()).await.unwrap_err();
        let ClientError::NoCard(tried) = &error else { panic!("{error}") };
        assert!(tried[0].problem.contains(expected), "{error}");
        assert_eq!(tried[0].is_json, is_json, "{error}");
        let moved = tried[0].location.as_deref();
        assert_eq!(moved, (tried[0].status == Some(301)).then_some("https://elsewhere.test/agent?…"));
    }
}

#[tokio::test]
async fn a_card_that_comes_too_slowly_is_late_and_not_wrong() {
    let head = b"HTTP/1.1 200 So\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"name\"".to_vec();
    let peer = Peer::start(move |_, _| Reply::Stalls(head.clone())).await;
    let client = client(peer.url(), |peer| peer.limits.head = Duration::from_millis(50));
    let error = client.card(&CallContext::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}
