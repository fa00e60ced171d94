//! Profiles: a hard task may be worth another program or model than a routine one.

use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;
use switchboard_host::config::section::Section;

use crate::config::cli_agent::arguments::Arguments;
use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::{CliAgent, refuse_stranger, refuse_tilde};
use crate::config::path_text;

/// What tasks are done with, by how hard they are.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = also_in_capitals)]
pub struct Profiles {
    /// For tasks that need thought.
    pub complex: Profile,
    /// For tasks in between.
    pub mid: Profile,
    /// For tasks that need little thought.
    pub routine: Profile,
}

/// What differs from the agent itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Profile {
    /// Program; without it, the agent's.
    ///
    /// Of another program than the agent's, the agent's `program`, `args`, `model`, `models`, `effort` and `efforts` say
    /// nothing.
    pub cli: Option<Cli>,
    /// Path or name of the program, instead of the agent's `program`.
    #[serde(serialize_with = "path_text::option")]
    pub program: Option<PathBuf>,
    /// Arguments to add, after the agent's `args`.
    pub args: Arguments,
    /// Model, instead of the agent's.
    pub model: Option<String>,
    /// Models that a request may choose, instead of the agent's.
    pub models: Option<Vec<String>>,
    /// Effort, instead of the agent's.
    pub effort: Option<String>,
    /// Efforts that a request may choose, instead of the agent's.
    pub efforts: Option<Vec<String>>,
    /// Words in a request by which it is taken for such a task, instead of the usual ones; for `complex` and `routine`.
    ///
    /// They are looked for anywhere in the text and in any case; a space counts. What has words of neither is done with
    /// `mid`; what has words of both, or is longer than 1500 characters, with `complex`.
    pub keywords: Option<Vec<String>>,
}

/// The names of the profiles, in the two spellings that are taken.
const NAMES: [(&str, &str); 3] = [("complex", "COMPLEX"), ("mid", "MID"), ("routine", "ROUTINE")];

impl Profiles {
    pub(super) fn all(&self) -> [&Profile; 3] {
        [&self.complex, &self.mid, &self.routine]
    }

    pub(super) fn all_mut(&mut self) -> [&mut Profile; 3] {
        [&mut self.complex, &mut self.mid, &mut self.routine]
    }

    /// Reads all three, if there are any; nothing when one is missing, which is then reported.
    pub(super) fn read(section: &mut Section<'_, '_>, agent: &CliAgent) -> Option<Self> {
        if !section.is_set("profiles") {
            section.mark_known("profiles");
            return None;
        }
        let (mut read, mut missing) = (Vec::new(), Vec::new());
        section.section("profiles", |section| {
            for (small, capital) in NAMES {
                if section.is_set(small) && section.is_set(capital) {
                    section.mark_known(capital);
                    section.refuse(capital, format!("{small} is the same profile"), "keep one of the two");
                }
                let key = if section.is_set(capital) && !section.is_set(small) { capital } else { small };
                if !section.is_set(key) {
                    missing.push(key);
                }
                let mut profile = Profile::default();
                section.section(key, |section| profile.read(section, agent, small));
                read.push(profile);
            }
            refuse_same_keyword(section, &read);
            if !missing.is_empty() {
                let right = "write complex, mid and routine; one that is {} is like the agent itself";
                section.refuse_all(format!("has no {}", missing.join(" and no ")), right);
            }
        });
        let [complex, mid, routine] = <[Profile; 3]>::try_from(read).ok()?;
        missing.is_empty().then_some(Self { complex, mid, routine })
    }
}

impl Profile {
    fn read(&mut self, section: &mut Section<'_, '_>, agent: &CliAgent, name: &str) {
        section.read("cli", &mut self.cli);
        section.read("program", &mut self.program);
        refuse_tilde(section, "program", &self.program);
        section.read("args", &mut self.args);
        section.read("model", &mut self.model);
        self.models = list(section, "models");
        section.read("effort", &mut self.effort);
        self.efforts = list(section, "efforts");
        self.keywords = list(section, "keywords");
        if name == "mid" && self.keywords.is_some() {
            let right = "give complex and routine their words; what has none of either is done with mid";
            section.refuse("keywords", "mid is for what has no words of the others", right);
        }
        let own = self.cli.filter(|cli| *cli != agent.cli);
        if let Some(cli) = own.filter(|cli| !cli.is_known()) {
            let right = format!("write cli: {cli} for the agent itself, or a program that is known by its name");
            section.refuse("cli", format!("a profile cannot say the command that {cli} needs"), right);
        }
        if own.is_none() && agent.command.is_some() && self.program.is_some() {
            section.refuse("program", "the agent's command names the program already", "put the difference into args");
        }
        if own.is_none() && agent.takes_only_prompt() {
            for key in ["model", "models", "effort", "efforts"] {
                if section.is_set(key) {
                    section.refuse(key, "a generic command is told nothing but the prompt", "put it into args");
                }
            }
        }
        self.refuse_strangers(section, agent);
    }

    /// Refuses a list of its own without what is used where a request chooses nothing.
    fn refuse_strangers(&self, section: &mut Section<'_, '_>, agent: &CliAgent) {
        let base = Some(agent).filter(|agent| self.cli.is_none_or(|cli| cli == agent.cli));
        let model = self.model.as_deref().or_else(|| base?.model.as_deref());
        let effort = self.effort.as_deref().or_else(|| base?.effort.as_deref());
        for (key, value, list_key, list) in
            [("model", model, "models", &self.models), ("effort", effort, "efforts", &self.efforts)]
        {
            let Some(list) = list else { continue };
            // Where the value is the agent's, the list is what is wrong.
            let at = if section.is_set(key) { key } else { list_key };
            refuse_stranger(section, at, value, list_key, list);
        }
    }
}

/// Refuses a keyword that two profiles have: one of them would never be chosen by it.
fn refuse_same_keyword(section: &mut Section<'_, '_>, profiles: &[Profile]) {
    let [complex, _, routine] = profiles else { return };
    let lower = |profile: &Profile| -> Vec<String> {
        profile.keywords.iter().flatten().map(|keyword| keyword.to_lowercase()).collect()
    };
    let complex = lower(complex);
    if let Some(same) = lower(routine).into_iter().find(|keyword| complex.contains(keyword)) {
        let wrong = format!("\"{same}\" is a keyword of complex and of routine");
        section.refuse_all(wrong, "keep it in one of the two");
    }
}

/// A list that may be absent, which is not the same as empty.
fn list(section: &mut Section<'_, '_>, key: &'static str) -> Option<Vec<String>> {
    let mut list = Vec::new();
    section.read(key, &mut list);
    section.is_set(key).then_some(list)
}

/// The same keys in capitals, as other programs name these profiles.
fn also_in_capitals(schema: &mut Schema) {
    let Some(one) = schema.pointer("/properties/mid/$ref").cloned() else { return };
    schema.remove("required");
    schema.insert("minProperties".to_owned(), json!(3));
    schema.insert("patternProperties".to_owned(), json!({ "^(COMPLEX|MID|ROUTINE)$": { "$ref": one } }));
}
