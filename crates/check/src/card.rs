//! Checks of the agent card, in each version.

pub(crate) mod extended;
pub(crate) mod security;
pub(crate) mod signatures;

use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use serde_json::Value;

use crate::agent::TestedAgent;
use crate::interface::TestedInterface;
use crate::reply::ReplyContent;
use crate::request::TestRequest;
use crate::verdict::{CheckResult, OrSkip, applies_if, no_problems, skip};
use crate::wire::{entries, short, without_text};

pub(crate) async fn media_type(agent: &TestedAgent) -> CheckResult {
    let found = agent.card_reply.media_type();
    let is_json = found == "application/json" || found.ends_with("+json");
    no_problems((!is_json).then(|| format!("Content-Type: {found}")), &agent.card_reply.sent)
}

pub(crate) async fn members(agent: &TestedAgent) -> CheckResult {
    let card = &agent.card;
    applies_if(speaks(card, "1.") || !speaks(card, "0.3"), "the agent speaks version 0.3 only")?;
    let mut problems = usual_problems(card);
    if card["supportedInterfaces"].as_array().is_none_or(Vec::is_empty) {
        problems.push("supportedInterfaces is missing or empty".to_owned());
    }
    no_problems(problems, &agent.card_reply.sent)
}

pub(crate) async fn members_v03(agent: &TestedAgent) -> CheckResult {
    applies_if(speaks(&agent.card, "0.3"), "the card declares no interface of version 0.3")?;
    let reply = agent.v03_card().await;
    let Some(card) = reply.json.as_ref().filter(|card| card.is_object()) else {
        return reply.failure();
    };
    let mut problems = usual_problems(card);
    let missing = without_text(card, &["url", "protocolVersion", "preferredTransport"]);
    problems.extend(missing.map(|member| format!("{member} is missing")));
    no_problems(problems, &reply.sent)
}

/// The specification contradicts itself about empty lists; absent ones have their own check.
pub(crate) async fn lists(agent: &TestedAgent) -> CheckResult {
    let card = &agent.card;
    applies_if(speaks(card, "1.") || !speaks(card, "0.3"), "the agent speaks version 0.3 only")?;
    let is_empty = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
    let members = ["defaultInputModes", "defaultOutputModes", "skills"].into_iter();
    let mut problems: Vec<String> =
        members.filter(|member| is_empty(&card[*member])).map(|member| format!("{member} is empty")).collect();
    for skill in entries(&card["skills"]).filter(|skill| is_empty(&skill["tags"])) {
        problems.push(format!("the tags of {} are empty", short(&skill["id"])));
    }
    no_problems(problems, &agent.card_reply.sent)
}

/// Problems of the members that both versions demand.
fn usual_problems(card: &Value) -> Vec<String> {
    let missing = without_text(card, &["name", "description", "version"]);
    let mut problems: Vec<String> = missing.map(|member| format!("{member} is missing or empty")).collect();
    let lists = ["defaultInputModes", "defaultOutputModes", "skills"].into_iter();
    problems.extend(lists.filter(|member| !card[*member].is_array()).map(|member| format!("{member} is no array")));
    if !card["capabilities"].is_object() {
        problems.push("capabilities is no object".to_owned());
    }
    problems
}

pub(crate) async fn interfaces(agent: &TestedAgent) -> CheckResult {
    let interfaces = agent.card["supportedInterfaces"].as_array().or_skip("the card has no supportedInterfaces")?;
    let mut problems = Vec::new();
    for interface in interfaces {
        let missing = without_text(interface, &["url", "protocolBinding", "protocolVersion"]);
        problems.extend(missing.map(|member| format!("{} has no {member}", short(interface))));
        let url = interface["url"].as_str().unwrap_or_default();
        // gRPC addresses are host and port.
        if !url.is_empty() && interface["protocolBinding"] != "GRPC" && url::Url::parse(url).is_err() {
            problems.push(format!("{url} is not absolute"));
        }
    }
    no_problems(problems, &agent.card_reply.sent)
}

pub(crate) async fn versions(agent: &TestedAgent) -> CheckResult {
    let interfaces = entries(&agent.card["supportedInterfaces"]);
    let versions = interfaces.filter_map(|interface| interface["protocolVersion"].as_str());
    let long: Vec<String> = versions.filter(|version| version.split('.').count() != 2).map(str::to_owned).collect();
    no_problems(long, &agent.card_reply.sent)
}

pub(crate) async fn v03_agrees(agent: &TestedAgent) -> CheckResult {
    applies_if(speaks(&agent.card, "0.3") && speaks(&agent.card, "1."), "the card declares one version only")?;
    let reply = agent.v03_card().await;
    let (new, Some(old)) = (&agent.card, &reply.json) else {
        return reply.failure();
    };
    let mut problems = Vec::new();
    for member in ["name", "version"] {
        if old[member] != new[member] {
            problems.push(format!("{member} is {} and {}", short(&new[member]), short(&old[member])));
        }
    }
    let ids = |card: &Value| -> Vec<Value> { entries(&card["skills"]).map(|skill| skill["id"].clone()).collect() };
    if ids(old) != ids(new) {
        problems.push(format!("the skills are {} and {}", short(&ids(new).into()), short(&ids(old).into())));
    }
    let mut places = entries(&new["supportedInterfaces"]);
    let is_listed = places.any(|place| {
        place["url"] == old["url"] && place["protocolVersion"].as_str().is_some_and(|found| found.starts_with("0.3"))
    });
    if old["url"].is_string() && !is_listed {
        problems.push(format!("supportedInterfaces has no 0.3 at {}", short(&old["url"])));
    }
    no_problems(problems, &reply.sent)
}

/// A refusal for lack of credentials is an answer too.
pub(crate) async fn reachable(interface: &TestedInterface) -> CheckResult {
    let test_request = match interface.harmless_request() {
        Ok(test_request) => test_request,
        Err(problem) => return skip(problem),
    };
    let reply = interface.ask(&test_request).await;
    let is_there = match reply.content {
        ReplyContent::Result(_) | ReplyContent::Error(_) | ReplyContent::Unknown(_) => true,
        ReplyContent::NotA2a => matches!(reply.status, 401 | 403),
        ReplyContent::Missing => false,
    };
    match &interface.card_url {
        _ if !is_there => reply.failure(),
        None => Ok(()),
        // The called address answers; the one on the card was not called.
        Some(said) => skip(format!(
            "the card says {said}, and {} was called, which answers; --trust-card-url calls what the card says",
            interface.endpoint.url
        )),
    }
}

pub(crate) async fn skills(agent: &TestedAgent) -> CheckResult {
    let mut problems = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for skill in entries(&agent.card["skills"]) {
        let missing = without_text(skill, &["id", "name", "description"]);
        problems.extend(missing.map(|member| format!("{} has no {member}", short(skill))));
        if !skill["tags"].is_array() {
            problems.push(format!("{} has no tags", short(skill)));
        }
        if let Some(id) = skill["id"].as_str()
            && !seen.insert(id)
        {
            problems.push(format!("the id {id:?} occurs more than once"));
        }
    }
    no_problems(problems, &agent.card_reply.sent)
}

pub(crate) async fn caching(agent: &TestedAgent) -> CheckResult {
    applies_if(speaks(&agent.card, "1."), "version 0.3 leaves it open")?;
    let headers = &agent.card_reply.headers;
    let mut problems = Vec::new();
    let control = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !control.contains("max-age") {
        problems.push(format!("Cache-Control: {control}"));
    }
    if !headers.contains_key(ETAG) {
        problems.push("there is no ETag".to_owned());
    }
    no_problems(problems, &agent.card_reply.sent)
}

pub(crate) async fn unchanged(agent: &TestedAgent) -> CheckResult {
    let tag = agent.card_reply.headers.get(ETAG).or_skip("the card has no ETag")?;
    let mut test_request = TestRequest::get(&agent.card_url, Some("1.0"));
    test_request.headers.push((IF_NONE_MATCH, tag.clone()));
    let reply = agent.fetch(&test_request).await;
    if reply.status == 304 { Ok(()) } else { reply.failure() }
}

/// Whether an interface on the card has a version with this prefix.
pub(crate) fn speaks(card: &Value, version: &str) -> bool {
    let interfaces = entries(&card["supportedInterfaces"]);
    let mut versions = interfaces.map(|interface| &interface["protocolVersion"]).chain([&card["protocolVersion"]]);
    versions.any(|found| found.as_str().is_some_and(|found| found.starts_with(version)))
}
