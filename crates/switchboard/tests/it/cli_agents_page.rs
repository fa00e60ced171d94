//! The page about command-line agents shows what can be copied, and what is so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use switchboard_cli_agents::adapters::{
    Acp, Adapter, Approvals, ClaudeCode, Codex, Cursor, Declared, Ending, Event, Gemini, Generic, GenericOptions,
    Opencode, Order, Output, Permissions, Session, Step, Steps,
};
use switchboard_cli_agents::{COMMON_VARIABLES, Classifier, Difficulty};
use switchboard_engine::reason::Reason;

use crate::program::Workspace;

const PAGE: &str = include_str!("../../../../docs/cli-agents.md");
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

/// A part of the page, from its heading to the next one.
fn part(heading: &str) -> &'static str {
    let after = PAGE.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("there is no {heading}"));
    after.split("\n## ").next().unwrap()
}

/// The cells of each row of all tables of a part, heads left out.
fn rows(part: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = part.lines().filter(|line| line.starts_with('|')).collect();
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
        blocks(PAGE, "yaml").into_iter().chain(cli_blocks(README)).partition(|block| is_declaration(block));
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
    for json in blocks(PAGE, "json") {
        serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    }
}

/// The examples of a page that are about programs.
fn cli_blocks(page: &str) -> impl Iterator<Item = String> {
    blocks(page, "yaml").into_iter().filter(|block| block.contains("cli:"))
}

#[test]
fn links_within_the_page_lead_somewhere() {
    let anchor = |heading: &str| heading.to_lowercase().replace(' ', "-").replace(',', "");
    let anchors: Vec<String> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
    let links: Vec<&str> = PAGE.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        assert!(anchors.iter().any(|anchor| anchor == link), "#{link} is none of {anchors:?}");
    }
}

#[test]
fn limits_are_those_in_force() {
    let workspace = Workspace::new().file("agents.yaml", "agents:\n  - { name: coder, cli: claude-code }\n");
    let agent = workspace.good().json()["agents"][0].clone();
    let rows = rows(part("Limits and the queue"));
    assert_eq!(rows.len(), 8);
    for row in rows {
        let (key, default) = (quoted(&row[0])[0], quoted(&row[1])[0]);
        let value = agent.pointer(&format!("/{}", key.replace('.', "/"))).unwrap_or_else(|| panic!("no {key}"));
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(value, default, "{key}");
    }
    let limits = agent["limits"].as_object().unwrap().keys();
    assert!(limits.into_iter().all(|limit| part("Limits and the queue").contains(&format!("`limits.{limit}`"))));
}

#[test]
fn variables_are_those_that_are_let_through() {
    let rows = rows(part("Environment and account"));
    let shown = |label: &str| {
        let row = rows.iter().find(|row| row[0] == label).unwrap_or_else(|| panic!("no row {label}"));
        quoted(&row[1]).into_iter().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    assert_eq!(shown("every one"), COMMON_VARIABLES.map(str::to_owned).into());
    for (label, adapter) in forms() {
        let own: BTreeSet<String> = adapter.about().variables.iter().cloned().collect();
        assert_eq!(shown(label), own, "{label}");
    }
    assert!(shown("`acp`, `generic`").is_empty() && rows.len() == 7, "{rows:?}");
    assert!(Acp::any("acp", "x", Vec::new()).about().variables.is_empty());
}

/// The programs in each of their forms, as the table of variables names them.
fn forms() -> [(&'static str, Box<dyn Adapter>); 7] {
    [
        ("`claude-code`", Box::new(ClaudeCode::new())),
        ("`codex`", Box::new(Codex::new())),
        ("`gemini`", Box::new(Acp::gemini())),
        ("`gemini`", Box::new(Gemini::new())),
        ("`opencode`", Box::new(Acp::opencode())),
        ("`opencode`", Box::new(Opencode::new())),
        ("`cursor`", Box::new(Cursor::new())),
    ]
}

#[test]
fn each_program_says_how_it_is_installed_and_what_was_tested() {
    let programs: [(&str, Box<dyn Adapter>); 5] = [
        ("Claude Code", Box::new(ClaudeCode::new())),
        ("Codex", Box::new(Codex::new())),
        ("Gemini CLI", Box::new(Acp::gemini())),
        ("opencode", Box::new(Acp::opencode())),
        ("Cursor", Box::new(Cursor::new())),
    ];
    for (heading, adapter) in programs {
        let about = adapter.about();
        let rows = rows(part(heading));
        let cell = |label: &str| &rows.iter().find(|row| row[0] == label).unwrap()[1];
        assert_eq!(quoted(cell("install")), [about.binary.install.as_str()], "{heading}");
        for tested in &about.binary.tested {
            assert_eq!(cell("tested with"), &format!("{tested}x"), "{heading}");
        }
        assert!(part(heading).contains(&format!("cli: {}", about.name)), "{heading}");
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
    let rows = rows(part("How a task ends"));
    let shown: BTreeSet<&str> = rows.iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(shown, known.map(Reason::as_str).into());
}

#[test]
fn words_decide_the_profile_as_the_table_says() {
    let usual = Classifier::default();
    let rows = rows(part("Models, efforts and profiles"));
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

/// The scripts of the page are run, and what they write is understood.
#[test]
fn the_scripts_speak_the_protocol() {
    let scripts: Vec<String> = blocks(PAGE, "sh").into_iter().filter(|block| block.starts_with("#!/bin/sh")).collect();
    let [plain, asking] = scripts.as_slice() else { panic!("two scripts: {scripts:?}") };

    let told = play(plain, Approvals::Never, "how many?");
    let answer = "There are 1 files.".to_owned();
    assert!(told.contains(&Step::Event(Event::Text { text: answer.clone() })), "{told:?}");
    assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(answer) })));
    assert!(
        !told.iter().any(|step| matches!(step, Step::Event(Event::Notice { .. }))),
        "not all of it is JSON: {told:?}"
    );

    for (decision, answer) in [("allow", "Fixed."), ("deny", "Left as it was.")] {
        let answered = format!("{{\"decision\":\"{decision}\",\"kind\":\"approval\",\"request\":\"r1\"}}");
        let told = play(asking, Approvals::Events, &format!("{{\"kind\":\"prompt\",\"text\":\"x\"}}\n{answered}"));
        assert!(told.iter().any(|step| matches!(step, Step::Event(Event::ApprovalRequired(_)))), "{told:?}");
        assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(answer.to_owned()) })));
    }
}

/// What a script tells that is given this input.
fn play(script: &str, approvals: Approvals, input: &str) -> Vec<Step> {
    let workspace = Workspace::new().file("x", "");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", script]).current_dir(workspace.path()).stdin(std::process::Stdio::piped());
    let mut child = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{input}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let options = GenericOptions {
        command: vec!["script".to_owned()],
        output: Output::Jsonl,
        approvals,
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
    let (_, mut dialogue) = Generic::new(options).unwrap().start(&order).unwrap();
    let mut steps = Steps::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        dialogue.line(line, &mut steps);
    }
    steps.take()
}
