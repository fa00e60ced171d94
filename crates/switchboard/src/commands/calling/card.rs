//! `switchboard card`: what an agent says of itself, and what is wrong with that.

use std::process::ExitCode;

use switchboard_a2a::card::AgentCard;
use switchboard_client::Interface;

use crate::cli::CallFlags;
use crate::commands::calling::{Call, agent_and_words, clean, run as run_async, skills};
use crate::printer::Printer;

/// Which card.
#[derive(Debug, Clone, clap::Args)]
pub struct Wishes {
    /// Show the card for known callers, which may say more
    #[arg(long)]
    extended: bool,
}

/// Shows the card.
#[must_use]
pub fn run(words: Vec<String>, wishes: &Wishes, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, []) = agent_and_words(words, flags, [])?;
        let call = Call::open(&agent, flags).await?;
        let found = call.ask(call.client.card(&call.context)).await?;
        let (card, json) = match wishes.extended {
            true => call.ask(call.client.extended_card(&call.context)).await?,
            false => (found.card.clone(), found.json.clone()),
        };
        if printer.is_json() {
            printer.raw(&json);
            return Ok(ExitCode::SUCCESS);
        }
        // What cannot be used is worth knowing here, and no failure of this command.
        let used = call.client.interface(&call.context).await;
        let problems = problems(&card, used.as_ref().err().map(ToString::to_string));
        print(&card, &found.url, used.ok().as_ref(), &problems, printer);
        Ok(ExitCode::SUCCESS)
    })
}

fn print(card: &AgentCard, url: &str, used: Option<&Interface>, problems: &[String], printer: Printer) {
    let mut fields = vec![
        ("name", card.name.clone()),
        ("description", card.description.clone()),
        ("version", card.version.clone()),
        ("card", url.to_owned()),
    ];
    if let Some(provider) = &card.provider {
        fields.push(("provider", format!("{} {}", provider.organization, provider.url)));
    }
    fields.extend(card.documentation_url.clone().map(|url| ("documentation", url)));
    fields.push(("can", listed(capabilities(card), "answer, and nothing beyond that")));
    let extensions: Vec<String> = card.capabilities.extensions.iter().map(extension).collect();
    if !extensions.is_empty() {
        fields.push(("extensions", extensions.join(", ")));
    }
    let schemes: Vec<String> = card.security_schemes.iter().map(|(name, _)| name.clone()).collect();
    let security = if card.security_requirements.is_empty() { "not needed" } else { "needed" };
    fields.push(("credentials", format!("{security}; ways: {}", listed(schemes, "none"))));
    fields.push(("reads", listed(card.default_input_modes.clone(), "not said")));
    fields.push(("writes", listed(card.default_output_modes.clone(), "not said")));
    fields.extend(used.map(|used| ("called at", interface(used.binding.as_str(), used.version.as_str(), &used.url))));
    for (label, value) in fields {
        printer.line(format!("{label}: {}", clean::line(&value)));
    }
    printer.line("");
    printer.line("interfaces:");
    for offered in &card.supported_interfaces {
        let shown = interface(&offered.protocol_binding, &offered.protocol_version, &offered.url);
        printer.line(format!("  {}", clean::line(&shown)));
    }
    printer.line("");
    printer.line("skills:");
    skills::print(&card.skills, "  ", printer);
    if !problems.is_empty() {
        printer.line("");
        printer.line("problems:");
        for problem in problems {
            printer.line(format!("  {}", clean::line(problem)));
        }
    }
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

/// What anybody would stumble over who wants to call it.
fn problems(card: &AgentCard, unusable: Option<String>) -> Vec<String> {
    let mut problems: Vec<String> = unusable.into_iter().collect();
    let missing = [("name", &card.name), ("description", &card.description), ("version", &card.version)];
    for (field, _) in missing.into_iter().filter(|(_, value)| value.is_empty()) {
        problems.push(format!("the card has no {field}, which the specification demands"));
    }
    if card.skills.is_empty() {
        problems.push("the card lists no skills, so that nobody can tell what the agent is good at".to_owned());
    }
    let mut seen = std::collections::BTreeSet::new();
    for skill in card.skills.iter().filter(|skill| !seen.insert(&skill.id)) {
        problems.push(format!("the skill id {:?} occurs more than once", skill.id));
    }
    problems
}
