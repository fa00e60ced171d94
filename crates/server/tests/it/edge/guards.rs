//! A web page must not be able to drive the server through a user's browser.

use crate::edge::running::{Running, request, send_message};

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_page_cannot_forge_a_simple_request() {
    let running = Running::open().await;
    let body = send_message(7, "SendMessage", "forged");
    // What a page can send anywhere without asking: no Origin that gives it away, and a media type of a form.
    for media_type in [
        "text/plain",
        "text/plain;charset=application/json",
        "application/x-www-form-urlencoded",
        "",
        "+json",
        "application/jsonp",
    ] {
        let reply = running.ask("POST /a2a", &[&format!("Content-Type: {media_type}")], &body).await;
        assert_eq!(reply.json()["error"]["code"], -32005, "{reply:?}");
        assert_eq!(reply.json()["id"], 7, "the answer names its request");
        assert!(reply.body.contains("send application/json"), "{reply:?}");
    }
    let untyped = running.ask("POST /a2a", &[], &body).await;
    assert_eq!(untyped.json()["error"]["code"], -32005, "{untyped:?}");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let reply = running.ask("POST /message:send", &["Transfer-Encoding: chunked"], &chunked).await;
    assert_eq!((reply.status, &reply.json()["error"]["status"]), (400, &"INVALID_ARGUMENT".into()));
    let listed = running.ask("GET /tasks", &[], "").await;
    assert_eq!(listed.json()["totalSize"], 0, "nothing was started");

    for media_type in
        ["application/json; charset=utf-8", "application/a2a+json", "APPLICATION/JSON", "application/x+json ;v=1"]
    {
        let reply = running.ask("POST /a2a", &[&format!("Content-Type: {media_type}")], &body).await;
        assert!(reply.json()["result"].is_object(), "{media_type}: {reply:?}");
    }
}

#[tokio::test]
async fn a_name_rebound_to_loopback_is_refused_while_open() {
    let base = "https://Agents.example.com/base";
    let running = Running::with(|options| options.public_base_url = base.to_owned()).await;
    let body = send_message(1, "SendMessage", "rebound");
    let reply = running.ask("POST /a2a", &[JSON, "Host: evil.example:41242"], &body).await;
    assert_eq!(reply.status, 403, "{reply:?}");
    assert_eq!(reply.json()["error"]["code"], -32600);
    assert!(reply.body.contains("evil.example:41242") && reply.body.contains("server.publicBaseUrl"), "{reply:?}");
    for head in ["GET /.well-known/agent-card.json", "GET /healthz", "GET /tasks", "GET /nowhere", "GET /"] {
        assert_eq!(running.ask(head, &["Host: evil.example"], "").await.status, 403, "{head}");
    }
    // The request line names the host too, and that one counts as well.
    assert_eq!(running.ask("GET http://evil.example/healthz", &["Host: localhost"], "").await.status, 403);
    let mut nameless = running.connect().await;
    nameless.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(nameless.reply().await.status, 403);
    for (hosts, status) in [
        (["localhost:1", "LOCALHOST", "127.8.8.8", "[::1]", "[::1]:41242", "agents.example.com"], 200),
        (["localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "", "[::2]:1", "[::2]"], 403),
    ] {
        for host in hosts {
            assert_eq!(running.ask("GET /healthz", &[&format!("Host: {host}")], "").await.status, status, "{host}");
        }
    }
    let keyed = Running::keyed().await;
    assert_eq!(keyed.ask("GET /healthz", &["Host: agents.example.com"], "").await.status, 200);
}

#[tokio::test]
async fn a_card_has_the_public_base_whatever_host_it_is_asked_for_under() {
    let base = "https://agents.example.com/base";
    let keyed = Running::keyed_with(|options| options.public_base_url = base.to_owned()).await;
    for path in ["/.well-known/agent-card.json", "/a2a/echo/.well-known/agent-card.json"] {
        for version in ["1.0", "0.3"] {
            let version = format!("A2A-Version: {version}");
            let head = format!("GET {path}");
            let own = keyed.ask(&head, &["Host: agents.example.com", &version, "X-API-Key: a2a_ann"], "").await;
            assert!(own.status == 200 && own.body.contains(base), "{own:?}");
            for foreign in [
                vec!["Host: evil.example:41242"],
                vec!["Host: localhost", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http"],
                vec!["Host: localhost", "Forwarded: host=evil.example;proto=http"],
            ] {
                let headers = [&foreign[..], &[version.as_str(), "X-API-Key: a2a_ann"]].concat();
                let shown = keyed.ask(&head, &headers, "").await;
                assert_eq!((shown.status, &shown.body), (200, &own.body), "{path} by {foreign:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_foreign_origin_is_refused_with_and_without_a_body() {
    let running = Running::open().await;
    for origin in ["https://evil.example", "null", "http://localhost:9999"] {
        let origin = format!("Origin: {origin}");
        let sent = running.ask("POST /a2a", &[JSON, &origin], &send_message(3, "SendMessage", "x")).await;
        assert_eq!((sent.status, &sent.json()["id"]), (403, &3.into()), "{sent:?}");
        let reason = &sent.json()["error"]["data"][0]["reason"];
        assert_eq!(reason, "PERMISSION_DENIED");
        let empty = running.ask("POST /tasks/t1:cancel", &[&origin], "").await;
        assert_eq!((empty.status, &empty.json()["error"]["status"]), (403, &"PERMISSION_DENIED".into()));
        assert!(empty.body.contains("server.allowedOrigins"), "{empty:?}");
        assert_eq!(running.ask("GET /healthz", &[&origin], "").await.status, 403);
    }
    let base = "https://Agents.example.com/base";
    let based = Running::with(|options| options.public_base_url = base.to_owned()).await;
    for (origins, status) in [
        (["http://localhost:41242", "https://agents.example.com", "https://agents.example.com:443"], 200),
        (["http://localhost:8080", "https://agents.example.com:444", ""], 403),
    ] {
        for origin in origins {
            let headers = ["Host: localhost:41242", &format!("Origin: {origin}")];
            assert_eq!(based.ask("GET /healthz", &headers, "").await.status, status, "{origin}");
        }
    }
    let keyed = Running::keyed().await;
    let reply = keyed.ask("GET /tasks", &["Origin: https://evil.example", "X-API-Key: a2a_ann"], "").await;
    assert_eq!(reply.status, 403, "keys do not admit web pages");
}

#[tokio::test]
async fn with_keys_a_page_of_this_server_may_call_it_by_any_loopback_name() {
    let keyed = Running::keyed().await;
    let port = keyed.address.port();
    let loopback = ["localhost", "127.0.0.1", "[::1]"];
    for (host, page) in loopback.into_iter().flat_map(|host| loopback.map(|page| (host, page))) {
        let host = format!("Host: {host}:{port}");
        let status =
            async |origin: String| keyed.ask("GET /healthz", &[&host, &format!("Origin: {origin}")], "").await.status;
        assert_eq!(status(format!("http://{page}:{port}")).await, 200, "{page} at {host}");
        assert_eq!(status(format!("http://{page}:{}", port ^ 1)).await, 403, "{page} at {host}");
        assert_eq!(status(format!("https://{page}:{port}")).await, 403, "{page} at {host}");
        assert_eq!(status(format!("http://localhost.evil.example:{port}")).await, 403, "{host}");
    }
    for (host, origin) in [("agents.internal", "localhost"), ("evil.example", "evil.example")] {
        let (named, page) = (format!("Host: {host}:{port}"), format!("Origin: http://{origin}:{port}"));
        assert_eq!(keyed.ask("GET /healthz", &[&named, &page], "").await.status, 403, "{origin} at {host}");
    }
    for name in loopback {
        let headers =
            [&format!("Host: {name}:{port}"), &format!("Origin: http://localhost:{port}"), JSON, "X-API-Key: a2a_ann"];
        let own = keyed.ask("POST /a2a", &headers, &send_message(1, "SendMessage", "hi")).await;
        assert_eq!(own.status, 200, "a page of this very server, asked as {name}: {own:?}");
    }
}

#[tokio::test]
async fn a_configured_origin_may_ask_call_and_read() {
    let running = Running::with(|options| options.allowed_origins = vec!["https://app.example".into()]).await;
    let origin = "Origin: https://app.example";
    let asks = [origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"];
    let preflight = running.ask("OPTIONS /a2a", &asks, "").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    assert!(["a2a-version", "x-correlation-id", "traceparent"].iter().all(|name| allowed.contains(name)), "{allowed}");
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("DELETE"));
    let reply = running.ask("POST /a2a", &[origin, JSON], &send_message(1, "SendMessage", "hi")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(reply.header("access-control-expose-headers").unwrap().contains("x-request-id"));
    assert!(reply.headers.iter().any(|(name, value)| name == "vary" && value.contains("origin")), "{reply:?}");

    let plain = running.ask("GET /.well-known/agent-card.json", &[], "").await;
    let varies = |value: &str| plain.headers.iter().any(|(name, with)| name == "vary" && with == value);
    assert!(varies("origin"), "a cache must not hand this one to a page: {plain:?}");
    assert_eq!(plain.header("access-control-allow-origin"), None);

    let foreign = ["Origin: https://app.example.evil", "Access-Control-Request-Method: POST"];
    let refused = running.ask("OPTIONS /a2a", &foreign, "").await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
    assert_eq!(running.ask("OPTIONS /a2a", &[], "").await.status, 405, "no page asks");
}

#[tokio::test]
async fn a_preflight_needs_no_key_and_the_request_after_it_does() {
    let running = Running::with(|options| {
        options.open = false;
        options.allowed_origins = vec!["*".into()];
    })
    .await;
    let mut wire = running.connect().await;
    let asks = ["Origin: https://any.example", "Access-Control-Request-Method: POST"];
    wire.send(&request("OPTIONS /a2a", &asks, "")).await;
    assert_eq!(wire.reply().await.status, 204);
    wire.send(&request("POST /a2a", &["Origin: https://any.example", JSON], "{}")).await;
    let refused = wire.reply().await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://any.example"), "the page can read why");
}
