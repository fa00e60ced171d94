//! The guide to command-line agents and the pages of the programs: their examples are valid, their tables are current.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use switchboard_cli_agents::adapters::{
    Acp, Adapter, ClaudeCode, Codex, Cursor, Declared, Ending, Event, Gemini, GenericOptions, Opencode, Order, Output,
    Permissions, Session, Step, Steps,
};
use switchboard_cli_agents::{COMMON_VARIABLES, Classifier, Difficulty};
use switchboard_engine::reason::Reason;

use crate::program::Workspace;

const GUIDE: &str = include_str!("../../../../docs/cli-agents.md");
const CLAUDE_CODE: &str = include_str!("../../../../docs/cli-agents/claude-code.md");
const CODEX: &str = include_str!("../../../../docs/cli-agents/codex.md");
const GEMINI: &str = include_str!("../../../../docs/cli-agents/gemini.md");
const OPENCODE: &str = include_str!("../../../../docs/cli-agents/opencode.md");
const CURSOR: &str = include_str!("../../../../docs/cli-agents/cursor.md");
const ACP: &str = include_str!("../../../../docs/cli-agents/acp.md");
const PROGRAMS: &str = include_str!("../../../../docs/cli-agents/programs.md");
const APPROVALS: &str = include_str!("../../../../docs/cli-agents/approvals.md");
const WORKSPACES: &str = include_str!("../../../../docs/cli-agents/workspaces.md");
const PAGES: [&str; 10] = [GUIDE, CLAUDE_CODE, CODEX, GEMINI, OPENCODE, CURSOR, ACP, PROGRAMS, APPROVALS, WORKSPACES];
const README: &str = include_str!("../../../../README.md");

/// The fenced blocks of a language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, usize, Vec<&str>)> = None;
    for line in page.lines() {
        let (inside, indent) = (line.trim_start(), line.len() - line.trim_start().len());
        match (&mut open, inside.strip_prefix("```")) {
            (None, Some(named)) => open = Some((named == language, indent, Vec::new())),
            (Some((_, indent, lines)), None) => lines.push(line.get(*indent..).unwrap_or_default()),
            (Some(_), Some(_)) => {
                let (wanted, _, lines) = open.take().unwrap();
                if wanted {
                    blocks.push(lines.join("\n") + "\n");
                }
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A section of the guide, from its heading to the next one.
fn section(heading: &str) -> &'static str {
    let after = GUIDE.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("there is no {heading}"));
    after.split("\n## ").next().unwrap()
}

/// The cells of each row of all tables of a page or section, heads left out.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let is_rule = |line: &str| line.starts_with("|---");
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !is_rule(line) && !lines.get(at + 1).is_some_and(|next| is_rule(next)) {
            let cells = line.trim_matches('|').replace("\\|", "\u{1}");
            rows.push(cells.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect());
        }
    }
    rows
}

/// What stands in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_declaration(block: &str) -> bool {
    block.lines().any(|line| line.starts_with("name:"))
}

#[test]
fn every_example_can_be_copied() {
    let (declarations, agents): (Vec<String>, Vec<String>) =
        all_blocks("yaml").chain(cli_blocks(README)).partition(|block| is_declaration(block));
    assert!(declarations.len() >= 2 && agents.len() >= 18, "{} and {}", declarations.len(), agents.len());
    let mut workspace = Workspace::new().file("my-repo/x", "").file("repos/main-app/x", "");
    for declaration in &declarations {
        let name = declaration.lines().next().unwrap().trim_start_matches("# ");
        Declared::parse(declaration, name).unwrap_or_else(|error| panic!("{error}"));
        workspace = workspace.file(name, declaration);
    }
    let mut kinds = BTreeSet::new();
    for example in &agents {
        workspace = workspace.file("agents.yaml", example);
        let answer = workspace.good().json();
        for agent in answer["agents"].as_array().unwrap() {
            kinds.insert(
                agent["cli"].as_str().unwrap_or_else(|| panic!("not a command-line agent: {example}")).to_owned(),
            );
        }
        let warnings: Vec<&Value> = answer["warnings"].as_array().unwrap().iter().collect();
        let elsewhere = |warning: &&Value| warning.as_str().unwrap().contains("/srv/");
        assert!(warnings.iter().all(elsewhere), "{example}{warnings:?}");
    }
    let known = ["acp", "claude-code", "codex", "cursor", "gemini", "generic", "opencode"];
    assert_eq!(kinds.iter().collect::<Vec<_>>(), known, "each has an example");
    for json in all_blocks("json") {
        serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    }
}

/// The fenced blocks of a language in all pages.
fn all_blocks(language: &str) -> impl Iterator<Item = String> {
    PAGES.iter().flat_map(move |page| blocks(page, language))
}

/// The examples of a page that are about programs.
fn cli_blocks(page: &str) -> impl Iterator<Item = String> {
    blocks(page, "yaml").into_iter().filter(|block| block.contains("cli:"))
}

#[test]
fn limits_are_those_in_force() {
    let workspace = Workspace::new().file("agents.yaml", "agents:\n  - { name: coder, cli: claude-code }\n");
    let agent = workspace.good().json()["agents"][0].clone();
    let rows = rows(section("Limits"));
    assert_eq!(rows.len(), 8);
    for row in rows {
        let (key, default) = (quoted(&row[0])[0], quoted(&row[1])[0]);
        let value = agent.pointer(&format!("/{}", key.replace('.', "/"))).unwrap_or_else(|| panic!("no {key}"));
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(value, default, "{key}");
    }
    let limits = agent["limits"].as_object().unwrap().keys();
    assert!(limits.into_iter().all(|limit| section("Limits").contains(&format!("`limits.{limit}`"))));
}

#[test]
fn variables_are_those_that_are_let_through() {
    let shown = |text: &str, label: &str| {
        let rows = rows(text);
        let row = rows.iter().find(|row| row[0] == label).unwrap_or_else(|| panic!("no row {label}"));
        quoted(&row[1]).into_iter().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let common = shown(section("Environment and account"), "every one");
    assert_eq!(common, COMMON_VARIABLES.map(str::to_owned).into());
    for (page, adapter) in forms() {
        let about = adapter.about();
        let own: BTreeSet<String> = about.variables.iter().cloned().collect();
        assert_eq!(shown(page, "variables"), own, "{}", about.name);
    }
    assert!(Acp::any("acp", "x", Vec::new()).about().variables.is_empty());
    for page in [ACP, PROGRAMS] {
        let row = rows(page).into_iter().find(|row| row[0] == "variables").unwrap();
        assert!(row[1].starts_with("none but the [common ones]"), "{row:?}");
    }
}

/// The programs in each of their forms, with their pages.
fn forms() -> [(&'static str, Box<dyn Adapter>); 7] {
    [
        (CLAUDE_CODE, Box::new(ClaudeCode)),
        (CODEX, Box::new(Codex)),
        (GEMINI, Box::new(Acp::gemini())),
        (GEMINI, Box::new(Gemini)),
        (OPENCODE, Box::new(Acp::opencode())),
        (OPENCODE, Box::new(Opencode)),
        (CURSOR, Box::new(Cursor)),
    ]
}

#[test]
fn each_program_says_how_it_is_installed_and_what_was_tested() {
    for (page, adapter) in forms() {
        let about = adapter.about();
        let name = about.name.as_str();
        let rows = rows(page);
        let cell = |label: &str| &rows.iter().find(|row| row[0] == label).unwrap()[1];
        assert_eq!(quoted(cell("install")), [about.binary.install.as_str()], "{name}");
        for tested in &about.binary.tested {
            assert_eq!(cell("tested with"), &format!("{tested}x"), "{name}");
        }
        assert!(page.contains(&format!("cli: {name}")), "{name}");
        let row = format!("| `{name}` | [cli-agents/{name}.md](cli-agents/{name}.md) |");
        assert!(GUIDE.contains(&row), "the guide has no row {row}");
    }
}

#[test]
fn reasons_are_those_that_tasks_end_with() {
    let known = [
        Reason::AgentError,
        Reason::NoResult,
        Reason::TimedOut,
        Reason::Idle,
        Reason::TooLarge,
        Reason::InputExpired,
        Reason::Interrupted,
        Reason::RecoveryLimit,
        Reason::CanceledByCaller,
        Reason::Rejected,
    ];
    let rows = rows(section("Troubleshooting"));
    let shown: BTreeSet<&str> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(shown, known.map(Reason::as_str).into());
}

#[test]
fn words_decide_the_profile_as_the_table_says() {
    let usual = Classifier::default();
    let rows = rows(section("Models, efforts and profiles"));
    assert_eq!(rows.len(), 3);
    for row in rows {
        let difficulty = Difficulty::named(quoted(&row[0])[0]).unwrap();
        for word in quoted(&row[1]) {
            assert_eq!(usual.classify(&format!("please {word} this")), difficulty, "{word}");
        }
    }
    assert_eq!(usual.classify(&"x".repeat(1_500)), Difficulty::Mid);
    assert_eq!(usual.classify(&"x".repeat(1_501)), Difficulty::Complex);
}

/// The scripts of the pages are run, and what they write is understood.
#[test]
fn the_scripts_speak_the_protocol() {
    let scripts: Vec<String> = all_blocks("sh").filter(|block| block.starts_with("#!/bin/sh")).collect();
    let [plain, asking] = scripts.as_slice() else { panic!("two scripts: {scripts:?}") };

    let told = play(plain, false, "how many?");
    let answer = "There are 1 files.".to_owned();
    assert!(told.contains(&Step::Event(Event::Text { text: answer.clone() })), "{told:?}");
    assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(answer) })));
    assert!(
        !told.iter().any(|step| matches!(step, Step::Event(Event::Notice { .. }))),
        "not all of it is JSON: {told:?}"
    );

    for (decision, answer) in [("allow", "Fixed."), ("deny", "Left as it was.")] {
        let answered = format!("{{\"decision\":\"{decision}\",\"kind\":\"approval\",\"request\":\"r1\"}}");
        let told = play(asking, true, &format!("{{\"kind\":\"prompt\",\"text\":\"x\"}}\n{answered}"));
        assert!(told.iter().any(|step| matches!(step, Step::Event(Event::ApprovalRequired(_)))), "{told:?}");
        assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(answer.to_owned()) })));
    }
}

/// What a script tells that is given this input.
fn play(script: &str, asks: bool, input: &str) -> Vec<Step> {
    let workspace = Workspace::new().file("x", "");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", script]).current_dir(workspace.path()).stdin(std::process::Stdio::piped());
    let mut child = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{input}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let options = GenericOptions {
        command: vec!["script".to_owned()],
        output: Output::Jsonl { asks },
        ..GenericOptions::default()
    };
    let order = Order {
        prompt: "x".to_owned(),
        session: Session::New(String::new()),
        cwd: PathBuf::from("/"),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        args: Vec::new(),
    };
    let (_, mut dialogue) = Declared::generic(options).unwrap().start(&order).unwrap();
    let mut steps = Steps::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        dialogue.line(line, &mut steps);
    }
    steps.take()
}
