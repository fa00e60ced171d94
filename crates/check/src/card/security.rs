//! Checks of the security schemes on the card. The addresses in them are read, not called.

use serde_json::Value;

use crate::agent::TestedAgent;
use crate::security::is_loopback;
use crate::verdict::{CheckResult, applies_if, no_problems};
use crate::wire::{entries, short, without_text};

/// The kinds of schemes, as 1.0 and 0.3 call them, and their required members.
const KINDS: [(&str, &str, &[&str]); 5] = [
    ("apiKeySecurityScheme", "apiKey", &["name"]),
    ("httpAuthSecurityScheme", "http", &["scheme"]),
    ("oauth2SecurityScheme", "oauth2", &[]),
    ("openIdConnectSecurityScheme", "openIdConnect", &["openIdConnectUrl"]),
    ("mtlsSecurityScheme", "mutualTLS", &[]),
];

/// The OAuth flows and their required addresses.
const FLOWS: [(&str, &[&str]); 5] = [
    ("authorizationCode", &["authorizationUrl", "tokenUrl"]),
    ("clientCredentials", &["tokenUrl"]),
    ("deviceCode", &["deviceAuthorizationUrl", "tokenUrl"]),
    ("implicit", &["authorizationUrl"]),
    ("password", &["tokenUrl"]),
];

/// The alternatives of the card, each with the schemes it requires.
fn alternatives(card: &Value) -> impl Iterator<Item = &Value> {
    let new = entries(&card["securityRequirements"]).map(|requirement| &requirement["schemes"]);
    new.chain(entries(&card["security"]))
}

/// Whether every caller needs credentials: one alternative without a scheme lets all callers in.
pub(crate) fn is_demanded(card: &Value) -> bool {
    let mut ways = alternatives(card).peekable();
    ways.peek().is_some() && ways.all(|schemes| schemes.as_object().is_some_and(|schemes| !schemes.is_empty()))
}

pub(crate) async fn declared(agent: &TestedAgent) -> CheckResult {
    let schemes = alternatives(&agent.card).filter_map(Value::as_object);
    let mut names: Vec<&String> = schemes.flat_map(|schemes| schemes.keys()).collect();
    applies_if(!names.is_empty(), "the card demands no credentials")?;
    names.retain(|name| agent.card["securitySchemes"].get(*name).is_none());
    let problems = names.iter().map(|name| format!("{name:?} is demanded and not declared"));
    no_problems(problems, &agent.card_reply.sent)
}

/// The schemes of the card, each with its kind and the object that holds its members.
fn declared_schemes(agent: &TestedAgent) -> Vec<(&String, Option<usize>, &Value)> {
    let schemes = agent.card["securitySchemes"].as_object().into_iter().flatten();
    schemes
        .map(|(name, scheme)| {
            let new = KINDS.iter().position(|(new, _, _)| scheme[*new].is_object());
            let old = KINDS.iter().position(|(_, old, _)| scheme["type"] == *old);
            let members = new.map_or(scheme, |kind| &scheme[KINDS[kind].0]);
            (name, new.or(old), members)
        })
        .collect()
}

pub(crate) async fn schemes(agent: &TestedAgent) -> CheckResult {
    let declared = declared_schemes(agent);
    applies_if(!declared.is_empty(), "the card declares no security schemes")?;
    let mut problems = Vec::new();
    for (name, kind, members) in declared {
        let Some(kind) = kind else {
            problems.push(format!("{name:?} is of no known kind: {}", short(members)));
            continue;
        };
        let (_, old, needed) = KINDS[kind];
        problems.extend(without_text(members, needed).map(|member| format!("{name:?} has no {member}")));
        let place = members["location"].as_str().or(members["in"].as_str());
        if old == "apiKey" && !matches!(place, Some("query" | "header" | "cookie")) {
            problems.push(format!("{name:?} says neither query nor header nor cookie"));
        }
        if old == "oauth2" {
            problems.extend(flow_problems(name, &members["flows"]));
        }
    }
    no_problems(problems, &agent.card_reply.sent)
}

fn flow_problems(name: &str, flows: &Value) -> Vec<String> {
    let found: Vec<_> = FLOWS.iter().filter(|(flow, _)| flows[*flow].is_object()).collect();
    let mut problems = Vec::new();
    if found.is_empty() {
        problems.push(format!("{name:?} has no flow that is known: {}", short(flows)));
    }
    for (flow, addresses) in found {
        for address in addresses.iter().filter(|address| {
            let given = flows[*flow][**address].as_str();
            given.is_none_or(|given| url::Url::parse(given).is_err())
        }) {
            problems.push(format!("{name:?} has no {address} for {flow}"));
        }
        if !flows[*flow]["scopes"].is_object() {
            problems.push(format!("{name:?} has no scopes for {flow}"));
        }
    }
    problems
}

pub(crate) async fn https(agent: &TestedAgent) -> CheckResult {
    let mut addresses = Vec::new();
    for (_, _, members) in declared_schemes(agent) {
        addresses.extend(["openIdConnectUrl", "oauth2MetadataUrl"].map(|member| &members[member]));
        for flow in members["flows"].as_object().into_iter().flatten().map(|(_, flow)| flow) {
            addresses.extend(flow.as_object().into_iter().flatten().map(|(_, value)| value));
        }
    }
    let mut addresses: Vec<&str> = addresses.into_iter().filter_map(Value::as_str).collect();
    applies_if(!addresses.is_empty(), "the card has no address that gives out credentials")?;
    addresses.retain(|address| !address.starts_with("https://") && !is_loopback(address));
    let problems = addresses.iter().map(|address| format!("{address} is not encrypted"));
    no_problems(problems, &agent.card_reply.sent)
}
