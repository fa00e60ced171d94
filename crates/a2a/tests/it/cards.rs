//! Cards of the real SDKs are read, and written so that each version finds its own keys.

use serde_json::{Value, json};
use switchboard_a2a::card::{
    AgentCard, AgentInterface, CardFormat, OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme,
};

use crate::capture;
use crate::json_eq::assert_same;

fn captured(name: &str) -> (AgentCard, Value) {
    let capture = capture::one(name);
    let exchange = capture.exchanges.last().unwrap();
    let body = exchange.results().pop().unwrap();
    (AgentCard::decode(&serde_json::to_vec(&body).unwrap()).unwrap(), body)
}

fn written(card: &AgentCard, form: CardFormat) -> Value {
    serde_json::from_slice(&card.encode(form)).unwrap()
}

#[test]
fn every_captured_card_is_understood() {
    let mut seen = 0;
    for capture in capture::all("").into_iter() {
        for exchange in &capture.exchanges {
            let is_extended = capture.name.contains("extended-card") && !exchange.is_card();
            if exchange.status != 200 || !(exchange.is_card() || is_extended) {
                continue;
            }
            let body = exchange.results().pop().unwrap();
            let card = AgentCard::decode(&serde_json::to_vec(&body).unwrap()).unwrap();
            let name = &capture.name;
            seen += 1;
            assert!(card.name.starts_with("Wire Agent"), "{name}");
            assert!(card.supported_interfaces.len() >= 2, "{name}: {:?}", card.supported_interfaces);
            assert_eq!(card.capabilities.streaming, Some(true), "{name}");
            assert_eq!(card.capabilities.extended_agent_card, Some(true), "{name}");
            assert_eq!(card.capabilities.extensions[0].uri, "https://example.com/ext/v1", "{name}");
            let scheme =
                |wanted: &str| card.security_schemes.iter().find(|(name, _)| name == wanted).unwrap().1.clone();
            let bearer = SecurityScheme::Http {
                scheme: "bearer".to_owned(),
                bearer_format: Some("JWT".to_owned()),
                description: None,
            };
            assert_eq!(scheme("bearer"), bearer, "{name}");
            assert!(matches!(scheme("key"), SecurityScheme::ApiKey { location, .. } if location == "header"), "{name}");
            assert_eq!(
                card.security_requirements,
                [SecurityRequirement(vec![("bearer".to_owned(), Vec::new())])],
                "{name}"
            );
            // Whatever it was read from, each form reads back as the same card.
            let v1 = AgentCard::decode(&card.encode(CardFormat::V1)).unwrap();
            assert_eq!(v1, card, "{name}");
            assert_eq!(AgentCard::decode(&card.encode(CardFormat::Hybrid)).unwrap(), card, "{name}");
        }
    }
    assert!(seen > 30, "only {seen} cards were seen");
}

#[test]
fn a_v1_card_is_written_as_the_sdks_write_it() {
    for name in ["js-1.3.0/server-jsonrpc-extended-card.http", "python-1.3.0/server-http-card.http"] {
        let (card, mut theirs) = captured(name);
        // Protocol buffer JSON omits the empty list inside.
        theirs["securityRequirements"][0]["schemes"]["bearer"] = json!({"list": []});
        assert_same(name, &card.encode(CardFormat::V1), &theirs);
    }
}

#[test]
fn a_v03_card_is_written_as_the_sdks_write_it() {
    for name in ["js-0.3.14/server-http-card.http", "python-0.3.26/server-http-card.http"] {
        let (card, theirs) = captured(name);
        let ours = written(&card, CardFormat::V03);
        assert_same(name, &serde_json::to_vec(&ours).unwrap(), &theirs);
        assert_eq!(ours["protocolVersion"], "0.3.0");
        assert!(ours.get("supportedInterfaces").is_none());
    }
}

#[test]
fn on_v03_rest_the_schemes_are_those_of_both_sdks() {
    for (name, others) in [
        ("js-0.3.14/server-rest-extended-card.http", "python-0.3.26/server-rest-extended-card.http"),
        ("python-0.3.26/server-rest-extended-card.http", "js-0.3.14/server-rest-extended-card.http"),
    ] {
        let (card, theirs) = captured(name);
        let ours = written(&card, CardFormat::V03Rest);
        for theirs in [&theirs, &captured(others).1] {
            for (scheme, members) in theirs["securitySchemes"].as_object().unwrap() {
                for (member, value) in members.as_object().unwrap() {
                    assert_eq!(&ours["securitySchemes"][scheme][member], value, "{name}: {scheme}.{member}");
                }
            }
        }
        assert_eq!(ours["security"], json!([{"bearer": []}]), "{name}");
        assert!(ours.get("supportedInterfaces").is_none() && ours.get("securityRequirements").is_none(), "{name}");
    }
}

#[test]
fn a_hybrid_card_holds_both_vocabularies() {
    let (card, mut theirs) = captured("python-1.3.0/server-compat03-http-card.http");
    let ours = written(&card, CardFormat::Hybrid);
    theirs["securityRequirements"][0]["schemes"]["bearer"] = json!({"list": []});
    // Ours says the full card version, and lists the main interface among the additional ones as v0.3 asks.
    theirs["protocolVersion"] = json!("0.3.0");
    let main = json!({"transport": "JSONRPC", "url": "http://127.0.0.1:41242/a2a/jsonrpc"});
    theirs["additionalInterfaces"].as_array_mut().unwrap().insert(0, main);
    assert_same("hybrid", &serde_json::to_vec(&ours).unwrap(), &theirs);
}

#[test]
fn required_arrays_are_always_there_and_old_cards_need_old_interfaces() {
    let card = AgentCard { name: "A".to_owned(), ..AgentCard::default() };
    assert!(!card.speaks_v03());
    assert_eq!(
        written(&card, CardFormat::Hybrid),
        json!({
            "name": "A", "description": "", "version": "", "supportedInterfaces": [], "capabilities": {},
            "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
        })
    );
}

#[test]
fn the_minimal_cards_of_the_specification_are_the_same_card() {
    let v1 = br#"{"name":"A","description":"d","version":"1","supportedInterfaces":[{"url":"https://h.test/a2a","protocolBinding":"JSONRPC","protocolVersion":"0.3.0"}],
        "capabilities":{"streaming":true,"extendedAgentCard":false},
        "securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"securityRequirements":[{"schemes":{"b":{}}}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"S","description":"d","tags":["t"]}]}"#;
    let v03 = br#"{"protocolVersion":"0.3.0","name":"A","description":"d","version":"1","url":"https://h.test/a2a","preferredTransport":"JSONRPC",
        "additionalInterfaces":[{"url":"https://h.test/a2a","transport":"JSONRPC"}],"capabilities":{"streaming":true},
        "securitySchemes":{"b":{"type":"http","scheme":"Bearer"}},"security":[{"b":[]}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"S","description":"d","tags":["t"]}],
        "supportsAuthenticatedExtendedCard":false}"#;
    let card = AgentCard::decode(v1).unwrap();
    assert_eq!(card, AgentCard::decode(v03).unwrap());
    let theirs: Value = serde_json::from_slice(v03).unwrap();
    assert_eq!(written(&card, CardFormat::V03), theirs);
}

#[test]
fn security_schemes_of_all_kinds_survive() {
    let flow = OAuthFlow {
        authorization_url: Some("https://a".to_owned()),
        token_url: Some("https://t".to_owned()),
        scopes: vec![("read".to_owned(), "look".to_owned())],
        pkce_required: true,
        ..OAuthFlow::default()
    };
    let old = br#"{"name":"A","securitySchemes":{
        "o":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"https://a","tokenUrl":"https://t","scopes":{"read":"look"}},"clientCredentials":{"tokenUrl":"https://t","scopes":{}}},"oauth2MetadataUrl":"https://m"},
        "i":{"type":"openIdConnect","openIdConnectUrl":"https://i"},"m":{"type":"mutualTLS"},"n":{"type":"newer","x":18446744073709551617},
        "c":{"scheme":{"$case":"oauth2SecurityScheme","value":{"flows":{"flow":{"$case":"authorizationCode","value":{"authorizationUrl":"https://a","tokenUrl":"https://t","refreshUrl":"","scopes":{"read":"look"},"pkceRequired":true}}}}}}}}"#;
    let card = AgentCard::decode(old).unwrap();
    let scheme = |wanted: &str| &card.security_schemes.iter().find(|(name, _)| name == wanted).unwrap().1;
    let SecurityScheme::OAuth2 { flows, .. } = scheme("c") else { panic!("{:?}", scheme("c")) };
    assert_eq!(**flows, OAuthFlows { authorization_code: Some(flow), ..OAuthFlows::default() });
    let SecurityScheme::OAuth2 { flows, .. } = scheme("o") else { panic!("{:?}", scheme("o")) };
    assert!(flows.client_credentials.is_some() && flows.authorization_code.is_some());
    let v1 = written(&card, CardFormat::V1);
    let members: Vec<_> =
        v1["securitySchemes"]["o"]["oauth2SecurityScheme"]["flows"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["authorizationCode"], "v1.0 has room for one flow");
    let text = String::from_utf8(card.encode(CardFormat::V1)).unwrap();
    assert!(text.contains(r#""n":{"type":"newer","x":18446744073709551617}"#), "{text}");
    let v03 = written(&card, CardFormat::V03);
    assert_eq!(v03["securitySchemes"]["i"], json!({"type": "openIdConnect", "openIdConnectUrl": "https://i"}));
    assert_eq!(v03["securitySchemes"]["o"]["flows"].as_object().unwrap().len(), 2);
    assert!(v03["securitySchemes"]["c"]["flows"]["authorizationCode"].get("pkceRequired").is_none());
}

#[test]
fn the_oldest_interface_lists_are_read() {
    let card = AgentCard::decode(br#"{"name":"A","interfaces":[{"url":"u","protocol":"JSONRPC","version":"0.2"}]}"#);
    let interface = AgentInterface {
        url: "u".to_owned(),
        protocol_binding: "JSONRPC".to_owned(),
        tenant: None,
        protocol_version: "0.2".to_owned(),
    };
    assert_eq!(card.unwrap().supported_interfaces, [interface]);
}
