//! `switchboard card`: what an agent says of itself, and what is wrong with that.

use bytes::Bytes;
use switchboard_a2a::card::{AgentCard, SecurityScheme};
use switchboard_client::{FoundCard, Interface};
use switchboard_host::printer::Printer;

use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{AgentCall, Failure, OneLine, api_key_location, sanitize, skills};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CardOptions {
    /// Say what is wrong with the card, and exit with 1 if something is
    #[arg(long)]
    validate: bool,

    /// Show the card for known callers, which may say more
    #[arg(long)]
    extended: bool,

    #[command(flatten)]
    line: OneLine,
}

pub(crate) async fn run(call: AgentCall<'_>, []: [String; 0], options: CardOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let found = call.ask(call.client.card(&call.context)).await?;
    let (card, json) = match options.extended {
        true => extended(&call, &found, printer).await?,
        false => (found.card.clone(), found.json.clone()),
    };
    // What cannot be used is worth knowing here, and no failure of this command.
    let used = call.client.interface(&call.context).await;
    let problems = problems(&card, &json, used.as_ref().err().map(ToString::to_string));
    let is_refused = options.validate && !problems.is_empty();
    match printer.is_json() {
        true if is_refused => {}
        true => raw(&json, &options.line, printer),
        false => {
            let output = TaskPrinter { printer, is_verbose: false };
            print(&card, &found.url, used.ok().as_ref(), output);
            match problems.is_empty() {
                false => output.block("problems", &lines(&problems)),
                true if options.validate => output.field("problems", "none"),
                true => {}
            }
        }
    }
    if is_refused {
        let message = format!("the card is not as it should be: {}", problems.join("; "));
        return Err(Failure::card(message, call.command("conformance", "--only card")));
    }
    Ok(())
}

/// The card for known callers. An agent that does not say that it has one is asked nonetheless: cards are often wrong.
async fn extended(call: &AgentCall<'_>, found: &FoundCard, printer: Printer) -> Result<(AgentCard, Bytes), Failure> {
    if found.card.capabilities.extended_agent_card != Some(true) {
        printer.warning("the agent does not say that it has a card for known callers; asking nonetheless");
    }
    call.ask(call.client.extended_card(&call.context)).await
}

/// The agent's own words, each byte of them.
fn raw(json: &[u8], line: &OneLine, printer: Printer) {
    let value: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(json);
    match value {
        Ok(value) if line.stream => printer.json_line(value),
        _ => printer.raw_json(json),
    }
}

fn print(card: &AgentCard, url: &str, used: Option<&Interface>, output: TaskPrinter) {
    output.field("name", &card.name);
    output.field("description", &card.description);
    output.field("version", &card.version);
    output.field("card", url);
    if let Some(provider) = &card.provider {
        output.field("provider", &format!("{} {}", provider.organization, provider.url));
    }
    if let Some(url) = &card.documentation_url {
        output.field("documentation", url);
    }
    output.field("can", &listed(capabilities(card), "answer, and nothing beyond that"));
    let extensions: Vec<String> = card.capabilities.extensions.iter().map(extension).collect();
    if !extensions.is_empty() {
        output.field("extensions", &extensions.join(", "));
    }
    let schemes: Vec<String> = card.security_schemes.iter().map(|(name, scheme)| way(name, scheme)).collect();
    let security = if card.security_requirements.is_empty() { "not needed" } else { "needed" };
    output.field("credentials", &format!("{security}; ways: {}", listed(schemes, "none")));
    // The signatures are not verified, and the output must not suggest it.
    let signed = if card.signatures.is_empty() { "no" } else { "yes, and not checked" };
    output.field("signed", signed);
    output.field("reads", &listed(card.default_input_modes.clone(), "not said"));
    output.field("writes", &listed(card.default_output_modes.clone(), "not said"));
    if let Some(used) = used {
        output.field("called at", &interface(used.binding.as_str(), used.version.as_str(), &used.url));
    }
    let offered = card.supported_interfaces.iter();
    let offered = offered.map(|offered| interface(&offered.protocol_binding, &offered.protocol_version, &offered.url));
    let offered: Vec<String> = offered.collect();
    output.block("interfaces", if offered.is_empty() { "none".to_owned() } else { lines(&offered) }.as_str());
    output.block("skills", &skills::lines(&card.skills).join("\n"));
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| sanitize::line(text)).collect::<Vec<_>>().join("\n")
}

/// A way to authenticate, and what it takes.
fn way(name: &str, scheme: &SecurityScheme) -> String {
    let kind = match scheme {
        SecurityScheme::ApiKey { location, name, .. } => format!("API key in the {location} {name}"),
        SecurityScheme::Http { scheme, .. } => scheme.clone(),
        SecurityScheme::OAuth2 { .. } => "OAuth 2".to_owned(),
        SecurityScheme::OpenIdConnect { .. } => "OpenID Connect".to_owned(),
        SecurityScheme::MutualTls { .. } => "client certificate".to_owned(),
        SecurityScheme::Unknown(_) => "unknown".to_owned(),
    };
    format!("{name} ({kind})")
}

fn interface(binding: &str, version: &str, url: &str) -> String {
    format!("{binding} {version} {url}")
}

fn extension(extension: &switchboard_a2a::card::AgentExtension) -> String {
    let required = if extension.required { " (required)" } else { "" };
    format!("{}{required}", extension.uri)
}

fn capabilities(card: &AgentCard) -> Vec<String> {
    let capabilities = &card.capabilities;
    let known = [
        (capabilities.streaming, "stream"),
        (capabilities.push_notifications, "call webhooks"),
        (capabilities.extended_agent_card, "show an extended card"),
    ];
    known.into_iter().filter(|(is_there, _)| *is_there == Some(true)).map(|(_, name)| name.to_owned()).collect()
}

fn listed(items: Vec<String>, none: &str) -> String {
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}

/// Problems for callers, and violations of the specification.
fn problems(card: &AgentCard, json: &[u8], unusable: Option<String>) -> Vec<String> {
    let mut problems: Vec<String> = unusable.into_iter().collect();
    let fields: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
    let is_missing = |field: &str| match fields.get(field) {
        None | Some(serde_json::Value::Null) => true,
        Some(value) => value.as_str() == Some(""),
    };
    for field in ["name", "description", "version", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"]
    {
        if is_missing(field) {
            problems.push(format!("the card has no {field}, which the specification demands"));
        }
    }
    if is_missing("supportedInterfaces") && is_missing("url") {
        problems.push(
            "the card has neither supportedInterfaces (1.0) nor url (0.3), so that no client can call it".to_owned(),
        );
    }
    if card.skills.is_empty() && !is_missing("skills") {
        problems.push("the card lists no skills, so that no caller can tell what the agent is good at".to_owned());
    }
    let mut seen = std::collections::BTreeSet::new();
    for skill in card.skills.iter().filter(|skill| !seen.insert(&skill.id)) {
        problems.push(format!("the skill id {:?} occurs more than once", skill.id));
    }
    for skill in &card.skills {
        for (field, value) in [("id", &skill.id), ("name", &skill.name), ("description", &skill.description)] {
            if value.is_empty() {
                problems.push(format!("the skill {:?} has no {field}, which the specification demands", skill.id));
            }
        }
    }
    for (_, scheme) in &card.security_schemes {
        if let SecurityScheme::ApiKey { location, name, .. } = scheme {
            problems.extend(api_key_location::problem(location, name));
        }
    }
    let known = |name: &String| card.security_schemes.iter().any(|(known, _)| known == name);
    for (name, _) in card.security_requirements.iter().flat_map(|wanted| &wanted.0).filter(|(name, _)| !known(name)) {
        problems.push(format!("the card wants credentials of the kind {name:?} and does not say what that is"));
    }
    problems
}
