//! Command-line agents in `agents.yaml`: what is read, and how they are shown.

use std::path::Path;

use serde_json::json;
use switchboard_cli_agents::{Worker, Workers};
use switchboard_fleet::config::FleetConfig;
use switchboard_fleet::config::agents::Kind;
use switchboard_fleet::config::cli_agent::CliAgent;
use switchboard_fleet::config::cli_agent::cli::Cli;
use switchboard_fleet::config::cli_agent::variable_name::VariableName;
use switchboard_fleet::config::remote_agent::RemoteUrl;
use switchboard_fleet::programs;
use switchboard_host::config::Overrides;
use switchboard_host::config::value::Scalar;

use crate::program::Workspace;
use crate::server::Server;

pub(crate) fn agents(content: &str) -> Workspace {
    Workspace::new().file("agents.yaml", content)
}

/// The one agent of a workspace, as the server gets it.
fn loaded(workspace: &Workspace) -> CliAgent {
    let loaded = FleetConfig::load(workspace.path(), &Overrides::default()).unwrap();
    let [agent] = loaded.agents.as_slice() else { panic!("not one agent: {:?}", loaded.agents) };
    let Kind::Cli(agent) = &agent.kind else { panic!("not a command-line agent: {agent:?}") };
    CliAgent::clone(agent)
}

#[test]
fn what_is_not_said_has_its_default_and_every_agents_keys_are_taken() {
    let content = "agents:
  - name: coder
    cli: claude-code
    description: Writes code
    v03: { blocking: return }
    dedupeMessageId: true
    skills: [{ name: fix, description: Fixes bugs }]
";
    let workspace = agents(content);
    let answer = workspace.good().json();
    let agent = &answer["agents"][0];
    assert_eq!(agent["cwd"], json!(workspace.path().canonicalize().unwrap()));
    let defaults = json!({
        "cli": "claude-code", "program": null, "args": [], "command": null, "adapter": null,
        "input": "stdin", "separator": "dashes", "output": "text", "approval": null,
        "repos": [], "worktree": "off", "repoLock": true, "env": null, "user": null,
        "permissions": { "default": "ask", "allow": [], "deny": [], "expiry": "1h" },
        "timeout": "30m", "idle": "5m", "maxParallel": 2,
        "limits": { "line": "16MiB", "stderr": "64KiB", "events": 100_000, "output": "256MiB" },
        "model": null, "models": [], "effort": null, "efforts": [], "profiles": null, "context": false,
        "name": "coder", "description": "Writes code", "dedupeMessageId": true,
        "v03": { "blocking": "return", "closeOnInterrupt": true, "restFiles": "auto" },
        "skills": [{ "name": "fix", "description": "Fixes bugs", "tags": [] }],
    });
    for (key, value) in defaults.as_object().unwrap() {
        assert_eq!(&agent[key], value, "{key}");
    }
    assert_eq!((&answer["demo"], &answer["warnings"]), (&json!(false), &json!([])));
}

#[test]
fn a_skill_takes_what_it_does_not_say_from_its_agent() {
    let content = "agents:
  - name: coder
    cli: claude-code
    permissions: { allow: [Read], deny: [WebFetch], expiry: 5m }
    skills:
      - { name: fix, description: Fixes bugs }
      - { name: review, description: Reads, permissions: { default: deny, allow: [Read, 'Bash(git diff *)'] } }
";
    let workspace = agents(content);
    let shown = &workspace.good().json()["agents"][0]["skills"];
    let own = json!({ "default": "deny", "allow": ["Read", "Bash(git diff *)"], "deny": null });
    assert_eq!((shown[0].get("permissions"), &shown[1]["permissions"]), (None, &own));
    let agent = loaded(&workspace);
    let [(name, review)] = <[_; 1]>::try_from(agent.skill_permissions.into_iter().collect::<Vec<_>>()).unwrap();
    let rules = review.rules();
    assert_eq!((name.as_str(), review.expiry), ("review", agent.permissions.expiry));
    assert_eq!((rules.allow, rules.deny), (vec!["Read".to_owned()], vec!["WebFetch".to_owned()]));
    assert_eq!((&*rules.allow_commands[0].tool, &*rules.allow_commands[0].pattern), ("Bash", "git diff *"));
}

#[test]
fn relative_paths_start_at_the_workspace_folder_and_names_stay_names() {
    let content = "agents:
  - name: coder
    cli: codex
    program: ./bin/codex
    cwd: my-repo
    repos: [../others, /srv/repos]
    profiles:
      complex: { program: bin/big }
      mid: { program: codex-nightly }
      routine: { cli: gemini, program: /opt/gemini }
";
    let workspace = agents("").file("fleet/agents.d/a.yaml", content).file("fleet/my-repo/x", "");
    let run = workspace.run(&["config", "check", "-o", "json", "--workspace", "fleet"]);
    let answer = run.json();
    let root = workspace.path().canonicalize().unwrap();
    let fleet = root.join("fleet");
    let agent = &answer["agents"][0];
    assert_eq!(agent["program"], json!(fleet.join("bin/codex")));
    assert_eq!(agent["cwd"], json!(fleet.join("my-repo")));
    assert_eq!(agent["repos"], json!([fleet.join("../others"), "/srv/repos"]));
    let programs = ["complex", "mid", "routine"].map(|name| agent["profiles"][name]["program"].clone());
    assert_eq!(programs, [json!(fleet.join("bin/big")), json!("codex-nightly"), json!("/opt/gemini")]);
    let place = "fleet/agents.d/a.yaml:2: agent coder: repos: there is no folder";
    let warning = |folder: &Path| format!("{place} {}: create it, or correct repos", folder.display());
    assert_eq!(answer["warnings"], json!([warning(&fleet.join("../others")), warning(Path::new("/srv/repos"))]));

    let content = "agents:
  - { name: linter, cli: generic, command: [./lint.sh, ' a b ', '', 1.10] }
  - { name: other, cli: generic, adapter: other.yaml, program: other, args: [-v], permissions: { default: allow } }
";
    let adapter = "name: other\nbinary: { names: [x] }\nstart: { args: ['--message={prompt}'] }\noutput: text\n";
    let workspace = agents(content).file("other.yaml", adapter);
    let answer = workspace.good().json();
    let folder = workspace.path().canonicalize().unwrap();
    assert_eq!(answer["agents"][0]["command"], json!([folder.join("lint.sh"), " a b ", "", "1.10"]));
    assert_eq!(answer["agents"][1]["adapter"], json!(folder.join("other.yaml")));
    assert_eq!(answer["agents"][1]["program"], "other");
    assert_eq!(answer["warnings"], json!([]));
}

#[test]
fn a_generic_program_says_how_it_asks_and_what_stands_before_the_prompt() {
    let content = "agents:
  - { name: a, cli: generic, command: [a], output: jsonl, approval: { events: true }, permissions: { deny: [rm] } }
  - { name: b, cli: generic, command: [b], input: argument, separator: none, approval: { pattern: sure, yes: Y } }
";
    let answer = agents(content).good().json();
    assert_eq!(answer["agents"][0]["approval"]["events"], true);
    assert_eq!(answer["agents"][1]["separator"], "none");
    let pattern = json!({ "pattern": "sure", "yes": "Y", "no": "n", "events": false });
    assert_eq!(answer["agents"][1]["approval"], pattern);
}

#[test]
fn limits_can_be_turned_off_or_changed() {
    let content = "agents:
  - name: coder
    cli: opencode
    timeout: none
    idle: 90s
    maxParallel: 1
    limits: { line: 1MiB, stderr: 1KiB, events: 10, output: 2MiB }
    permissions: { default: deny, allow: [read, 'github_*'], deny: [bash], expiry: 2d }
    env: []
    worktree: remove
    repoLock: false
";
    let agent = loaded(&agents(content));
    assert_eq!((agent.timeout.duration(), agent.idle.duration().unwrap().as_secs()), (None, 90));
    assert_eq!((agent.max_parallel.get(), agent.limits.events.get(), agent.limits.stderr.length()), (1, 10, 1024));
    assert_eq!((agent.limits.line.bytes(), agent.limits.output.bytes()), (1 << 20, 2 << 20));
    let allowed: Vec<&str> = agent.permissions.allow.iter().map(|rule| rule.as_str()).collect();
    assert_eq!((allowed, agent.permissions.expiry.to_string().as_str()), (vec!["read", "github_*"], "2d"));
    assert_eq!(agent.env, Some(Vec::new()), "an empty list is not the same as none");
    assert!(!agent.repo_lock);
}

#[test]
fn a_rule_that_can_be_about_no_tool_of_the_program_is_refused_with_the_names_that_can() {
    let good = "agents:
  - { name: a, cli: claude-code, permissions: { allow: [Edit, 'Web*'], deny: [Task, mcp__github__delete, '*'] } }
  - { name: b, cli: codex, permissions: { deny: [shell, mcp__docs__*, spawn_agent] } }
  - { name: c, cli: gemini, permissions: { deny: [run_shell_command, fetch] } }
  - { name: d, cli: gemini, permissions: { default: deny, allow: [write_file, mcp_docs_*] } }
  - { name: e, cli: opencode, permissions: { allow: [edit], deny: [bash, execute, github_push] } }
  - { name: f, cli: acp, command: [x], permissions: { deny: [execute, 'switch_*'] } }
  - { name: g, cli: generic, command: [x], output: jsonl, approval: { events: true }, permissions: { deny: [rm] } }
  - { name: h, cli: cursor, permissions: { default: deny } }
  - name: i
    cli: claude-code
    permissions: { deny: [Bash, shell] }
    profiles: { complex: {}, mid: {}, routine: { cli: codex } }
";
    agents(good).good();
    for (keys, place, wrong, right) in [
        (
            "cli: claude-code, permissions: { deny: [bash] }",
            ".permissions.deny",
            "\"bash\" can be about no tool of claude-code",
            "did you mean Bash?",
        ),
        (
            "cli: claude-code, permissions: { allow: [shell_command] }",
            ".permissions.allow",
            "\"shell_command\" can",
            "the names here are Agent, ",
        ),
        (
            "cli: codex, permissions: { deny: [Bash] }",
            ".permissions.deny",
            "no tool of codex",
            "the names here are shell, apply_patch, mcp__*",
        ),
        (
            "cli: gemini, permissions: { deny: [write_file] }",
            ".permissions.deny",
            "\"write_file\" can be about no tool of gemini",
            "the names here are read, edit, ",
        ),
        (
            "cli: gemini, permissions: { default: deny, allow: [execute] }",
            ".permissions.allow",
            "no tool of gemini",
            "run_shell_command",
        ),
        (
            "cli: gemini, permissions: { default: allow, deny: [glob] }",
            ".permissions.deny",
            "gemini cannot be told to deny \"glob\"",
            "default: deny",
        ),
        (
            "cli: opencode, permissions: { deny: [WebFetch2] }",
            ".permissions.deny",
            "no tool of opencode",
            "did you mean webfetch?",
        ),
        (
            "cli: opencode, permissions: { allow: [write] }",
            ".permissions.allow",
            "to allow \"write\" alone",
            "write edit",
        ),
        (
            "cli: acp, command: [x], permissions: { deny: [shell] }",
            ".permissions.deny",
            "no tool of acp",
            "the names here are read, edit",
        ),
        (
            "cli: generic, command: [x], approval: { pattern: sure }, permissions: { deny: [rm] }",
            ".permissions.deny",
            "no tool of generic",
            "the names here are prompt",
        ),
        (
            "cli: cursor",
            "",
            "cursor cannot ask while it works, and would edit files unasked",
            "add permissions: { default: … }; write allow",
        ),
        (
            "cli: generic, command: [bash, -c], input: argument",
            ".command",
            "would let the program run what a caller writes",
            "name the script that is run",
        ),
        (
            "cli: cursor, permissions: { default: ask }",
            ".permissions.default",
            "cursor cannot ask while it works",
            "write allow to let it do everything, or deny",
        ),
        (
            "cli: cursor, permissions: { default: allow, deny: [shell] }",
            ".permissions.deny",
            "cannot be told about \"shell\"",
            "cli-config.json",
        ),
        (
            "cli: codex, profiles: { complex: { cli: cursor }, mid: {}, routine: { cli: cursor } }",
            "",
            "cursor cannot ask",
            "write allow",
        ),
    ] {
        let problems =
            agents(&format!("agents:\n  - {{ name: a, {keys} }}\n")).run(&["config", "check", "-o", "json"]).json();
        let [problem] = problems["problems"].as_array().unwrap().as_slice() else { panic!("{keys}: {problems}") };
        assert_eq!(
            (&problem["key"], &problem["origin"]["line"]),
            (&json!(format!("agents[0]{place}")), &json!(2)),
            "{keys}"
        );
        let says = |key: &str, text: &str| problem[key].as_str().unwrap().contains(text);
        assert!(says("wrong", wrong) && says("right", right), "{keys}: {problem}");
    }
}

#[test]
fn a_profile_stands_over_the_agent_unless_it_is_another_program() {
    let content = "agents:
  - name: coder
    cli: codex
    program: codex-next
    args: [-v]
    model: middle
    models: [middle, large]
    effort: low
    efforts: [low]
    profiles:
      COMPLEX: { model: large, models: [large], efforts: [], args: [--deep] }
      MID:
      ROUTINE: { cli: gemini, model: quick, args: [-q] }
";
    let agent = loaded(&agents(content));
    let Workers::ByDifficulty(workers) = programs::workers(&agent).unwrap() else { panic!("the profiles are lost") };
    let shown = |worker: &Worker| {
        let Worker { program, args, model, models, effort, efforts, .. } = worker;
        json!([worker.name(), program, args, model, models, effort, efforts])
    };
    let expected = json!(["codex", "codex-next", ["-v", "--deep"], "large", ["large"], "low", []]);
    assert_eq!(shown(&workers.complex), expected);
    let same = json!(["codex", "codex-next", ["-v"], "middle", ["middle", "large"], "low", ["low"]]);
    assert_eq!(shown(&workers.mid), same);
    // Its requests may choose nothing: what the agent allows are words of another program.
    assert_eq!(shown(&workers.routine), json!(["gemini", null, ["-q"], "quick", [], null, []]));
    let Workers::One(worker) = programs::workers(&CliAgent { profiles: None, ..agent }).unwrap() else { panic!() };
    assert_eq!(shown(&worker), same);
}

#[test]
fn they_are_listed_and_checked_like_other_agents() {
    let workspace = agents(
        "agents:\n  - { name: coder, cli: claude-code }\n  - { name: linter, cli: generic, command: [lint] }\n  - { name: mine, builtin: echo }\n",
    );
    let checked = workspace.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    let rows: Vec<Vec<&str>> = checked
        .stdout
        .lines()
        .filter(|line| line.starts_with("agent "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        ["agent", "coder", "cli", "claude-code", "agents.yaml:2"],
        ["agent", "linter", "cli", "generic", "agents.yaml:3"],
        ["agent", "mine", "builtin", "echo", "agents.yaml:4"],
    ];
    assert_eq!(rows, expected);
    let listed = workspace.run(&["agents"]);
    let table = "AGENT   KIND     ADDRESS\ncoder   cli      no server runs\nlinter  cli      no server runs\nmine    builtin  no server runs\n";
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), table));
    let workspace = workspace.file("switchboard.yaml", "server: { defaultAgent: coder }\n");
    assert_eq!(workspace.good().setting("server.defaultAgent").0, "coder");
}

#[test]
fn names_of_programs_and_variables_and_addresses_are_read_and_secrets_are_not_repeated() {
    for name in Cli::WRITE.split([',', ' ']).filter(|word| !["", "or"].contains(word)) {
        let cli = Cli::from_text(name).unwrap();
        assert_eq!((cli.to_string().as_str(), serde_json::to_value(cli).unwrap()), (name, name.into()));
    }
    let others = ["claude-code", "cursor", "gemini", "codex"].into_iter();
    for (other, name) in ["claude", "cursor-agent", "gemini-cli", "codex-cli"].into_iter().zip(others) {
        assert_eq!(Cli::from_text(other).unwrap_err().right, format!("did you mean {name}?"));
    }
    for name in ["PATH", "_x", "npm_config_cache", "A1"] {
        assert_eq!(VariableName::from_text(name).unwrap().as_str(), name);
    }
    for name in ["", "1A", "A-B", "A B", "$HOME", "LC_*"] {
        assert!(VariableName::from_text(name).unwrap_err().wrong.contains(name), "{name}");
    }
    for good in ["https://agent.example", "http://127.0.0.1:8080/a2a/x", "https://[::1]:1/"] {
        assert_eq!(RemoteUrl::from_text(good).unwrap().as_str(), good);
    }
    for bad in ["agent.example", "ftp://agent.example", "https://", "https:// x"] {
        assert!(RemoteUrl::from_text(bad).unwrap_err().wrong.contains(bad), "{bad}");
    }
    let variable = VariableName::from_text("KEY=hunter2").unwrap_err();
    assert!(variable.wrong.contains("KEY=…") && !format!("{variable:?}").contains("hunter2"), "{variable:?}");
    let address = RemoteUrl::from_text("https://me:hunter2@agent.example").unwrap_err();
    assert!(!format!("{address:?}").contains("hunter2"), "{address:?}");
}

#[test]
fn a_generic_program_gets_the_prompt_and_asks_as_it_is_configured() {
    let content = "agents:
  - { name: plain, cli: generic, command: [/bin/echo, said], input: argument }
  - { name: dashes, cli: generic, command: [/bin/echo, said], input: argument, separator: dashes }
  - { name: none, cli: generic, command: [/bin/echo, said], input: argument, separator: none }
  - { name: stdin, cli: generic, command: [/bin/cat] }
  - { name: asks, cli: generic, command: [/bin/sh, ./asks.sh], approval: { pattern: sure, yes: Y } }
";
    let workspace =
        agents(content).file("asks.sh", "read -r prompt; echo 'sure?'; read -r answer; echo \"got $answer\"\n");
    let workspace = workspace.variable("PATH", "/usr/bin:/bin");
    let server = Server::start(&workspace);
    let status = |agent: &str, text: &str| server.message(agent, "send", text, "").json()["task"]["status"].clone();
    let said = |agent: &str, text: &str| {
        let status = status(agent, text);
        let text = status["message"]["parts"][0]["text"].as_str().unwrap_or_default().trim().to_owned();
        (status["state"].as_str().unwrap().to_owned(), text)
    };
    let completed = |text: &str| ("TASK_STATE_COMPLETED".to_owned(), text.to_owned());
    for (agent, shown) in
        [("plain", "said -- hello"), ("dashes", "said -- hello"), ("none", "said hello"), ("stdin", "hello")]
    {
        assert_eq!(said(agent, "hello"), completed(shown), "{agent}");
    }
    // It could be taken for an option.
    assert_eq!(said("none", "--help").0, "TASK_STATE_REJECTED");
    let asked = said("asks", "hello");
    assert!(asked.0 == "TASK_STATE_INPUT_REQUIRED" && asked.1.contains("sure?"), "{asked:?}");
    server.stop();
}

/// A described program that asks with events, as an adapter file.
pub(crate) const ASKS_WITH_EVENTS: &str = "name: runner
binary: { names: [sh] }
start: { args: [./runner.sh], input: prompt }
output: jsonl
approvals: { events: true }
rules:
  - { when: { kind: ask }, approval: { request: request, tool: tool, input: input } }
  - { when: { kind: done }, done: { answer: answer } }
";

#[test]
fn a_described_program_that_asks_with_events_is_held_to_patterns_for_its_commands() {
    let content = "agents:
  - { name: a, cli: generic, adapter: runner.yaml, permissions: { allow: ['Bash(git *)'] } }
";
    // The command that it wants to run is the prompt.
    let script = r#"read -r prompt
command=${prompt#*'"text":"'}
echo "{\"kind\":\"ask\",\"request\":\"1\",\"tool\":\"Bash\",\"input\":{\"command\":\"${command%\"*}\"}}"
read -r answer
echo '{"kind":"done","answer":"it was allowed to"}'
"#;
    let workspace = agents(content).file("runner.yaml", ASKS_WITH_EVENTS).file("runner.sh", script);
    let workspace = workspace.variable("PATH", "/usr/bin:/bin");
    let server = Server::start(&workspace);
    let state = |text: &str| server.message("a", "send", text, "").json()["task"]["status"]["state"].clone();
    assert_eq!(state("git status"), "TASK_STATE_COMPLETED");
    assert_eq!(state("git status; ls"), "TASK_STATE_INPUT_REQUIRED");
    server.stop();
}
