//! Checks of the agent card, in each version.

pub(crate) mod extended;
pub(crate) mod security;
pub(crate) mod signatures;

use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use serde_json::Value;

use crate::agent::TestedAgent;
use crate::checks::{Check, Group, Must, Quality, Should};
use crate::interface::TestedInterface;
use crate::reply::ReplyContent;
use crate::request::TestRequest;
use crate::verdict::{CheckResult, OrSkip, applies_if, fail, no_problems, skip};
use crate::wire::short;

pub(crate) const CHECKS: &[Check] = &[
    Check::of_agent(Group::Card, Quality, "card-media-type", |agent| Box::pin(media_type(agent)))
        .title("the card is served as JSON")
        .rule("RFC 8259 §11; A2A leaves it open")
        .fix("send the card with Content-Type: application/json"),
    Check::of_agent(Group::Card, Must, "card-members", |agent| Box::pin(members(agent)))
        .title("the card has every member that version 1.0 demands")
        .rule("A2A 1.0 §4.4.1")
        .fix("write the missing members"),
    Check::of_agent(Group::Card, Quality, "card-lists", |agent| Box::pin(lists(agent)))
        .title("the lists that the card must have are not empty")
        .rule("A2A 1.0 §5.7 demands it; the card of §8.4.1 has no skills")
        .fix("name at least one skill with at least one tag, and one media type each way"),
    Check::of_agent(Group::Card, Must, "card-members-v03", |agent| Box::pin(members_v03(agent)))
        .title("callers of version 0.3 get a card with every member that version demands")
        .rule("A2A 0.3 §5.5, §5.6")
        .fix(
            "serve url, preferredTransport and protocolVersion beside the members of 1.0, or by the A2A-Version header",
        ),
    Check::of_agent(Group::Card, Must, "card-interfaces", |agent| Box::pin(interfaces(agent)))
        .title("every interface on the card says where it is, how it is called and in which version")
        .rule("A2A 1.0 §8.3.1")
        .fix("give every entry of supportedInterfaces an absolute url, a protocolBinding and a protocolVersion"),
    Check::of_agent(Group::Card, Should, "card-versions", |agent| Box::pin(versions(agent)))
        .title("versions on the card are major and minor, without a patch number")
        .rule("A2A 1.0 §3.6")
        .fix("write 1.0, not 1.0.0"),
    Check::of_agent(Group::Card, Must, "card-skills", |agent| Box::pin(skills(agent)))
        .title("every skill has an id of its own, a name, a description and tags")
        .rule("A2A 1.0 §4.4.5")
        .fix("complete the skills, and give no two of them the same id"),
    Check::of_agent(Group::Card, Should, "card-v03-agrees", |agent| Box::pin(v03_agrees(agent)))
        .title("callers of both versions are told of the same agent, skills and addresses")
        .rule("A2A 1.0 §8.3.1")
        .fix("make both cards of one description, and list the address of the 0.3 card in supportedInterfaces"),
    Check::of_interface(Group::Card, Must, "card-reachable", |interface| Box::pin(reachable(interface)))
        .title("where the card says that an interface is, that interface answers")
        .rule("A2A 1.0 §8.3.1")
        .fix("list only what is served, at the address and in the version in which it is"),
    Check::of_agent(Group::Card, Should, "card-caching", |agent| Box::pin(caching(agent)))
        .title("the card says how long it is good, and has a tag to ask again with")
        .rule("A2A 1.0 §8.6.1")
        .fix("send Cache-Control with max-age, and an ETag"),
    Check::of_agent(Group::Card, Quality, "card-unchanged", |agent| Box::pin(unchanged(agent)))
        .title("a card that has not changed is not sent again")
        .rule("A2A 1.0 §8.6.2, RFC 9110 §13.1.2")
        .fix("answer 304 to a request whose If-None-Match has the card's tag"),
];

async fn media_type(agent: &TestedAgent) -> CheckResult {
    let found = agent.card_reply.media_type();
    match found == "application/json" || found.ends_with("+json") {
        true => Ok(()),
        false => fail(&agent.card_reply.sent, format!("Content-Type: {found}")),
    }
}

async fn members(agent: &TestedAgent) -> CheckResult {
    let card = &agent.card;
    applies_if(speaks(card, "1.") || !speaks(card, "0.3"), "the agent speaks version 0.3 only")?;
    let mut problems = usual_problems(card);
    if card["supportedInterfaces"].as_array().is_none_or(Vec::is_empty) {
        problems.push("supportedInterfaces is missing or empty".to_owned());
    }
    no_problems(&problems, &agent.card_reply.sent)
}

async fn members_v03(agent: &TestedAgent) -> CheckResult {
    applies_if(speaks(&agent.card, "0.3"), "the card declares no interface of version 0.3")?;
    let reply = agent.v03_card().await;
    let Some(card) = reply.json.as_ref().filter(|card| card.is_object()) else {
        return reply.failure();
    };
    let mut problems = usual_problems(card);
    for member in ["url", "protocolVersion", "preferredTransport"] {
        if card[member].as_str().is_none_or(str::is_empty) {
            problems.push(format!("{member} is missing"));
        }
    }
    no_problems(&problems, &reply.sent)
}

/// The specification contradicts itself about empty lists; absent ones have their own check.
async fn lists(agent: &TestedAgent) -> CheckResult {
    let card = &agent.card;
    applies_if(speaks(card, "1.") || !speaks(card, "0.3"), "the agent speaks version 0.3 only")?;
    let is_empty = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
    let members = ["defaultInputModes", "defaultOutputModes", "skills"].into_iter();
    let mut problems: Vec<String> =
        members.filter(|member| is_empty(&card[*member])).map(|member| format!("{member} is empty")).collect();
    for skill in card["skills"].as_array().into_iter().flatten().filter(|skill| is_empty(&skill["tags"])) {
        problems.push(format!("the tags of {} are empty", short(&skill["id"])));
    }
    no_problems(&problems, &agent.card_reply.sent)
}

/// Problems of the members that both versions demand.
fn usual_problems(card: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for member in ["name", "description", "version"] {
        if card[member].as_str().is_none_or(str::is_empty) {
            problems.push(format!("{member} is missing or empty"));
        }
    }
    for member in ["defaultInputModes", "defaultOutputModes", "skills"] {
        if !card[member].is_array() {
            problems.push(format!("{member} is no array"));
        }
    }
    if !card["capabilities"].is_object() {
        problems.push("capabilities is no object".to_owned());
    }
    problems
}

async fn interfaces(agent: &TestedAgent) -> CheckResult {
    let interfaces = agent.card["supportedInterfaces"].as_array().or_skip("the card has no supportedInterfaces")?;
    let mut problems = Vec::new();
    for interface in interfaces {
        for member in ["url", "protocolBinding", "protocolVersion"] {
            if interface[member].as_str().is_none_or(str::is_empty) {
                problems.push(format!("{} has no {member}", short(interface)));
            }
        }
        let url = interface["url"].as_str().unwrap_or_default();
        // gRPC addresses are host and port.
        if !url.is_empty() && interface["protocolBinding"] != "GRPC" && url::Url::parse(url).is_err() {
            problems.push(format!("{url} is not absolute"));
        }
    }
    no_problems(&problems, &agent.card_reply.sent)
}

async fn versions(agent: &TestedAgent) -> CheckResult {
    let interfaces = agent.card["supportedInterfaces"].as_array().into_iter().flatten();
    let versions = interfaces.filter_map(|interface| interface["protocolVersion"].as_str());
    let long: Vec<String> = versions.filter(|version| version.split('.').count() != 2).map(str::to_owned).collect();
    no_problems(&long, &agent.card_reply.sent)
}

async fn v03_agrees(agent: &TestedAgent) -> CheckResult {
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
    let ids = |card: &Value| -> Vec<Value> {
        card["skills"].as_array().into_iter().flatten().map(|skill| skill["id"].clone()).collect()
    };
    if ids(old) != ids(new) {
        problems.push(format!("the skills are {} and {}", short(&ids(new).into()), short(&ids(old).into())));
    }
    let mut places = new["supportedInterfaces"].as_array().into_iter().flatten();
    let is_listed = places.any(|place| {
        place["url"] == old["url"] && place["protocolVersion"].as_str().is_some_and(|found| found.starts_with("0.3"))
    });
    if old["url"].is_string() && !is_listed {
        problems.push(format!("supportedInterfaces has no 0.3 at {}", short(&old["url"])));
    }
    no_problems(&problems, &reply.sent)
}

/// A refusal for lack of credentials is an answer too.
async fn reachable(interface: &TestedInterface) -> CheckResult {
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

async fn skills(agent: &TestedAgent) -> CheckResult {
    let mut problems = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for skill in agent.card["skills"].as_array().into_iter().flatten() {
        for member in ["id", "name", "description"] {
            if skill[member].as_str().is_none_or(str::is_empty) {
                problems.push(format!("{} has no {member}", short(skill)));
            }
        }
        if !skill["tags"].is_array() {
            problems.push(format!("{} has no tags", short(skill)));
        }
        if let Some(id) = skill["id"].as_str()
            && !seen.insert(id)
        {
            problems.push(format!("the id {id:?} occurs more than once"));
        }
    }
    no_problems(&problems, &agent.card_reply.sent)
}

async fn caching(agent: &TestedAgent) -> CheckResult {
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
    no_problems(&problems, &agent.card_reply.sent)
}

async fn unchanged(agent: &TestedAgent) -> CheckResult {
    let tag = agent.card_reply.headers.get(ETAG).or_skip("the card has no ETag")?;
    let mut test_request = TestRequest::get(&agent.card_url, Some("1.0"));
    test_request.headers.push((IF_NONE_MATCH, tag.clone()));
    let reply = agent.fetch(&test_request).await;
    if reply.status == 304 { Ok(()) } else { reply.failure() }
}

/// Whether an interface on the card has a version with this prefix.
pub(crate) fn speaks(card: &Value, version: &str) -> bool {
    let interfaces = card["supportedInterfaces"].as_array().into_iter().flatten();
    let mut versions = interfaces.map(|interface| &interface["protocolVersion"]).chain([&card["protocolVersion"]]);
    versions.any(|found| found.as_str().is_some_and(|found| found.starts_with(version)))
}
