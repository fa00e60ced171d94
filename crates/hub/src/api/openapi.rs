//! The hub's part of `/openapi.json`, made from the table of routes, so that what is described is what is served.

use serde_json::{Map, Value, json};
use switchboard_server::{Authorization, BodyRule};

use super::route::{Parameter, Route, Style, Takes};

/// Stands for members that are described elsewhere; the handler refuses those that are not.
const OTHER_MEMBERS: &str = "…";

pub(crate) fn describe(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.method.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    let tag = json!({ "name": "hub", "description": "What happens between agents: feed, health, alerts." });
    json!({ "tags": [tag], "paths": paths })
}

fn operation(route: &Route) -> Value {
    let variables = route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let in_path = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } });
    let in_query = |parameter: &Parameter| {
        let one = match parameter.takes {
            Takes::Anything => schema(Takes::Text),
            takes => schema(takes),
        };
        let schema = if parameter.repeats { json!({ "type": "array", "items": one }) } else { one };
        json!({ "name": parameter.name, "in": "query", "description": parameter.about, "schema": schema })
    };
    let parameters: Vec<Value> = variables.map(in_path).chain(route.parameters.iter().map(in_query)).collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": ["hub"],
        "summary": route.summary,
        "description": needs(route),
        "parameters": parameters,
        "responses": {
            "2XX": {
                "description": "Done.",
                "content": { "application/json": { "schema": { "type": "object" } } },
            },
            "default": { "$ref": "#/components/responses/Error" },
        },
    });
    if let (BodyRule::Json, Some(operation)) = (route.access.body, operation.as_object_mut()) {
        let (other, named): (Vec<_>, Vec<_>) = route.members.iter().partition(|member| member.name == OTHER_MEMBERS);
        let members: Map<String, Value> = named
            .into_iter()
            .map(|member| {
                let mut described = schema(member.takes);
                described["description"] = member.about.into();
                (member.name.to_owned(), described)
            })
            .collect();
        let mut schema = json!({ "type": "object", "properties": members, "additionalProperties": false });
        if let Some(other) = other.first() {
            schema["additionalProperties"] = json!({ "description": other.about });
        }
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        operation.insert("requestBody".to_owned(), body);
    }
    operation
}

fn schema(takes: Takes) -> Value {
    match takes {
        Takes::Anything => json!({}),
        Takes::Text => json!({ "type": "string" }),
        Takes::Words(words) => json!({ "type": "string", "enum": words }),
        Takes::Integer => json!({ "type": "integer" }),
        Takes::Object => json!({ "type": "object" }),
    }
}

/// Who may call it, and what its answers look like.
fn needs(route: &Route) -> String {
    let role = match route.access.authorization {
        Authorization::Role(role) if role > switchboard_engine::CallerRole::None => {
            format!("On a server with keys this needs one with the role `{role}`.")
        }
        _ => "For any key, about what it may see.".to_owned(),
    };
    match route.style {
        Style::Own => role,
        Style::Envelope => format!(
            "{role} The answer is `{{\"success\": true, \"data\": …}}`, an error `{{\"success\": false, \"error\": …, \
             \"code\": …}}`."
        ),
    }
}

/// `GET /api/bus/history` is `getApiBusHistory`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for word in route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
    }
    id
}
