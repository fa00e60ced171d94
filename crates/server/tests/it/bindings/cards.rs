//! Cards: negotiated, cacheable, honest.

use serde_json::{Value, json};
use switchboard_a2a::card::CardFormat;

use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

const ROOT: &str = "/.well-known/agent-card.json";

fn interfaces(url: &str) -> Value {
    let interface = |url: String, binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    json!([
        interface(url.to_owned(), "JSONRPC", "1.0"),
        interface(url.to_owned(), "HTTP+JSON", "1.0"),
        interface(format!("{url}/jsonrpc"), "JSONRPC", "0.3"),
        interface(url.to_owned(), "HTTP+JSON", "0.3"),
    ])
}

fn resumption() -> Value {
    let description = "Last-Event-ID on a stream goes on exactly after that event";
    json!({"uri": "urn:switchboard:a2a:last-event-id:v1", "description": description})
}

fn idempotency() -> Value {
    let description = "A message with an Idempotency-Key is acted on once, however often it arrives";
    json!({"uri": "urn:switchboard:a2a:idempotency-key:v1", "description": description})
}

fn talk() -> Value {
    json!({"id": "talk", "name": "Talk", "description": "Does what the text says", "tags": ["test"], "examples": ["hello"]})
}

async fn card(world: &World, path: &str, version: &str) -> Value {
    let reply = world.get(path).version(version).reply().await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"), "{path}");
    reply.json()
}

#[tokio::test]
async fn the_v1_card() {
    let world = World::start().await;
    let expected = json!({
        "name": "talker", "description": "The test agent talker", "version": "1.2.3",
        "supportedInterfaces": interfaces("http://agents.test/a2a/talker"),
        "capabilities": {
            "streaming": true, "pushNotifications": false, "extensions": [resumption(), idempotency()], "extendedAgentCard": false
        },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [talk()],
    });
    assert_eq!(card(&world, "/a2a/talker/.well-known/agent-card.json", "1.0").await, expected);
}

#[tokio::test]
async fn the_v03_card() {
    let world = World::start().await;
    let url = "http://agents.test/a2a/talker";
    let rpc = "http://agents.test/a2a/talker/jsonrpc";
    let expected = json!({
        "protocolVersion": "0.3.0",
        "name": "talker", "description": "The test agent talker", "version": "1.2.3",
        "url": rpc, "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": rpc, "transport": "JSONRPC"}, {"url": url, "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true, "pushNotifications": false, "extensions": [resumption(), idempotency()]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [talk()],
        "supportsAuthenticatedExtendedCard": false,
    });
    assert_eq!(card(&world, "/a2a/talker/.well-known/agent-card.json", "0.3").await, expected);
}

#[tokio::test]
async fn the_addresses_of_a_card_answer() {
    let world = World::start().await;
    for agent in ["", "talker"] {
        let path = if agent.is_empty() { ROOT.to_owned() } else { format!("/a2a/{agent}{ROOT}") };
        let card = card(&world, &path, "1.0").await;
        for interface in card["supportedInterfaces"].as_array().unwrap() {
            let mount = interface["url"].as_str().unwrap().strip_prefix("http://agents.test").unwrap();
            let version = interface["protocolVersion"].as_str().unwrap();
            let (dialect, body, path) = match (interface["protocolBinding"].as_str().unwrap(), version) {
                ("JSONRPC", "1.0") => (TestDialect::RpcV1, "SendMessage", mount.to_owned()),
                ("JSONRPC", _) => (TestDialect::RpcV03, "message/send", mount.to_owned()),
                (_, "1.0") => (TestDialect::RestV1, "", format!("{mount}/message:send")),
                _ => (TestDialect::RestV03, "", format!("{mount}/v1/message:send")),
            };
            let params = json!({"message": dialect.message("hello")});
            let body = match body {
                "" => params,
                method => json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}),
            };
            dialect.result(&world.post(&path, &body).version(version).reply().await);
        }
    }
}

#[tokio::test]
async fn who_does_not_say_gets_the_configured_form() {
    let has = |card: &Value| (card.get("supportedInterfaces").is_some(), card.get("protocolVersion").is_some());
    for (default, expected) in
        [(CardFormat::Hybrid, (true, true)), (CardFormat::V1, (true, false)), (CardFormat::V03, (false, true))]
    {
        let mut plan = Plan::default();
        plan.options.card_default = default;
        let world = plan.start().await;
        for version in ["", "2.0", "1.7", "banana"] {
            assert_eq!(has(&card(&world, ROOT, version).await), expected, "{default:?} {version:?}");
        }
        assert_eq!(has(&card(&world, ROOT, "1.0.2").await), (true, false));
        assert_eq!(has(&card(&world, ROOT, "0.3.0").await), (false, true));
        assert_eq!(has(&card(&world, &format!("{ROOT}?A2A-Version=0.3"), "").await), (false, true));
    }
}

#[tokio::test]
async fn every_name_of_the_card_is_the_same_card() {
    let world = World::start().await;
    let expected = world.get(ROOT).reply().await.body;
    for path in [
        "/.well-known/agent.json",
        "/.well-known/a2a-agent-card.json",
        "/api/a2a/agent-card.json",
        "/a2a/.well-known/agent-card.json",
    ] {
        assert_eq!(world.get(path).reply().await.body, expected, "{path}");
    }
}

#[tokio::test]
async fn cards_are_cached_by_variant() {
    let world = World::start().await;
    let mut tags = Vec::new();
    for version in ["", "1.0", "0.3"] {
        let reply = world.get(ROOT).version(version).reply().await;
        assert!(reply.header("vary").contains("A2A-Version"), "{:?}", reply.headers);
        assert_eq!(reply.header("cache-control"), "public, max-age=60");
        assert_eq!(reply.header("a2a-version"), version);
        let (etag, modified) = (reply.header("etag").to_owned(), reply.header("last-modified").to_owned());
        assert!(modified.ends_with(" GMT"), "{modified}");
        for (name, value, status) in [
            ("if-none-match", etag.as_str(), 304),
            ("if-none-match", &format!("\"other\", W/{etag}"), 304),
            ("if-none-match", "*", 304),
            ("if-none-match", "\"other\"", 200),
            ("if-modified-since", &modified, 304),
            ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT", 200),
            ("if-modified-since", "yesterday", 200),
        ] {
            let again = world.get(ROOT).version(version).header(name, value).reply().await;
            assert_eq!((again.status, again.body.is_empty()), (status, status == 304), "{name}: {value}");
            assert_eq!(again.header("etag"), etag);
            assert!(again.header("vary").contains("A2A-Version"));
        }
        let both = world.get(ROOT).version(version).header("if-none-match", "\"other\"");
        let both = both.header("if-modified-since", &modified).reply().await;
        assert_eq!(both.status, 200, "tags go before times");
        tags.push(etag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 3, "one tag per variant");
}

#[tokio::test]
async fn a_server_with_keys_says_how_to_show_them_and_keeps_private_skills_for_known_callers() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    let public = card(&world, ROOT, "1.0").await;
    assert_eq!(public["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
    assert_eq!(public["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"], "X-API-Key");
    assert_eq!(public["securityRequirements"].as_array().unwrap().len(), 2);
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    let old = card(&world, ROOT, "0.3").await;
    assert_eq!(old["securitySchemes"]["bearer"], json!({"type": "http", "scheme": "Bearer"}));
    assert_eq!(old["security"], json!([{"bearer": []}, {"apiKey": []}]));
    assert_eq!(old["supportsAuthenticatedExtendedCard"], true);
    let skills = |card: &Value| {
        let skills = card["skills"].as_array().unwrap();
        skills.iter().map(|skill| skill["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(skills(&public), ["talk"]);
    for dialect in ALL {
        for agent in ["", "talker"] {
            let reply = dialect.ask(&world, agent, Operation::ExtendedCard).key("ann").reply().await;
            let card = dialect.result(&reply);
            assert_eq!(skills(&card), ["talk", "secret"], "{dialect:?}");
            assert_eq!(card.get("protocolVersion").is_some(), !dialect.is_v1());
            let bearer = match dialect {
                TestDialect::RpcV1 | TestDialect::RestV1 => json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}),
                TestDialect::RpcV03 => json!({"type": "http", "scheme": "Bearer"}),
                TestDialect::RestV03 => {
                    json!({"type": "http", "scheme": "Bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}})
                }
            };
            assert_eq!(card["securitySchemes"]["bearer"], bearer, "{dialect:?}");
            if !dialect.is_rpc() {
                assert_eq!(reply.header("cache-control"), "private, max-age=60");
            }
        }
    }
}

#[tokio::test]
async fn without_an_agent_at_the_root_there_is_no_card_there_and_the_names_are_told() {
    let (plan, _) = Plan::with_keys();
    let plan = Plan { default_agent: None, ..plan };
    let world = plan.start().await;
    for version in ["", "1.0", "0.3"] {
        let reply = world.get(ROOT).version(version).reply().await;
        assert_eq!(reply.status, 404, "{version:?}");
        let error = &reply.json()["error"];
        let message = "no agent is the default here; name one: a key shows those it may call";
        assert_eq!(error["message"], message, "{version:?}");
        assert_eq!(error["details"][0]["metadata"].get("agents"), None, "names are for those with a key");
        let reply = world.get(ROOT).version(version).key("guest").reply().await;
        assert_eq!(reply.json()["error"]["details"][0]["metadata"]["agents"], "talker", "{version:?}");
    }
    let extended = TestDialect::RestV1.ask(&world, "", Operation::ExtendedCard).key("guest").reply().await;
    assert_eq!(TestDialect::RestV1.error(&extended).0, 404);
    let reply = TestDialect::RpcV1.send(&world, "hello").key("guest").reply().await;
    assert_eq!(reply.status, 404);
    let json = reply.json();
    assert_eq!(json["error"]["data"][0]["reason"], "AGENT_NOT_FOUND");
    assert_eq!(json["error"]["data"][0]["metadata"]["agents"], "talker", "only agents in scope are named");
    assert_eq!(json["error"]["message"], "no agent is the default here; name one: talker");
    // Each agent has its card, and at the root the tenant names it.
    assert_eq!(card(&world, &format!("/a2a/talker{ROOT}"), "1.0").await["name"], "talker");
    let named = Operation::Send(json!({"tenant": "talker", "message": TestDialect::RpcV1.message("say")}));
    let reply = TestDialect::RpcV1.ask(&world, "", named).key("guest").reply().await;
    assert_eq!(TestDialect::RpcV1.result(&reply)["message"]["parts"][0]["text"], "said directly");
}

#[tokio::test]
async fn get_agent_card_is_answered_with_the_card_that_the_caller_may_have() {
    let ask = async |world: &World, agent: &str, version: &str, key: Option<&str>| {
        let path = if agent.is_empty() { "/a2a".to_owned() } else { format!("/a2a/{agent}") };
        let ask = world.post(&path, &json!({"jsonrpc": "2.0", "id": 7, "method": "GetAgentCard"})).version(version);
        let reply = if let Some(key) = key { ask.key(key) } else { ask }.reply().await;
        assert_eq!(reply.header("a2a-version"), if version.is_empty() { "1.0" } else { version });
        reply.json()
    };
    let public = async |world: &World, agent: &str, version: &str| {
        let path = if agent.is_empty() { ROOT.to_owned() } else { format!("/a2a/{agent}{ROOT}") };
        card(world, &path, if version.is_empty() { "1.0" } else { version }).await
    };
    let open = World::start().await;
    let (plan, _) = Plan::with_keys();
    let keyed = plan.start().await;
    for version in ["", "1.0", "0.3"] {
        for agent in ["", "talker"] {
            assert_eq!(ask(&open, agent, version, None).await["result"], public(&open, agent, version).await);
            let own = ask(&keyed, agent, version, Some("ann")).await;
            assert_eq!(own["result"]["skills"][1]["id"], "secret", "{own}");
            assert_eq!(own["result"].get("protocolVersion").is_some(), version == "0.3", "{own}");
        }
        let forbidden = ask(&keyed, "worker", version, Some("guest")).await;
        assert_eq!(forbidden["result"], public(&keyed, "worker", version).await, "an agent not in scope");
    }
    let unknown = ask(&open, "unknown", "1.0", None).await;
    assert_eq!(unknown["error"]["data"][0]["reason"], "AGENT_NOT_FOUND", "{unknown}");
}
