//! `switchboard skills`: what an agent is good at, and what one could say to it.

use std::process::ExitCode;

use serde_json::json;
use switchboard_a2a::card::AgentSkill;

use crate::cli::CallFlags;
use crate::commands::calling::{Call, agent_and_words, clean, run as run_async};
use crate::printer::Printer;

/// Lists the skills.
#[must_use]
pub fn run(words: Vec<String>, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, []) = agent_and_words(words, flags, [])?;
        let call = Call::open(&agent, flags).await?;
        let found = call.ask(call.client.card(&call.context)).await?;
        let skills = &found.card.skills;
        if printer.is_json() {
            printer.json(&json!({ "skills": skills.iter().map(as_json).collect::<Vec<_>>() }));
        } else {
            print(skills, "", printer);
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// One line a skill, and one for things to say to it.
pub(super) fn print(skills: &[AgentSkill], indent: &str, printer: Printer) {
    if skills.is_empty() {
        printer.line(format!("{indent}none"));
    }
    for skill in skills {
        let title = if skill.name.is_empty() || skill.name == skill.id { "" } else { &skill.name };
        let words = [title, &skill.description].map(clean::line);
        let words: Vec<String> = words.into_iter().filter(|words| !words.is_empty()).collect();
        printer.line(format!("{indent}{}: {}", clean::line(&skill.id), words.join(" - ")).trim_end());
        for example in &skill.examples {
            printer.line(format!("{indent}  say: {}", clean::line(example)));
        }
    }
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
