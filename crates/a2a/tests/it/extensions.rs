//! The extensions of proto-labs.ai as their three generations of agents write them.

use serde_json::{Value, json};
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::encode::encode_task;
use switchboard_a2a::extension::blast::{self, Radius};
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::extension::effect_domain::{self, Effect};
use switchboard_a2a::extension::hitl_mode::{self, Mode};
use switchboard_a2a::extension::tool_call::{Phase, ToolCall};
use switchboard_a2a::extension::trace::Trace;
use switchboard_a2a::extension::worldstate_delta::{DeltaOp, WorldstateDelta};
use switchboard_a2a::extension::{Emit, Payload, stamp_request};
use switchboard_a2a::{Artifact, Dialect, Json, Message, Metadata, Part, Role, Task};

const EXT: &str = "https://proto-labs.ai/a2a/ext";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn vendor(name: &str) -> String {
    format!("application/vnd.protolabs.{name}+json")
}

/// The last artifact of a v0.3 agent: text, then one data part per extension.
fn first_generation() -> Artifact {
    let data = |name: &str, data: Value| json!({"kind": "data", "data": data, "metadata": {"mimeType": vendor(name)}});
    read(json!({"artifactId": "T", "parts": [
        {"kind": "text", "text": "done"},
        data("worldstate-delta", json!({"deltas": [
            {"domain": "board", "path": "data.open", "op": "inc", "value": -1},
            {"domain": "board", "path": "data.note", "op": "set", "value": "x", "more": 1},
            {"domain": "board", "path": "data.open", "op": "double", "value": 2},
            "noise"
        ]})),
        data("cost-v1", json!({
            "usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}, "durationMs": 812
        })),
        data("confidence-v1", json!({"confidence": 1.5, "success": true, "confidenceExplanation": "tests pass"})),
    ]}))
}

/// The same of a v1.0 agent whose numbers were protobuf doubles.
fn second_generation() -> Artifact {
    let data = |name: &str, data: Value| json!({"data": data, "metadata": {"mimeType": vendor(name)}, "mediaType": "application/json"});
    read(json!({"artifactId": "a", "parts": [
        {"text": "done"},
        data("worldstate-delta-v1", json!({"deltas": [
            {"domain": "board", "path": "data.open", "op": "inc", "value": -1.0},
            {"domain": "board", "path": "data.note", "op": "set", "value": "x"}
        ]})),
        data("cost-v1", json!({
            "usage": {"input_tokens": 10.0, "output_tokens": 4.0, "total_tokens": 14.0}, "durationMs": 811.6
        })),
        data("confidence-v1", json!({"confidence": 1, "success": true, "explanation": "tests pass"})),
    ]}))
}

/// The same in metadata by URI.
fn third_generation() -> Artifact {
    let mut metadata = Metadata::default();
    for (name, payload) in [
        (
            "worldstate-delta-v1",
            json!({"deltas": [
                {"domain": "board", "path": "data.open", "op": "inc", "value": -1},
                {"domain": "board", "path": "data.note", "op": "set", "value": "x"}
            ]}),
        ),
        (
            "cost-v1",
            json!({
                "usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}, "durationMs": 812
            }),
        ),
        ("confidence-v1", json!({"confidence": 1, "success": true, "explanation": "tests pass"})),
    ] {
        metadata.insert(format!("{EXT}/{name}"), read(payload));
    }
    Artifact { metadata: Some(metadata), ..Artifact::text("done") }
}

#[test]
fn every_generation_of_carriers_says_the_same() {
    for artifact in [first_generation(), second_generation(), third_generation()] {
        let costs = Cost::in_artifact(&artifact);
        let [cost] = costs.as_slice() else { panic!("one cost: {costs:?}") };
        let usage = cost.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.total()), (10, 4, 14));
        assert_eq!((cost.duration_ms, cost.cost_usd, cost.success), (Some(812), None, None));

        let confidences = Confidence::in_artifact(&artifact);
        let expected = Confidence { confidence: 1.0, explanation: Some("tests pass".to_owned()), success: Some(true) };
        assert_eq!(confidences, [expected]);

        let worldstate = WorldstateDelta::in_artifact(&artifact);
        let [WorldstateDelta { deltas }] = worldstate.as_slice() else { panic!("one list: {worldstate:?}") };
        assert_eq!(deltas.len(), 2, "what is no change is left out: {deltas:?}");
        assert_eq!((deltas[0].domain.as_str(), deltas[0].path.as_str()), ("board", "data.open"));
        assert_eq!((deltas[0].increment(), deltas[1].increment()), (Some(-1.0), None));
        assert_eq!((deltas[1].op, deltas[1].value.as_text().as_deref()), (DeltaOp::Set, Some("x")));
        assert_eq!(ToolCall::in_artifact(&artifact), []);
    }
}

#[test]
fn the_newest_carrier_is_written_and_the_older_one_where_it_is_asked_for_without_counting_twice() {
    let cost = Cost::in_artifact(&second_generation()).remove(0);
    let cost = Cost { cost_usd: Some(2.0), ..cost };
    let mut newest = Artifact::text("done");
    cost.write_to_artifact(&mut newest, Emit::Newest);
    cost.write_to_artifact(&mut newest, Emit::Newest);
    let written = serde_json::to_value(&newest).unwrap();
    let payload = json!({
        "usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}, "durationMs": 812, "costUsd": 2
    });
    assert_eq!(written["metadata"], json!({"https://proto-labs.ai/a2a/ext/cost-v1": payload}));
    assert_eq!(written["extensions"], json!(["https://proto-labs.ai/a2a/ext/cost-v1"]));
    assert_eq!(newest.parts.len(), 1);

    let mut all = Artifact::text("done");
    cost.write_to_artifact(&mut all, Emit::All);
    let written = serde_json::to_value(&all).unwrap();
    let part = json!({"data": payload, "metadata": {"mimeType": vendor("cost-v1")}, "mediaType": "application/json"});
    assert_eq!(written["parts"][1], part);
    assert_eq!(Cost::in_artifact(&all), [cost]);
}

#[test]
fn readers_of_v0_3_are_given_the_older_carrier_of_what_an_agent_says_in_metadata() {
    let task = |artifact: Artifact| -> Task {
        let message = Message { metadata: artifact.metadata.clone(), ..Message::text(Role::Agent, "done") };
        let asked = Message { metadata: artifact.metadata.clone(), ..Message::text(Role::User, "go") };
        let status = json!({"state": "TASK_STATE_COMPLETED", "message": message});
        read(json!({"id": "t", "contextId": "c", "status": status, "artifacts": [artifact], "history": [asked]}))
    };
    let newest = task(third_generation());
    let written = |dialect| read::<Value>(serde_json::from_slice(&encode_task(dialect, &newest)).unwrap());
    let (rpc, rest, v1) = (written(Dialect::V03Rpc), written(Dialect::V03Rest), written(Dialect::V1));
    let lengths = |task: &Value, member: &str| {
        let count = |parts: &Value| parts.as_array().unwrap().len();
        let (status, asked) = (&task["status"]["message"][member], &task["history"][0][member]);
        [count(&task["artifacts"][0]["parts"]), count(status), count(asked)]
    };
    assert_eq!(lengths(&v1, "parts"), [1, 1, 1]);
    assert_eq!(lengths(&rpc, "parts"), [4, 4, 1], "what a caller says is not changed: {rpc}");
    assert_eq!(lengths(&rest, "content"), [4, 4, 1], "{rest}");
    let cost = &rpc["artifacts"][0]["parts"][1];
    assert_eq!((&cost["kind"], &cost["data"]["durationMs"]), (&json!("data"), &json!(812)), "{rpc}");
    assert_eq!(cost["metadata"]["mimeType"], vendor("cost-v1"));
    // A reader that knows every carrier counts it once, and one that relays it adds nothing.
    let relayed: Artifact = read(rpc["artifacts"][0].clone());
    assert_eq!(Cost::in_artifact(&relayed).len(), 1);
    let again: Value = serde_json::from_slice(&encode_task(Dialect::V03Rpc, &task(relayed))).unwrap();
    assert_eq!(lengths(&again, "parts")[0], 4);
}

#[test]
fn a_task_is_read_from_its_last_artifact_then_its_status_then_its_metadata() {
    let by_uri = |confidence: f64| json!({format!("{EXT}/confidence-v1"): {"confidence": confidence}});
    let mut task: Task = read(json!({
        "id": "t", "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED", "message": {
            "messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "done"}], "metadata": by_uri(0.2)
        }},
        "artifacts": [
            {"artifactId": "a", "parts": [], "metadata": by_uri(0.3)},
            {"artifactId": "b", "parts": [], "metadata": by_uri(0.4)},
            {"artifactId": "c", "parts": [{"text": "more"}]}
        ],
        "metadata": by_uri(0.1)
    }));
    let confidence = |task: &Task| Confidence::last_in_task(task).map(|read| read.confidence);
    assert_eq!(confidence(&task), Some(0.4));
    task.artifacts.clear();
    assert_eq!(confidence(&task), Some(0.2));
    task.status.message = None;
    assert_eq!(confidence(&task), Some(0.1));
    task.metadata = None;
    assert_eq!(confidence(&task), None);
}

#[test]
fn malformed_payloads_are_absent_and_wrong_members_do_not_spoil_the_others() {
    for noise in ["null", "[]", "7", r#""x""#, "{}", r#"{"usage":7,"confidence":"high","deltas":{},"phase":"begun"}"#] {
        let noise = Json::parse(noise).unwrap();
        assert_eq!((Cost::read(&noise), Confidence::read(&noise)), (None, None), "{noise:?}");
        assert_eq!((WorldstateDelta::read(&noise), ToolCall::read(&noise)), (None, None), "{noise:?}");
        let mut part = Part::data(noise.clone());
        part.metadata = Some(read(json!({"mimeType": 7})));
        assert_eq!(Cost::find(None, &[part]), []);
    }
    let odd = Json::parse(
        r#"{"usage":{"input_tokens":-3,"output_tokens":"12"},"durationMs":null,"costUsd":-1,"success":"false"}"#,
    );
    let cost = Cost::read(&odd.unwrap()).unwrap();
    let usage = cost.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total()), (0, 12, 12));
    assert_eq!((cost.duration_ms, cost.cost_usd, cost.success), (None, None, Some(false)));
    let huge = Cost::read(&Json::parse(r#"{"durationMs":1e300}"#).unwrap()).unwrap();
    assert_eq!(huge.duration_ms, Some(u64::MAX));
}

#[test]
fn tool_calls_are_read_from_both_carriers() {
    let frame = json!({"toolCallId": "k1", "name": "grep", "phase": "started", "args": {"q": "x"}});
    let by_part: Message = read(json!({"messageId": "m", "role": "agent", "parts": [
        {"kind": "data", "data": frame, "metadata": {"mimeType": vendor("tool-call-v1")}}
    ]}));
    let by_uri: Message = read(json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "grep"}],
        "metadata": {format!("{EXT}/tool-call-v1"): frame}
    }));
    for message in [by_part, by_uri] {
        let calls = ToolCall::in_message(&message);
        let [call] = calls.as_slice() else { panic!("one call: {calls:?}") };
        assert_eq!((call.id(), call.name(), call.phase()), ("k1", "grep", Phase::Started));
        assert_eq!(call.text(), r#"grep calling: {"q":"x"}"#);
    }
}

/// A card with everything, and things that are no declaration.
fn card() -> AgentCard {
    read(json!({"name": "quinn", "capabilities": {"extensions": [
        {"uri": format!("{EXT}/cost-v1")},
        {"uri": format!("{EXT}/effect-domain-v1"), "params": {"skills": {
            "triage": {"effects": [
                {"domain": "board", "path": "data.open", "delta": -1, "confidence": 0.8},
                {"domain": "board", "path": "data.seen", "delta": 2.0},
                {"domain": "board"}
            ]},
            "report": {"effects": []}, "noise": 7
        }}},
        {"uri": format!("{EXT}/blast-v1"), "params": {"skills": {
            "triage": {"radius": "project"}, "deploy": {"radius": 4}, "noise": {"radius": "galaxy"}
        }}},
        {"uri": format!("{EXT}/hitl-mode-v1"), "params": {"skills": {
            "deploy": {"mode": "gated", "reviewer": "operator"},
            "merge": {"mode": 2.0, "vetoTtlMs": 5000.0}, "noise": {"mode": 9}
        }}}
    ]}}))
}

#[test]
fn cards_declare_effects_radius_and_mode_by_skill() {
    let card = card();
    let effects = effect_domain::declared_effects(&card);
    let effect =
        |path: &str, delta, confidence| Effect { domain: "board".to_owned(), path: path.to_owned(), delta, confidence };
    assert_eq!(effects["triage"], [effect("data.open", -1.0, 0.8), effect("data.seen", 2.0, 1.0)]);
    assert_eq!(effects.len(), 1);
    let radii = blast::declared_radii(&card);
    assert_eq!((radii["triage"], radii["deploy"], radii.len()), (Radius::Project, Radius::Public, 2));
    assert!(Radius::Own < Radius::Project && Radius::Fleet < Radius::Public);
    let policies = hitl_mode::declared_policies(&card);
    assert_eq!((policies["deploy"].mode, policies["merge"].mode, policies.len()), (Mode::Gated, Mode::Veto, 2));
    assert_eq!(policies["deploy"].reviewer.as_deref(), Some("operator"));
    assert_eq!(policies["merge"].veto_ttl_ms, Some(5_000));

    let mut again = AgentCard::default();
    again.capabilities.extensions =
        vec![effect_domain::extension(&effects), blast::extension(&radii), hitl_mode::extension(&policies)];
    assert_eq!(effect_domain::declared_effects(&again), effects);
    assert_eq!(blast::declared_radii(&again), radii);
    assert_eq!(hitl_mode::declared_policies(&again), policies);
    let written = serde_json::to_value(&again.capabilities.extensions[0]).unwrap();
    assert_eq!(written["params"]["skills"]["triage"]["effects"][1]["delta"], json!(2));
}

#[test]
fn requests_are_stamped_only_for_what_the_card_declares() {
    let stamped = |card: &AgentCard, skill: &str| {
        let mut metadata = Metadata::default();
        stamp_request(card, skill, &mut metadata);
        serde_json::to_value(metadata).unwrap()
    };
    assert_eq!(
        stamped(&card(), "triage"),
        json!({"x-cost-skill": "triage", "x-effect-domain-skill": "triage", "x-blast-radius": "project"})
    );
    assert_eq!(
        stamped(&card(), "merge"),
        json!({
            "x-cost-skill": "merge", "x-effect-domain-skill": "merge", "x-hitl-mode": "veto",
            "x-hitl-veto-ttl-ms": "5000"
        })
    );
    assert_eq!(stamped(&AgentCard::default(), "triage"), json!({}));
}

#[test]
fn traces_are_read_under_both_keys_and_are_traceparents_where_w3c_allows_their_ids() {
    let told: Metadata = read(json!({"a2a.trace": {
        "traceId": "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736", "spanId": "00f067aa0ba902b7", "callerAgent": "ava",
        "skill": "triage", "project": "protolabs"
    }}));
    let trace = Trace::in_metadata(Some(&told)).unwrap();
    assert_eq!((trace.caller_agent.as_deref(), trace.project.as_deref()), (Some("ava"), Some("protolabs")));
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(trace.traceparent().as_deref(), Some(traceparent));
    let back = Trace::from_traceparent(traceparent).unwrap();
    assert_eq!(back.traceparent().as_deref(), Some(traceparent));
    let mut written = Metadata::default();
    back.write_to(&mut written);
    assert_eq!(
        serde_json::to_value(&written).unwrap(),
        json!({"a2a.trace": {"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7"}})
    );
    let by_uri: Metadata = read(json!({format!("{EXT}/trace-v1"): {"trace_id": "t"}}));
    let foreign = Trace::in_metadata(Some(&by_uri)).unwrap();
    assert_eq!((foreign.trace_id.as_str(), foreign.traceparent()), ("t", None));
    let spanless: Metadata = read(json!({"a2a.trace": {"traceId": "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"}}));
    let spanless = Trace::in_metadata(Some(&spanless)).unwrap().traceparent();
    assert_eq!(spanless.as_deref(), Some("00-4bf92f3577b34da6a3ce929d0e0e4736-a3ce929d0e0e4736-01"));
    for malformed in ["", "00-x-y-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
        assert_eq!(Trace::from_traceparent(malformed), None, "{malformed:?}");
    }
    assert_eq!(Trace::in_metadata(Some(&read(json!({"a2a.trace": {"spanId": "s"}})))), None);
}
