//! `switchboard skills`: what an agent is good at, and what one could say to it.

use serde_json::json;
use switchboard_a2a::card::AgentSkill;

use crate::commands::calling::{AgentCall, Failure, NoOptions, sanitize};

pub(crate) async fn run(call: AgentCall<'_>, []: [String; 0], _: NoOptions) -> Result<(), Failure> {
    let found = call.ask(call.client.card(&call.context)).await?;
    let (skills, printer) = (&found.card.skills, call.printer);
    match printer.is_json() {
        true => printer.json(&json!({ "skills": skills.iter().map(as_json).collect::<Vec<_>>() })),
        false => lines(skills).iter().for_each(|line| printer.line(line)),
    }
    Ok(())
}

/// One line for each skill, and one for each of its examples.
pub(super) fn lines(skills: &[AgentSkill]) -> Vec<String> {
    let mut lines = Vec::new();
    for skill in skills {
        let title = if skill.name.is_empty() || skill.name == skill.id { "" } else { &skill.name };
        let words = [title, &skill.description].map(sanitize::line);
        let words: Vec<String> = words.into_iter().filter(|words| !words.is_empty()).collect();
        lines.push(format!("{}: {}", sanitize::line(&skill.id), words.join(" - ")).trim_end().to_owned());
        lines.extend(skill.examples.iter().map(|example| format!("  say: {}", sanitize::line(example))));
    }
    if lines.is_empty() {
        lines.push("none".to_owned());
    }
    lines
}

fn as_json(skill: &AgentSkill) -> serde_json::Value {
    json!({
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": skill.tags,
        "examples": skill.examples,
        "inputModes": skill.input_modes,
        "outputModes": skill.output_modes,
    })
}
