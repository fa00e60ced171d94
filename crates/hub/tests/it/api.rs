//! What all endpoints of the hub have in common, from the document that describes them: a new endpoint is held to it
//! without a line here.

use serde_json::{Value, json};

use crate::running::{Running, folder};

/// Each role with a key of it, and one of it for the agent `echo` alone.
const ROLES: [(&str, &str, &str); 4] =
    [("none", "bob", "cat"), ("viewer", "vic", "eva"), ("operator", "oli", "ole"), ("admin", "ann", "ada")];

/// An endpoint, as it is described.
struct Endpoint<'a> {
    method: String,
    path: &'a str,
    /// Who may call it, and what its answers look like.
    about: &'a str,
    /// Its place in [`ROLES`].
    role: usize,
    /// Parameters of its query.
    parameters: Vec<&'a Value>,
    /// Headers that it reads.
    headers: Vec<&'a str>,
    /// Members of its body that have to be there.
    required: Vec<&'a str>,
    /// Members of its body and their schemas, if it has a body.
    members: Option<&'a serde_json::Map<String, Value>>,
    /// What is said of its answers, by status.
    responses: &'a Value,
}

/// The endpoints of the document that are the hub's.
fn endpoints(document: &Value) -> Vec<Endpoint<'_>> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |one| (path, one)));
    operations
        .filter(|(_, (_, operation))| operation["tags"] == json!(["hub"]))
        .map(|(path, (method, operation))| {
            let about = operation["description"].as_str().unwrap();
            let named = about.split_once("the role `").map_or("none", |(_, rest)| rest.split('`').next().unwrap());
            let parameters = operation["parameters"].as_array().unwrap();
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            Endpoint {
                method: method.to_ascii_uppercase(),
                path,
                about,
                role: ROLES.iter().position(|(role, ..)| *role == named).unwrap(),
                parameters: parameters.iter().filter(|parameter| parameter["in"] == "query").collect(),
                headers: parameters.iter().filter_map(|parameter| header(document, parameter)).collect(),
                required: required.iter().map(|name| name.as_str().unwrap()).collect(),
                members: schema["properties"].as_object(),
                responses: &operation["responses"],
            }
        })
        .collect()
}

/// The name of a parameter that is a header; it may be described elsewhere in the document.
fn header<'a>(document: &'a Value, parameter: &'a Value) -> Option<&'a str> {
    let place = parameter["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    let parameter = place.map_or(parameter, |place| document.pointer(place).unwrap());
    (parameter["in"] == "header").then(|| parameter["name"].as_str().unwrap())
}

/// Names of what is there: an agent, and a task of an administrator at it.
struct Names<'a> {
    agent: &'a str,
    task: &'a str,
    context: &'a str,
}

impl Endpoint<'_> {
    /// The request line's beginning, with names for the variables of the path.
    fn head(&self, names: &Names<'_>) -> String {
        let mut path = String::new();
        for piece in self.path.split_inclusive('}') {
            let Some((fixed, variable)) = piece.split_once('{') else {
                path.push_str(piece);
                continue;
            };
            path.push_str(fixed);
            match variable.trim_end_matches('}') {
                "name" => path.push_str(names.agent),
                "tool" => path.push_str(&format!("a2a_{}", names.agent)),
                "id" => path.push_str(names.task),
                "skill" => path.push_str("nothing"),
                unknown => panic!("what stands for {{{unknown}}} of {} is missing here", self.path),
            }
        }
        format!("{} {path}", self.method)
    }

    /// A body that has what it needs, for those that need something.
    fn body(&self) -> String {
        let body = match self.path {
            _ if self.members.is_none_or(|members| members.is_empty()) => json!({}),
            "/api/agents/{name}" | "/api/a2a-endpoints/{name}" => {
                json!({ "name": "nothing", "url": "http://localhost" })
            }
            "/api/agents/{name}:accept" => json!({ "etag": "e" }),
            "/api/tools/{tool}" => json!({ "message": "hi" }),
            _ => json!({}),
        };
        self.members.map(|_| body.to_string()).unwrap_or_default()
    }

    /// Whether its answers have the form of earlier hubs.
    fn is_enveloped(&self) -> bool {
        self.about.contains("\"success\": false")
    }

    /// Whether its errors are those of a tool.
    fn is_tool(&self) -> bool {
        self.about.contains("\"retryable\": ")
    }

    /// The value of `from` with which a list begins at its oldest item, if it has such a one.
    fn oldest_first(&self) -> &'static str {
        let begins =
            |parameter: &&Value| parameter["schema"]["pattern"].as_str().is_some_and(|it| it.contains("oldest"));
        if self.parameters.iter().any(begins) { "&from=oldest" } else { "" }
    }

    fn is_named(&self) -> bool {
        self.path.contains('{')
    }
}

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

/// A refusal has a code that is described for its status.
fn assert_described(endpoint: &Endpoint<'_>, asked: &str, (status, refusal): &(u16, Value)) {
    let described = &endpoint.responses[status.to_string()]["content"]["application/json"]["schema"];
    let codes = described["properties"]["code"]["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(codes.contains(&refusal["code"]), "{asked} answers {status} {refusal}, described is {codes:?}");
}

/// A refusal has a sentence, and a code for programs, in the form of its path.
fn assert_refused(endpoint: &Endpoint<'_>, refusal: &Value, code: &str) {
    let is_flat = endpoint.is_enveloped() || endpoint.is_tool();
    let (path, message) = (endpoint.path, if is_flat { "/error" } else { "/error/message" });
    assert_eq!(refusal["code"], code, "{path}: {refusal}");
    assert_eq!(refusal.get("retryable"), endpoint.is_tool().then_some(&json!(false)), "{path}: {refusal}");
    assert_eq!(refusal.get("success"), endpoint.is_enveloped().then_some(&json!(false)), "{path}: {refusal}");
    assert!(refusal.pointer(message).is_some_and(Value::is_string), "{path}: {refusal}");
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

/// All that is stored: the journal with the events of tasks, and the agents. Refusals of routing may be counted.
async fn stored(running: &Running) -> (Vec<Value>, Value) {
    let (mut items, mut from) = (Vec::new(), "oldest".to_owned());
    loop {
        let (_, page) = running.get(&format!("/api/feed?pageSize=100&from={from}"), "ann").await;
        let found = page["items"].as_array().unwrap();
        if found.is_empty() {
            break;
        }
        items.extend(found.iter().filter(|item| !item["topic"].as_str().unwrap().starts_with("dispatch.")).cloned());
        from = page["next"].as_str().unwrap().to_owned();
    }
    (items, running.get("/api/agents", "ann").await.1)
}

#[tokio::test]
async fn every_endpoint_needs_a_key_and_refuses_bad_input_without_a_trace() {
    let (data, files) = (folder(), folder());
    let agents = "agents: [{ name: echo, builtin: echo }, { name: other, builtin: echo }]\n";
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let task = running.send("ann", "other", "hello").await;
    let (task, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let there = Names { agent: "other", task, context };
    let unknown = Names { agent: "nothing", task: "nothing", context: "nothing" };
    let before = stored(&running).await;
    let (_, document) = running.get("/openapi.json", "").await;
    let endpoints = endpoints(&document);
    assert_eq!(endpoints.len(), switchboard_hub::route_table().len(), "every endpoint is described");
    for endpoint in &endpoints {
        let (head, body) = (endpoint.head(&there), endpoint.body());
        let (_, key, limited) = ROLES[endpoint.role];
        for stranger in ["", "nobody"] {
            let (status, refusal) = running.ask(&head, stranger, &[], &body).await;
            assert_eq!(status, 401, "{head}: {refusal}");
            assert_refused(endpoint, &refusal, "UNAUTHENTICATED");
        }
        for (_, lower, _) in &ROLES[..endpoint.role] {
            let answered = running.ask(&head, lower, &[], &body).await;
            assert_eq!(answered.0, 403, "{head} for {lower}: {answered:?}");
            assert_refused(endpoint, &answered.1, "FORBIDDEN");
            assert_described(endpoint, &head, &answered);
        }
        refuses_parameters(&running, endpoint, &head, key, &body).await;
        if endpoint.members.is_some() {
            refuses_members(&running, endpoint, &head, key).await;
            if !endpoint.members.is_some_and(serde_json::Map::is_empty) {
                needs_members(&running, endpoint, &head, key).await;
            }
            let answered = running.ask(&head, key, &["Content-Encoding: gzip"], "{}").await;
            assert_eq!(answered.0, 400, "{head} with a body that is compressed: {answered:?}");
            assert_refused(endpoint, &answered.1, "CONTENT_TYPE_NOT_SUPPORTED");
            assert_described(endpoint, &head, &answered);
        }
        // A traceparent that cannot be read is ignored, as its specification says.
        for header in endpoint.headers.iter().filter(|header| **header != "traceparent") {
            let wrong = format!("{header}: {}", "x".repeat(300));
            let (status, refusal) = running.ask(&head, key, &["Accept: application/json", &wrong], &body).await;
            assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{head} with {header}: {refusal}");
        }
        if endpoint.is_named() {
            let missing = running.ask(&endpoint.head(&unknown), key, &[], &body).await;
            let needs_more = missing.0 == 400 && missing.1["problems"][0]["wrong"] == "is missing";
            assert!(missing.0 == 404 || needs_more, "{head}, but unknown: {missing:?}");
            // The name in a body is to be the one in the path.
            let foreign = running.ask(&head, limited, &[], &body.replace("nothing", "other")).await;
            let missing = running.ask(&endpoint.head(&unknown), limited, &[], &body).await;
            let refusal = |answered: &(u16, Value)| (answered.0, answered.1["code"].clone());
            assert_eq!(refusal(&foreign), refusal(&missing), "{head}: what is foreign looks like nothing");
            assert!([403, 404].contains(&foreign.0), "{head}: {foreign:?}");
            assert_described(endpoint, &head, &foreign);
        }
        hides_foreign_names(&running, endpoint, &there, limited, &body).await;
        refuses_names(&running, endpoint, &there, key, limited).await;
        let (status, refusal) = running.ask(&head.replacen(&endpoint.method, "PATCH", 1), key, &[], &body).await;
        assert_eq!(status, 405, "{head} with another method: {refusal}");
    }
    assert_eq!(stored(&running).await, before, "nothing has changed");
    running.stop().await;
}

#[tokio::test]
async fn the_document_says_what_is_needed_and_what_comes_back() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (_, document) = running.get("/openapi.json", "").await;
    let feed = &document["paths"]["/api/feed"]["get"];
    assert!(feed["responses"]["2XX"]["content"]["text/event-stream"].is_object(), "{feed}");
    let register = &document["paths"]["/api/agents"]["post"];
    let body = &register["requestBody"];
    let required = &body["content"]["application/json"]["schema"]["required"];
    assert_eq!((&body["required"], required), (&json!(true), &json!(["name", "url"])));
    let codes = |status: &str| &register["responses"][status]["content"]["application/json"]["schema"];
    assert_eq!(codes("409")["properties"]["code"]["enum"], json!(["EXISTS", "IN_FILE"]));
    let cancel = &document["paths"]["/api/tasks/{id}:cancel"]["post"];
    assert_eq!(cancel["requestBody"]["required"], false, "it needs no body");
    let series = document["paths"]["/api/series"]["get"]["parameters"].as_array().unwrap();
    let needed = series.iter().filter(|parameter| parameter["required"] == true);
    assert_eq!(needed.map(|parameter| &parameter["name"]).collect::<Vec<_>>(), ["metric", "agent"]);
    assert_eq!(series[3]["schema"], json!({ "type": "string", "format": "date-time" }), "{series:?}");
    let said = |path: &str, status: &str| {
        let codes = &document["paths"][path]["post"]["responses"][status]["content"]["application/json"]["schema"];
        codes["properties"]["code"]["enum"].to_string()
    };
    for path in ["/api/dispatch", "/api/plan", "/api/a2a/chat", "/api/a2a/delegate", "/api/tools/{tool}"] {
        let refusals = [
            ("400", "SKILL_NOT_OFFERED"),
            ("403", "FORBIDDEN"),
            ("404", "NOT_FOUND"),
            ("409", "IDEMPOTENCY_KEY_REUSED"),
            ("429", "COOLDOWN"),
        ];
        for (status, code) in refusals {
            assert!(said(path, status).contains(code), "{path} {status}: {}", said(path, status));
        }
        let headers = document["paths"][path]["post"]["parameters"].to_string();
        assert!(headers.contains("Traceparent"), "{path}: {headers}");
    }
    assert_eq!(
        (said("/api/tools/{tool}", "502"), said("/api/experiments", "409")),
        ("[\"AGENT_ERROR\"]".into(), "[\"EXISTS\"]".into())
    );
    let plan = document["paths"]["/api/plan"]["post"]["parameters"].to_string();
    assert!(plan.contains("IdempotencyKey"), "{plan}");
    running.stop().await;
}

async fn refuses_parameters(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str, body: &str) {
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
async fn hides_foreign_names(running: &Running, endpoint: &Endpoint<'_>, there: &Names<'_>, limited: &str, body: &str) {
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
async fn refuses_names(running: &Running, endpoint: &Endpoint<'_>, there: &Names<'_>, key: &str, limited: &str) {
    let is_name = |name: &&String| ["agent", "targets", "taskId", "control", "challenger"].contains(&name.as_str());
    let mut members: Vec<&str> =
        endpoint.members.into_iter().flat_map(serde_json::Map::keys).filter(is_name).map(String::as_str).collect();
    // The path names it.
    members.retain(|member| !endpoint.path.contains(&format!("{{{member}}}")));
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
async fn needs_members(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str) {
    let (_, answer) = running.ask(head, key, &[], "{}").await;
    let problems = answer["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let missing = problems.iter().filter(|problem| problem["wrong"] == "is missing");
    let mut missing: Vec<&str> = missing.map(|problem| problem["key"].as_str().unwrap()).collect();
    missing.retain(|name| endpoint.members.is_some_and(|members| members.contains_key(*name)));
    let mut required = endpoint.required.clone();
    missing.sort_unstable();
    required.sort_unstable();
    if endpoint.path == "/api/dispatch" {
        required = vec!["message"];
    }
    assert_eq!(missing, required, "{head}: {answer}");
}

async fn refuses_members(running: &Running, endpoint: &Endpoint<'_>, head: &str, key: &str) {
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
