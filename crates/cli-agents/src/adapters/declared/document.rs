//! A declaration, read from YAML.

use serde_json::Value;

use crate::adapters::adapter::{About, Binary, Capabilities};
use crate::adapters::declared::arguments::{Arguments, RUNS_PROMPT};
use crate::adapters::declared::error::DeclaredError;
use crate::adapters::declared::exit_rules::ExitRule;
use crate::adapters::declared::mode::Modes;
use crate::adapters::declared::placeholder::Placeholder;
use crate::adapters::declared::rule::{EventTemplate, Rule};
use crate::adapters::declared::section::{self, Section};
use crate::adapters::declared::{Declared, Turn};
use crate::adapters::field_error::FieldError;
use crate::adapters::generic::exit_result::Success;
use crate::adapters::generic::{ApprovalPattern, Output};
use crate::adapters::interpreter::PromptPosition;

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
    if !section.has("start") && section.is_mapping() {
        section.refuse("start", "is missing", r#"write how it is started, such as { args: ["--message={prompt}"] }"#);
    }
    let start = section.section("start", |section| turn(section, &binary.names)).unwrap_or_default();
    let resume = section.section("resume", |section| turn(section, &binary.names));
    // It has no default: a file that was cut off must not be taken for one about a program that speaks text.
    if !section.has("output") && section.is_mapping() {
        section.refuse("output", "is missing", "write text or jsonl");
    }
    let output = section.choice("output", &[("text", Output::Text), ("jsonl", Output::Jsonl)]).unwrap_or_default();
    let approval = approval(section, output);
    let rules = rules(section, output);
    let success = success(section, output, &rules);
    let exits = section.each("exits", ExitRule::read).unwrap_or_default();
    let modes = Modes::read(section, approval.is_some());
    check_resume(section, &start, resume.as_ref(), &rules);
    let capabilities = Capabilities {
        approvals: approval.is_some(),
        resume: resume.is_some(),
        chosen_session: start.arguments.uses(Placeholder::Session) > 0,
    };
    let about = About { name, title, binary, capabilities, variables };
    Declared { about, env, start, resume, output, approval, rules: rules.into(), success, exits: exits.into(), modes }
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
    if !section.has("binary") && section.is_mapping() {
        section.refuse("binary", "is missing", RIGHT);
    }
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
    section.section("binary", read).unwrap_or_else(|| Binary {
        names: Vec::new(),
        version_args: Vec::new(),
        tested: Vec::new(),
        install: String::new(),
        login: String::new(),
        login_signs: Vec::new(),
        refuses_root: false,
    })
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
    if prompt_is_input && programs.iter().any(|program| arguments.interpreter(program).runs(PromptPosition::Stdin, ""))
    {
        section.refuse("input", RUNS_PROMPT, "name the script that reads the prompt in args");
    }
    Turn { arguments, prompt_is_input }
}

fn approval(section: &mut Section<'_, '_>, output: Output) -> Option<ApprovalPattern> {
    if section.has("approvals") && output == Output::Jsonl {
        section.refuse("approvals", "is about text, and the output is jsonl", "remove it, or set output: text");
    }
    let read = |section: &mut Section<'_, '_>| {
        let pattern = section.needed_text("pattern", r"write a regular expression, such as '\[y/N\]\s*$'");
        let yes = section.text("yes").unwrap_or_else(|| ApprovalPattern::YES.to_owned());
        let no = section.text("no").unwrap_or_else(|| ApprovalPattern::NO.to_owned());
        if pattern.is_empty() {
            return None;
        }
        ApprovalPattern::new(&pattern, &yes, &no).map_err(|error| section.refuse_with(error)).ok()
    };
    section.section("approvals", read).flatten()
}

fn rules(section: &mut Section<'_, '_>, output: Output) -> Vec<Rule> {
    let rules = section.each("rules", Rule::read);
    match (&rules, output) {
        (Some(_), Output::Text) => {
            section.refuse(
                "rules",
                "are about JSON lines, and the output is text",
                "remove them, or set output: jsonl",
            );
        }
        (None, Output::Jsonl) => {
            let right = "write what its lines mean, such as { when: { type: answer }, message: text }";
            section.refuse("rules", "are missing", right);
        }
        _ => {}
    }
    rules.unwrap_or_default()
}

fn success(section: &mut Section<'_, '_>, output: Output, rules: &[Rule]) -> Success {
    let chosen = section.choice("success", &[("result", Success::Result), ("exit", Success::Exit)]);
    let default = if output == Output::Text { Success::Exit } else { Success::Result };
    let success = chosen.unwrap_or(default);
    let told = rules.iter().any(|rule| rule.has_event(|template| matches!(template, EventTemplate::Done { .. })));
    match (output, success) {
        (Output::Text, Success::Result) => {
            section.refuse("success", "is result, and plain text has none", "write exit, or set output: jsonl");
        }
        (Output::Jsonl, Success::Result) if !told && section.has("rules") => {
            let right =
                "add a rule with done for the line that says so, or write success: exit if there is no such line";
            section.refuse("rules", "never tell that a turn went well", right);
        }
        (Output::Jsonl, Success::Exit) if told => {
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
    let names = |template: &EventTemplate| matches!(template, EventTemplate::Init { session: Some(_), .. });
    let named = rules.iter().any(|rule| rule.has_event(names));
    if !named && start.arguments.uses(Placeholder::Session) == 0 {
        let right =
            "use {session} in start.args to choose it, add a rule with init.session that tells it, or remove resume";
        section.refuse("resume", "has no way to learn a conversation's name", right);
    }
}
