//! What an endpoint does with queries, bodies and names that are wrong, unknown or foreign.

use serde_json::{Value, json};

use super::assert_described;
use super::endpoint::{Endpoint, Names};
use crate::running::Running;

/// The problem that a refusal names, for a member or parameter, or below it.
fn problem<'a>(refusal: &'a Value, key: &str) -> Option<&'a Value> {
    let is_about =
        |found: &str| found.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let problems = refusal["problems"].as_array()?.iter();
    problems.into_iter().find(|problem| problem["key"].as_str().is_some_and(is_about))
}

fn assert_invalid(answered: &(u16, Value), key: &str, asked: &str) {
    let (status, refusal) = answered;
    assert_eq!((*status, &refusal["code"]), (400, &json!("INVALID")), "{asked}: {refusal}");
    let problem = problem(refusal, key).unwrap_or_else(|| panic!("{asked} does not name {key}: {refusal}"));
    assert_ne!(problem["wrong"], "is missing", "{asked}: {refusal}");
    assert_ne!(problem["right"].as_str().unwrap_or_default(), "", "{asked}: {refusal}");
}

/// Every kind of JSON value.
fn kinds() -> [(&'static str, Value); 5] {
    [
        ("boolean", json!(true)),
        ("integer", json!(7)),
        ("string", json!("surprise")),
        ("array", json!([[]])),
        ("object", json!({ "surprise": [] })),
    ]
}

pub(super) async fn refuses_parameters(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str, body: &str) {
    let ask = async |query: &str| {
        let head = format!("{head}?{query}");
        (running.ask(&head, key, &["Accept: application/json"], body).await, head)
    };
    let (answered, asked) = ask("surprise=1").await;
    assert_invalid(&answered, "surprise", &asked);
    let (answered, asked) = ask("surprise=%ff").await;
    assert_invalid(&answered, "query", &asked);
    for parameter in &endpoint.parameters {
        let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
        if schema["type"] != "array" {
            let (answered, asked) = ask(&format!("{name}=1&{name}=2")).await;
            assert_invalid(&answered, name, &asked);
        }
        let one = if schema["type"] == "array" { &schema["items"] } else { schema };
        let says_what = ["enum", "format", "pattern"].iter().any(|key| !one[key].is_null());
        if one["type"] == "integer" || says_what {
            let (answered, asked) = ask(&format!("{name}=a..surprise")).await;
            assert_invalid(&answered, name, &asked);
        }
    }
}

/// What the query names and the key may not see is answered like what is not there.
pub(super) async fn hides_foreign_names(
    running: &Running,
    endpoint: &Endpoint<'_>,
    there: &Names<'_>,
    limited: &str,
    body: &str,
) {
    if !endpoint.responses["101"].is_null() {
        // No answer to a request: `subscribe.rs` has who sees what over a WebSocket.
        return;
    }
    // One that is there and may be seen stands for the variables of the path.
    let head = endpoint.head(&Names { agent: "echo", ..*there });
    let name = |parameter: &Value| parameter["name"].as_str().unwrap().to_owned();
    let needed = |parameter: &&&Value| parameter["required"] == true && name(parameter) != "agent";
    let needed: String = endpoint
        .parameters
        .iter()
        .filter(needed)
        .map(|parameter| format!("&{}={}", name(parameter), parameter["schema"]["enum"][0].as_str().unwrap()))
        .chain([endpoint.oldest_first().to_owned()])
        .collect();
    for parameter in &endpoint.parameters {
        let name = name(parameter);
        let foreign = match name.as_str() {
            "agent" => there.agent,
            "task" | "correlation" | "correlationId" => there.task,
            "context" => there.context,
            _ => continue,
        };
        let ask = async |value: &str, key: &str| {
            let asked = format!("{head}?{name}={value}{needed}");
            let answered = running.ask(&asked, key, &["Accept: application/json"], body).await;
            if answered.0 != 200 {
                assert_described(endpoint, &asked, &answered);
            }
            (answered.0, answered.1.to_string().replace(value, "NAME"))
        };
        let (foreign, unknown, seen) =
            (ask(foreign, limited).await, ask("nothing", limited).await, ask(foreign, "ann").await);
        assert_eq!(foreign, unknown, "{head}?{name}");
        assert!([200, 403, 404].contains(&foreign.0), "{head}?{name}: {foreign:?}");
        if !endpoint.oldest_first().is_empty() {
            assert_ne!(foreign, seen, "{head}?{name}: there is something to hide");
        }
    }
}

/// Bodies that name what is not there, or what the key may not use: what is answered for each of them.
fn named(endpoint: &Endpoint<'_>, names: &Names<'_>) -> Vec<(Value, &'static str)> {
    let Names { agent, task, .. } = names;
    let skill = "echo";
    match endpoint.path {
        _ if endpoint.members.is_none() => Vec::new(),
        "/api/dispatch" => vec![
            (json!({ "message": "hi", "targets": [agent], "force": true }), "targets"),
            (json!({ "message": "hi", "taskId": task }), "taskId"),
        ],
        "/api/a2a/chat" => vec![
            (json!({ "agent": agent, "message": "hi" }), "agent"),
            (json!({ "agent": "echo", "message": "hi", "taskId": task }), "taskId"),
        ],
        "/api/a2a/delegate" => vec![(json!({ "agent": agent, "skill": skill, "message": "hi" }), "agent")],
        "/api/ceremonies/create" | "/api/ceremonies/{id}/update" => {
            vec![(json!({ "id": "new", "schedule": "@daily", "targets": [agent] }), "targets")]
        }
        "/api/tools/{tool}" => vec![(json!({ "message": "hi", "taskId": task }), "taskId")],
        "/api/experiments" => vec![
            (json!({ "skill": skill, "control": agent, "challenger": "echo", "n": 5 }), "control"),
            (json!({ "skill": skill, "control": "echo", "challenger": agent, "n": 5 }), "challenger"),
        ],
        _ => Vec::new(),
    }
}

/// A name in a body that is unknown is refused, and a task that is foreign looks like one that is not there. A target says
/// that it is there and not for this key, as at its own address.
pub(super) async fn refuses_names(
    running: &Running,
    endpoint: &Endpoint<'_>,
    there: &Names<'_>,
    key: &str,
    limited: &str,
) {
    let is_name = |name: &&String| ["agent", "targets", "taskId", "control", "challenger"].contains(&name.as_str());
    let mut members: Vec<&str> =
        endpoint.members.into_iter().flat_map(serde_json::Map::keys).filter(is_name).map(String::as_str).collect();
    // The path names it.
    members.retain(|member| !endpoint.path.contains(&format!("{{{member}}}")));
    // A claim, which is shown as one and refused to nobody: `inbox::ask_human` has its tests.
    members.retain(|member| (endpoint.path, *member) != ("/api/agent/ask-human", "taskId"));
    let unknown = Names { agent: "nothing", task: "nothing", context: "nothing" };
    let head = endpoint.head(&Names { agent: "echo", ..*there });
    let (of_unknown, of_foreign) = (named(endpoint, &unknown), named(endpoint, there));
    let covered: Vec<&str> = of_unknown.iter().map(|(_, member)| *member).collect();
    for member in members {
        assert!(covered.contains(&member), "{head}: a body that names an unknown {member} is missing here");
    }
    for ((unknown, member), (foreign, _)) in of_unknown.iter().zip(&of_foreign) {
        let answered = running.ask(&head, key, &[], &unknown.to_string()).await;
        assert!([400, 404].contains(&answered.0), "{head} {unknown}: {answered:?}");
        assert_described(endpoint, &format!("{head} {unknown}"), &answered);
        let answered = running.ask(&head, limited, &[], &foreign.to_string()).await;
        let allowed: &[u16] = if *member == "taskId" { &[404] } else { &[400, 403, 404] };
        assert!(allowed.contains(&answered.0), "{head} {foreign}: {answered:?}");
        assert_described(endpoint, &format!("{head} {foreign}"), &answered);
    }
}

/// What is described as required is missed, and nothing else is but what another member may replace.
pub(super) async fn needs_members(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str) {
    let (_, answer) = running.ask(head, key, &[], "{}").await;
    let problems = answer["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let missing = problems.iter().filter(|problem| problem["wrong"] == "is missing");
    let mut missing: Vec<&str> = missing.map(|problem| problem["key"].as_str().unwrap()).collect();
    missing.retain(|name| endpoint.members.is_some_and(|members| members.contains_key(*name)));
    let mut required = endpoint.required.clone();
    missing.sort_unstable();
    required.sort_unstable();
    match endpoint.path {
        "/api/dispatch" => required = vec!["message"],
        "/api/channels/{platform}/messages" => required = vec!["channel", "text"],
        _ => {}
    }
    assert_eq!(missing, required, "{head}: {answer}");
}

pub(super) async fn refuses_members(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str) {
    let (answered, asked) = (running.ask(head, key, &[], "{\"surprise\":1}").await, format!("{head} surprise"));
    assert_invalid(&answered, "surprise", &asked);
    for body in ["[]", "{", "7"] {
        assert_invalid(&running.ask(head, key, &[], body).await, "body", &format!("{head} {body}"));
    }
    for (name, schema) in endpoint.members.unwrap() {
        assert!(!schema["type"].is_null(), "{head} says no type of {name}");
        let mut refused = 0;
        for (kind, value) in kinds() {
            // The unknown member has it refused where the value is right.
            let body = json!({ name: value, "surprise": 1 }).to_string();
            let asked = format!("{head} {body}");
            let answered = running.ask(head, key, &[], &body).await;
            let right = &schema["type"];
            let is_right = |right: &Value| right == kind;
            let is_one_of = is_right(right) || right.as_array().is_some_and(|all| all.iter().any(is_right));
            let is_wrong = !is_one_of || schema["enum"].is_array();
            if is_wrong {
                assert_invalid(&answered, name, &asked);
            }
            refused += usize::from(problem(&answered.1, name).is_some());
        }
        assert!(refused > 0, "{head} takes anything as {name}");
    }
}
