//! Cards as agents publish them, standard or not: each is read with its addresses and its ways to authenticate.

use switchboard_a2a::card::{AgentCard, AgentInterface, SecurityRequirement, SecurityScheme};

fn read(json: &str) -> AgentCard {
    AgentCard::decode(json.as_bytes()).unwrap_or_else(|error| panic!("{error} in {json}"))
}

fn interface(url: &str, binding: &str, version: &str) -> AgentInterface {
    AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        tenant: None,
        protocol_version: version.to_owned(),
    }
}

fn bearer() -> SecurityScheme {
    SecurityScheme::Http { scheme: "Bearer".to_owned(), bearer_format: None, description: None }
}

fn needs(name: &str, scopes: &[&str]) -> SecurityRequirement {
    SecurityRequirement(vec![(name.to_owned(), scopes.iter().map(|scope| (*scope).to_owned()).collect())])
}

#[test]
fn a_scheme_means_the_same_in_every_form() {
    for scheme in [
        r#"{"httpAuthSecurityScheme":{"scheme":"Bearer"}}"#,
        r#"{"http_auth_security_scheme":{"scheme":"Bearer","bearer_format":""}}"#,
        r#"{"type":"http","scheme":"Bearer"}"#,
        r#"{"httpAuthSecurityScheme":{"scheme":"Bearer"},"scheme":"Bearer","type":"http"}"#,
        r#"{"scheme":{"$case":"httpAuthSecurityScheme","value":{"scheme":"Bearer","description":"","bearerFormat":""}}}"#,
    ] {
        let card = read(&format!(r#"{{"name":"A","securitySchemes":{{"b":{scheme}}}}}"#));
        assert_eq!(card.security_schemes, [("b".to_owned(), bearer())], "{scheme}");
    }
    for scheme in [
        r#"{"apiKeySecurityScheme":{"location":"header","name":"X-API-Key"}}"#,
        r#"{"type":"apiKey","in":"header","name":"X-API-Key"}"#,
        r#"{"scheme":{"$case":"apiKeySecurityScheme","value":{"description":"","location":"header","name":"X-API-Key"}}}"#,
    ] {
        let card = read(&format!(r#"{{"name":"A","securitySchemes":{{"k":{scheme}}}}}"#));
        let SecurityScheme::ApiKey { location, name, .. } = &card.security_schemes[0].1 else { panic!("{scheme}") };
        assert_eq!((location.as_str(), name.as_str()), ("header", "X-API-Key"), "{scheme}");
    }
    for scheme in [
        r#"{"mtlsSecurityScheme":{}}"#,
        r#"{"type":"mutualTLS"}"#,
        r#"{"scheme":{"$case":"mtlsSecurityScheme","value":{"description":""}}}"#,
    ] {
        let card = read(&format!(r#"{{"name":"A","securitySchemes":{{"m":{scheme}}}}}"#));
        assert_eq!(card.security_schemes[0].1, SecurityScheme::MutualTls { description: None }, "{scheme}");
    }
}

#[test]
fn a_requirement_means_the_same_in_every_form() {
    for (members, scopes) in [
        (r#""securityRequirements":[{"schemes":{"b":{"list":["s"]}}}]"#, &["s"][..]),
        (r#""security_requirements":[{"schemes":{"b":{"list":["s"]}}}]"#, &["s"]),
        (r#""security":[{"b":["s"]}]"#, &["s"]),
        (r#""security":[{"schemes":{"b":{"list":["s"]}}}]"#, &["s"]),
        (r#""securityRequirements":[{"b":["s"]}]"#, &["s"]),
        (r#""securityRequirements":[],"security":[{"b":["s"]}]"#, &["s"]),
        (r#""securityRequirements":[{"schemes":{"b":{}}}]"#, &[]),
        (r#""securityRequirements":[{"schemes":{"b":{"list":[]}}}],"security":[{"b":[]}]"#, &[]),
    ] {
        let card = read(&format!(r#"{{"name":"A",{members},"skills":[{{"id":"s",{members}}}]}}"#));
        assert_eq!(card.security_requirements, [needs("b", scopes)], "{members}");
        assert_eq!(card.skills[0].security_requirements, [needs("b", scopes)], "{members}");
    }
}

#[test]
fn a_v03_card_in_protocol_buffer_json_is_read() {
    let card = read(
        r#"{"protocolVersion":"0.3.0","name":"A","description":"d","url":"https://h.test/v03","preferredTransport":"HTTP+JSON",
        "additionalInterfaces":[{"url":"https://h.test/rpc","transport":"JSONRPC"},{"url":"h.test:443","transport":"GRPC"}],
        "version":"1","capabilities":{"streaming":true,"pushNotifications":true,"extensions":[{"uri":"urn:e","required":true,"params":{"a":1}}]},
        "securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"Bearer"}},
            "o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://t","scopes":{"s":"x"}}}}}},
        "security":[{"schemes":{"o":{"list":["s"]}}}],"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"s","name":"S","description":"d","tags":["t"]}],"supportsAuthenticatedExtendedCard":true}"#,
    );
    assert_eq!(
        card.supported_interfaces,
        [
            interface("https://h.test/v03", "HTTP+JSON", "0.3.0"),
            interface("https://h.test/rpc", "JSONRPC", "0.3.0"),
            interface("h.test:443", "GRPC", "0.3.0"),
        ]
    );
    assert_eq!(card.capabilities.extended_agent_card, Some(true));
    assert!(card.capabilities.extensions[0].required);
    assert_eq!(card.security_requirements, [needs("o", &["s"])]);
    let SecurityScheme::OAuth2 { flows, .. } = &card.security_schemes[1].1 else { panic!("{card:?}") };
    assert_eq!(flows.client_credentials.as_ref().unwrap().token_url.as_deref(), Some("https://t"));
}

#[test]
fn the_in_memory_dump_of_one_sdk_is_read() {
    let card = read(
        r#"{"name":"A","description":"d","supportedInterfaces":[{"url":"https://h.test/a2a","protocolBinding":"JSONRPC","tenant":"","protocolVersion":"1.0"}],
        "provider":{"organization":"O","url":""},"version":"1","documentationUrl":"","iconUrl":"",
        "capabilities":{"streaming":true,"pushNotifications":false,"extensions":[],"extendedAgentCard":false},
        "securitySchemes":{"o":{"scheme":{"$case":"oauth2SecurityScheme","value":{"description":"","flows":{"flow":{"$case":"deviceCode","value":{"deviceAuthorizationUrl":"https://d","tokenUrl":"https://t","refreshUrl":"","scopes":{}}}},"oauth2MetadataUrl":""}}}},
        "securityRequirements":[{"schemes":{"o":{"list":[]}}}],"defaultInputModes":["text/plain"],"defaultOutputModes":[],
        "skills":[{"id":"s","name":"S","description":"d","tags":[],"examples":[],"inputModes":[],"outputModes":[],"securityRequirements":[]}],"signatures":[]}"#,
    );
    assert_eq!(card.supported_interfaces, [interface("https://h.test/a2a", "JSONRPC", "1.0")]);
    let SecurityScheme::OAuth2 { flows, oauth2_metadata_url, .. } = &card.security_schemes[0].1 else {
        panic!("{card:?}")
    };
    let flow = flows.device_code.as_ref().unwrap();
    assert_eq!(flow.device_authorization_url.as_deref(), Some("https://d"));
    assert_eq!((&flow.refresh_url, oauth2_metadata_url), (&None, &None));
    assert_eq!((card.documentation_url, card.icon_url), (None, None));
}

#[test]
fn bindings_are_known_by_their_other_spellings() {
    let card = read(
        r#"{"name":"CortexPrism","version":"1.0","defaultInputModes":["text"],"defaultOutputModes":["text"],
        "capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":true},
        "interfaces":[{"url":"https://h.test/a2a","protocol":"json-rpc","version":"1.0"},{"url":"u","protocol":"rest"}]}"#,
    );
    let expected = [interface("https://h.test/a2a", "JSONRPC", "1.0"), interface("u", "HTTP+JSON", "0.3")];
    assert_eq!(card.supported_interfaces, expected);
    for (written, known) in [
        ("jsonrpc", "JSONRPC"),
        ("JSON-RPC", "JSONRPC"),
        ("JSONRPC", "JSONRPC"),
        ("http+json", "HTTP+JSON"),
        ("HTTP_JSON", "HTTP+JSON"),
        ("grpc", "GRPC"),
        ("https://example.com/bindings/grpc", "https://example.com/bindings/grpc"),
        ("WEBSOCKET", "WEBSOCKET"),
    ] {
        let new = format!(r#"{{"supportedInterfaces":[{{"url":"u","protocolBinding":"{written}"}}]}}"#);
        assert_eq!(read(&new).supported_interfaces[0].protocol_binding, known);
        let old = format!(r#"{{"url":"u","preferredTransport":"{written}"}}"#);
        assert_eq!(read(&old).supported_interfaces[0].protocol_binding, known);
    }
}

#[test]
fn a_hybrid_card_is_believed_in_its_v1_interfaces() {
    let card = read(
        r#"{"name":"A","protocolVersion":"0.3","url":"https://h.test/old","preferredTransport":"JSONRPC",
        "supportedInterfaces":[{"url":"https://h.test/new","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"acme"}],
        "securitySchemes":{"b":{"type":"http","scheme":"Bearer"}},"security":[{"b":[]}]}"#,
    );
    let tenant = Some("acme".to_owned());
    assert_eq!(
        card.supported_interfaces,
        [AgentInterface { tenant, ..interface("https://h.test/new", "HTTP+JSON", "1.0") }]
    );
    assert_eq!(card.security_schemes, [("b".to_owned(), bearer())]);
    assert_eq!(card.security_requirements, [needs("b", &[])]);
}
