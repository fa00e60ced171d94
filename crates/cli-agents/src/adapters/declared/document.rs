//! A declaration, read from YAML.

use serde_json::Value;

use crate::adapters::adapter::{About, Binary, Capabilities};
use crate::adapters::declared::approval_pattern::ApprovalPattern;
use crate::adapters::declared::arguments::Arguments;
use crate::adapters::declared::error::DeclaredError;
use crate::adapters::declared::mode::Modes;
use crate::adapters::declared::placeholder::Placeholder;
use crate::adapters::declared::rule::{EventTemplate, Rule};
use crate::adapters::declared::run_state::{ExitRule, Success};
use crate::adapters::declared::section::{self, Section};
use crate::adapters::declared::{Declared, Output, Turn};
use crate::adapters::field_error::FieldError;

/// Reads a declaration. `file` is what errors call it.
pub(crate) fn parse(text: &str, file: &str) -> Result<Declared, DeclaredError> {
    // `yes` and `n` are strings here, not booleans.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let document: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let right = "check the indentation, the quotes and the brackets there";
        let problem = FieldError::new("", format!("this is not YAML that can be read ({reason})"), right);
        DeclaredError { file: file.to_owned(), problems: vec![problem] }
    })?;
    let mut problems = Vec::new();
    let declared = section::read(&mut problems, String::new(), &document, declared);
    if problems.is_empty() { Ok(declared) } else { Err(DeclaredError { file: file.to_owned(), problems }) }
}

fn declared(section: &mut Section<'_, '_>) -> Declared {
    let name = name(section);
    let title = section.text("title").unwrap_or_else(|| name.clone());
    let binary = binary(section, &title);
    let variables = section.variable_names("variables");
    let env = section.variables("env");
    section.require("start", r#"write how it is started, such as { args: ["--message={prompt}"] }"#);
    let start = section.section("start", |section| turn(section, &binary.names)).unwrap_or_default();
    let resume = section.section("resume", |section| turn(section, &binary.names));
    // It has no default: a file that was cut off must not be taken for one about a program that speaks text.
    section.require("output", "write text or jsonl");
    let is_text = section.choice("output", &[("text", true), ("jsonl", false)]).unwrap_or(true);
    let output = if is_text { text_output(section) } else { jsonl_output(section) };
    let rules = rules(section, is_text);
    let success = success(section, is_text, &rules);
    let exits = section.each("exits", ExitRule::read).unwrap_or_default();
    let modes = Modes::read(section, output.asks());
    check_resume(section, &start, resume.as_ref(), &rules);
    let capabilities = Capabilities {
        approvals: output.asks(),
        resume: resume.is_some(),
        chosen_session: start.arguments.uses(Placeholder::Session) > 0,
    };
    let about = About { name, title, binary, capabilities, variables };
    Declared { about, env, start, resume, output, rules: rules.into(), success, exits: exits.into(), modes }
}

fn name(section: &mut Section<'_, '_>) -> String {
    const RIGHT: &str = "write what cli: calls it, in lowercase letters, digits and dashes, such as aider";
    let name = section.needed_text("name", RIGHT);
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if !name.is_empty() && (!name.chars().all(fits) || name.starts_with('-') || name.len() > 64) {
        section.refuse("name", format!("\"{}\" cannot be a name", crate::adapters::cut(&name, 100)), RIGHT);
    }
    name
}

fn binary(section: &mut Section<'_, '_>, title: &str) -> Binary {
    const RIGHT: &str = "write the names of the program, such as { names: [aider] }";
    section.require("binary", RIGHT);
    let install = format!("install {title} and put it on the path");
    let login = format!("log in as {title} asks you to");
    let read = |section: &mut Section<'_, '_>| {
        let names = section.texts("names").unwrap_or_default();
        if section.is_mapping() && (names.is_empty() || names.iter().any(String::is_empty)) {
            section.refuse("names", "names no program", RIGHT);
        }
        Binary {
            names,
            version_args: section.texts("version").unwrap_or_else(|| vec!["--version".to_owned()]),
            tested: section.texts("tested").unwrap_or_default(),
            install: section.text("install").unwrap_or(install),
            login: section.text("login").unwrap_or(login),
            login_signs: Vec::new(),
            refuses_root: section.flag("refusesRoot").unwrap_or_default(),
        }
    };
    section.section("binary", read).unwrap_or_default()
}

fn turn(section: &mut Section<'_, '_>, programs: &[String]) -> Turn {
    let arguments = Arguments::read(section, programs);
    let prompt_is_input = section.choice("input", &[("none", false), ("prompt", true)]).unwrap_or_default();
    let right = r#"write {prompt} in one argument, or leave it out and set input: prompt"#;
    match arguments.uses(Placeholder::Prompt) + usize::from(prompt_is_input) {
        1 => {}
        0 if section.has("args") => section.refuse("args", "do not hold the prompt", right),
        0 => {}
        _ => section.refuse("args", "would give the prompt more than once", right),
    }
    Turn { arguments, prompt_is_input }
}

fn text_output(section: &mut Section<'_, '_>) -> Output {
    let read = |section: &mut Section<'_, '_>| {
        let pattern = section.needed_text("pattern", r"write a regular expression, such as '\[y/N\]\s*$'");
        let yes = section.text("yes").unwrap_or_else(|| ApprovalPattern::YES.to_owned());
        let no = section.text("no").unwrap_or_else(|| ApprovalPattern::NO.to_owned());
        if pattern.is_empty() {
            return None;
        }
        ApprovalPattern::new(&pattern, &yes, &no).map_err(|error| section.refuse_with(error)).ok()
    };
    Output::Text { questions: section.section("approvals", read).flatten() }
}

fn jsonl_output(section: &mut Section<'_, '_>) -> Output {
    let has_pattern = section.value("approvals").is_some_and(|approvals| approvals.get("pattern").is_some());
    if has_pattern {
        let right = "write { events: true }, remove it, or set output: text";
        section.refuse("approvals", "is about text, and the output is jsonl", right);
        return Output::Jsonl { asks: false };
    }
    Output::Jsonl { asks: section.section("approvals", |approvals| approvals.flag("events")).flatten() == Some(true) }
}

fn rules(section: &mut Section<'_, '_>, is_text: bool) -> Vec<Rule> {
    let rules = section.each("rules", Rule::read);
    match (&rules, is_text) {
        (Some(_), true) => {
            section.refuse(
                "rules",
                "are about JSON lines, and the output is text",
                "remove them, or set output: jsonl",
            );
        }
        (None, false) => {
            let right = "write what its lines mean, such as { when: { type: answer }, message: text }";
            section.refuse("rules", "are missing", right);
        }
        _ => {}
    }
    rules.unwrap_or_default()
}

fn success(section: &mut Section<'_, '_>, is_text: bool, rules: &[Rule]) -> Success {
    let chosen = section.choice("success", &[("result", Success::Result), ("exit", Success::Exit)]);
    let default = if is_text { Success::Exit } else { Success::Result };
    let success = chosen.unwrap_or(default);
    let told = rules.iter().any(|rule| rule.has_event(|template| matches!(template, EventTemplate::Done(_))));
    match (is_text, success) {
        (true, Success::Result) => {
            section.refuse("success", "is result, and plain text has none", "write exit, or set output: jsonl");
        }
        (false, Success::Result) if !told && section.has("rules") => {
            let right =
                "add a rule with done for the line that says so, or write success: exit if there is no such line";
            section.refuse("rules", "never tell that a turn went well", right);
        }
        (false, Success::Exit) if told => {
            section.refuse("success", "is exit, and a rule has done", "remove one of them");
        }
        _ => {}
    }
    success
}

/// A conversation can be taken up again only by its name.
fn check_resume(section: &mut Section<'_, '_>, start: &Turn, resume: Option<&Turn>, rules: &[Rule]) {
    let Some(resume) = resume else { return };
    if resume.arguments.uses(Placeholder::Session) == 0 {
        let right = r#"write where its name goes, such as ["--resume={session}"]"#;
        section.refuse("resume.args", "do not say which conversation", right);
    }
    let names = |template: &EventTemplate| matches!(template, EventTemplate::Init(fields) if fields.has("session"));
    let named = rules.iter().any(|rule| rule.has_event(names));
    if !named && start.arguments.uses(Placeholder::Session) == 0 {
        let right =
            "use {session} in start.args to choose it, add a rule with init.session that tells it, or remove resume";
        section.refuse("resume", "has no way to learn a conversation's name", right);
    }
}
