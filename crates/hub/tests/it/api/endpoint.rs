//! The endpoints of the hub as the OpenAPI document describes them.

use serde_json::{Value, json};

/// Each role with a key of it, and one of it for the agent `echo` alone.
pub(super) const ROLES: [(&str, &str, &str); 4] =
    [("none", "bob", "cat"), ("viewer", "vic", "eva"), ("operator", "oli", "ole"), ("admin", "ann", "ada")];

/// An endpoint, as it is described.
pub(super) struct Endpoint<'a> {
    pub(super) method: String,
    pub(super) path: &'a str,
    /// Who may call it, and what its answers look like.
    pub(super) about: &'a str,
    /// Its place in [`ROLES`].
    pub(super) role: usize,
    /// Parameters of its query.
    pub(super) parameters: Vec<&'a Value>,
    /// Headers that it reads.
    pub(super) headers: Vec<&'a str>,
    /// Members of its body that have to be there.
    pub(super) required: Vec<&'a str>,
    /// Members of its body and their schemas, if it has a body.
    pub(super) members: Option<&'a serde_json::Map<String, Value>>,
    /// What is said of its answers, by status.
    pub(super) responses: &'a Value,
}

/// The endpoints of the document that are the hub's.
pub(super) fn endpoints(document: &Value) -> Vec<Endpoint<'_>> {
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
pub(super) struct Names<'a> {
    pub(super) agent: &'a str,
    pub(super) task: &'a str,
    pub(super) context: &'a str,
}

impl Endpoint<'_> {
    /// The request line's beginning, with names for the variables of the path.
    pub(super) fn head(&self, names: &Names<'_>) -> String {
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
                "contextId" => path.push_str(names.context),
                // Any word is the name of a platform.
                "platform" => path.push_str("slack"),
                unknown => panic!("what stands for {{{unknown}}} of {} is missing here", self.path),
            }
        }
        format!("{} {path}", self.method)
    }

    /// A body that has what it needs, for those that need something.
    pub(super) fn body(&self) -> String {
        let body = match self.path {
            _ if self.members.is_none_or(|members| members.is_empty()) => json!({}),
            "/api/agents/{name}" | "/api/a2a-endpoints/{name}" => {
                json!({ "name": "nothing", "url": "http://localhost" })
            }
            "/api/agents/{name}:accept" => json!({ "etag": "e" }),
            "/api/routes/{name}" if self.method == "PUT" => {
                json!({ "when": { "topic": "task.failed.*" }, "then": { "skill": "echo" } })
            }
            "/api/inbox/{id}:decide" => json!({ "decision": "approve" }),
            "/api/tools/{tool}" => json!({ "message": "hi" }),
            "/api/channels/{platform}/messages" => json!({ "channel": "C1", "text": "hi" }),
            _ => json!({}),
        };
        self.members.map(|_| body.to_string()).unwrap_or_default()
    }

    /// Whether its answers have the form of earlier hubs.
    pub(super) fn is_enveloped(&self) -> bool {
        self.about.contains("\"success\": false")
    }

    /// Whether its errors are those of a tool.
    pub(super) fn is_tool(&self) -> bool {
        self.about.contains("\"retryable\": ")
    }

    /// The value of `from` with which a list begins at its oldest item, if it has such a one.
    pub(super) fn oldest_first(&self) -> &'static str {
        let begins =
            |parameter: &&Value| parameter["schema"]["pattern"].as_str().is_some_and(|it| it.contains("oldest"));
        if self.parameters.iter().any(begins) { "&from=oldest" } else { "" }
    }

    pub(super) fn is_named(&self) -> bool {
        self.path.contains('{')
    }
}
