//! An API key is sent where the agent's card wants it.

use std::sync::mpsc::channel;

use serde_json::json;

use super::{answering, card};
use crate::program::Workspace;

#[test]
fn a_key_goes_where_the_card_says() {
    for (location, name, flag) in [
        ("header", "X-Agent-Key", ""),
        ("cookie", "session", ""),
        ("query", "key", ""),
        ("header", "X-Agent-Key", "X-Mine"),
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
            (200, json!({ "jsonrpc": "2.0", "id": 1, "result": reply }))
        });
        let workspace = Workspace::new().variable("A2ACLI_API_KEY", "k&1");
        let mut arguments = vec!["send", &address, "hi", "-q", "--debug"];
        if !flag.is_empty() {
            arguments.extend(["--api-key-header", flag]);
        }
        let run = workspace.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hello\n"), "{}", run.stderr);
        let (path, [of_card, of_flag, cookie]) = asked.recv().unwrap();
        let expected = match (location, flag) {
            ("header", "") => ("/rpc", ["k&1", "", ""]),
            ("header", _) => ("/rpc", ["", "k&1", ""]),
            ("cookie", _) => ("/rpc", ["", "", "session=k&1"]),
            _ => ("/rpc?key=k%261", ["", "", ""]),
        };
        assert_eq!((path.as_str(), [of_card.as_str(), of_flag.as_str(), cookie.as_str()]), expected, "{location}");
        assert!(!run.stderr.contains("k&1") && !run.stderr.contains("k%261"), "{}", run.stderr);
    }
}
