//! An API key is sent where the agent's card wants it.

use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::{answering, card};
use crate::program::Workspace;

#[test]
fn a_key_goes_where_the_card_says() {
    for (location, name, flag) in [
        ("header", "X-Agent-Key", ""),
        ("cookie", "session", ""),
        ("query", "key", ""),
        ("query", "a&b=c", ""),
        ("header", "X-Agent-Key", "X-Mine"),
        ("header", "Authorization", "X-Mine"),
    ] {
        let (send, asked) = channel();
        let address = answering(move |here, heard| {
            if heard.path.ends_with("agent-card.json") {
                let scheme = json!({ "apiKeySecurityScheme": { "location": location, "name": name } });
                return (200, card(here, json!({ "securitySchemes": { "key": scheme } })));
            }
            let headers = ["X-Agent-Key", "X-Mine", "cookie"].map(|name| heard.header(name).to_owned());
            let _ = send.send((heard.path.clone(), headers));
            let reply =
                json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hello" }] } });
            let asked: Value = serde_json::from_str(&heard.body).unwrap();
            (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": reply }))
        });
        let workspace = Workspace::new().variable("A2ACLI_API_KEY", "k&1");
        let mut arguments = vec!["send", &address, "hi", "-q", "--debug"];
        if !flag.is_empty() {
            arguments.extend(["--api-key-header", flag]);
        }
        let run = workspace.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hello\n"), "{}", run.stderr);
        let (path, [of_card, of_flag, cookie]) = asked.recv().unwrap();
        let expected = match (location, name, flag) {
            ("header", _, "") => ("/rpc", ["k&1", "", ""]),
            ("header", ..) => ("/rpc", ["", "k&1", ""]),
            ("cookie", ..) => ("/rpc", ["", "", "session=k&1"]),
            (_, "key", _) => ("/rpc?key=k%261", ["", "", ""]),
            _ => ("/rpc?a%26b%3Dc=k%261", ["", "", ""]),
        };
        assert_eq!((path.as_str(), [of_card.as_str(), of_flag.as_str(), cookie.as_str()]), expected, "{location}");
        assert!(!run.stderr.contains("k&1") && !run.stderr.contains("k%261"), "{}", run.stderr);
    }
}

#[test]
fn a_card_that_would_write_the_request_is_refused() {
    for (location, name) in [
        ("header", "Content-Length"),
        ("header", "HOST"),
        ("header", "Host"),
        ("header", "transfer-encoding"),
        ("header", "A2A-Version"),
        ("header", "Proxy-Authorization"),
        ("header", "X-Key: 1\r\nX"),
        ("cookie", "a=1; admin"),
        ("cookie", ""),
        ("query", ""),
        ("body", "key"),
    ] {
        let (send, asked) = channel();
        let address = answering(move |here, heard| {
            if heard.path.ends_with("agent-card.json") {
                let scheme = json!({ "apiKeySecurityScheme": { "location": location, "name": name } });
                return (200, card(here, json!({ "securitySchemes": { "key": scheme } })));
            }
            let _ = send.send(heard.head.clone());
            (500, json!({}))
        });
        let run = Workspace::new().variable("A2ACLI_API_KEY", "7").run(&["send", &address, "hi", "--json"]);
        assert_eq!((run.code, &run.json()["error"]["code"]), (Some(1), &json!("A2ACLI_ERR_CARD_INVALID")), "{name}");
        assert!(asked.try_recv().is_err(), "nothing is sent with {name}");
        let shown = Workspace::new().run(&["card", &address, "--validate"]);
        assert!(shown.code == Some(1) && shown.stdout.contains("the card wants the API key in "), "{}", shown.stdout);
    }
}
