//! `doctor`: what it finds, what it says of it, and how to mend it. The programs are scripts that only know their version.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use insta::{assert_json_snapshot, assert_snapshot};
use serde_json::{Value, json};

use crate::program::{Run, Workspace};

const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A workspace whose `bin` is the path, and whose `home` is the home of the account that runs it.
fn workspace(agents: &str) -> Workspace {
    on_path(agents, "")
}

/// The same with more on the path.
fn on_path(agents: &str, rest: &str) -> Workspace {
    let workspace = Workspace::new().file("agents.yaml", agents).file("bin/readme", "").file("home/readme", "");
    let folder = workspace.path().display().to_string();
    workspace.variable("PATH", &format!("{folder}/bin:{rest}")).variable("HOME", &format!("{folder}/home"))
}

/// Puts a program there.
fn program(workspace: Workspace, path: &str, script: &str) -> Workspace {
    let workspace = workspace.file(path, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(workspace.path().join(path), PermissionsExt::from_mode(0o755)).unwrap();
    workspace
}

fn doctor(workspace: &Workspace) -> Value {
    let run = workspace.run(&["doctor", "-o", "json"]);
    let answer = run.json();
    let is_good = answer["problems"] == 0;
    assert_eq!((&answer["ok"], run.code), (&json!(is_good), Some(i32::from(!is_good))), "{}", run.stdout);
    for finding in all_findings(&answer) {
        let has_fix = finding["fix"].as_str().is_some_and(|fix| !fix.is_empty());
        assert!(has_fix || finding["level"] == "ok", "it does not say what to do: {finding}");
    }
    answer
}

fn all_findings(answer: &Value) -> impl Iterator<Item = &Value> {
    let parts = ["programs", "agents"].into_iter().flat_map(|key| answer[key].as_array().unwrap());
    let of_parts = parts.flat_map(|part| part["findings"].as_array().unwrap());
    answer["configuration"].as_array().unwrap().iter().chain(of_parts)
}

/// What is said of one agent: level, text and fix.
fn of_agent(answer: &Value, name: &str) -> Vec<(String, String, String)> {
    let agents = answer["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = agent["findings"].as_array().unwrap().iter();
    findings.map(|finding| (text(finding, "level"), text(finding, "text"), text(finding, "fix"))).collect()
}

#[track_caller]
fn says(answer: &Value, agent: &str, level: &str, text: &str, fix: &str) {
    let findings = of_agent(answer, agent);
    let is_said = findings.iter().any(|found| found.0 == level && found.1.contains(text) && found.2.contains(fix));
    assert!(is_said, "{level} {text:?} {fix:?} is not in {findings:#?}");
}

/// Without the name of the folder, which differs each time.
fn stable(workspace: &Workspace, run: &Run) -> String {
    let code = if run.code == Some(0) { String::new() } else { format!("exit code {}\n", run.code.unwrap()) };
    let errors: String = run.stderr.lines().map(|line| format!("! {line}\n")).collect();
    let shown = format!("{}{errors}{code}", run.stdout);
    let real = workspace.path().canonicalize().unwrap();
    shown.replace(real.to_str().unwrap(), "WORKSPACE").replace(workspace.path().to_str().unwrap(), "WORKSPACE")
}

/// One of everything that does not depend on who runs the test.
fn mixed() -> Workspace {
    let agents = "agents:
  - { name: coder, cli: codex, worktree: keep }
  - { name: helper, cli: opencode, permissions: { default: allow } }
  - { name: linter, cli: generic, command: [./lint.sh] }
  - { name: lost, cli: gemini, cwd: gone, env: [HOME, KEY] }
  - { name: mine, builtin: echo }
";
    let workspace = program(workspace(agents), "bin/codex", "echo codex-cli 0.166.0");
    let workspace = program(workspace, "bin/opencode", "echo 2.0.0");
    let workspace = program(workspace, "bin/claude", "echo 'no such engine' >&2; exit 3");
    program(workspace, "lint.sh", "exit 1").file("home/.codex/auth.json", r#"{"OPENAI_API_KEY":"hunter2"}"#)
}

#[test]
fn it_says_of_each_thing_how_it_stands_and_how_to_mend_it() {
    let workspace = mixed();
    doctor(&workspace);
    assert_snapshot!("text", stable(&workspace, &workspace.run(&["doctor"])));
    let run = workspace.run(&["doctor", "-o", "json"]);
    let run = Run { stdout: run.stdout, stderr: run.stderr, code: Some(0) };
    let answer: Value = serde_json::from_str(&stable(&workspace, &run)).unwrap();
    insta::with_settings!({ sort_maps => true }, { assert_json_snapshot!("json", answer) });
}

#[test]
fn its_help_says_what_its_exit_codes_mean() {
    let help = Workspace::new().run(&["doctor", "--help"]);
    assert_eq!(help.code, Some(0));
    assert!(
        help.stdout.contains("Exit codes: 0 no problem, even if there are warnings; 1 a problem"),
        "{}",
        help.stdout
    );
}

#[test]
fn an_empty_folder_has_no_problems_and_one_that_is_missing_has() {
    let empty = Workspace::new();
    assert_snapshot!("empty", stable(&empty, &empty.run(&["doctor"])));
    let missing = empty.run(&["doctor", "--workspace", "gone"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stdout.contains("the workspace folder gone does not exist"), "{}", missing.stdout);
    assert!(missing.stdout.contains("fix: create it, or name another one"), "{}", missing.stdout);
}

#[test]
fn what_is_wrong_with_the_configuration_is_said_as_config_check_says_it() {
    let workspace = workspace("agents:\n  - { name: a, cli: codx }\n  - { name: b, cli: codex, idle: 5 }\n");
    let answer = doctor(&workspace);
    let checked = workspace.run(&["config", "check", "-o", "json"]).json();
    let [first, second] = answer["configuration"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(first["fix"], checked["problems"][0]["right"]);
    assert_eq!(second["text"], "agents.yaml:3: agents[1].idle: \"5\" has no unit");
    assert_eq!((&answer["agents"], &answer["programs"][0]["name"]), (&json!([]), &json!("claude-code")));
    let warned = Workspace::new().file("agents.yml", "").run(&["doctor"]);
    assert!(warned.stdout.contains("warning                 agents.yml is not read\n"), "{}", warned.stdout);
    assert!(warned.stdout.contains("fix: rename it to agents.yaml\n"), "{}", warned.stdout);
    assert_eq!(warned.code, Some(0), "warnings are no problems");
}

#[test]
fn logins_show_by_variables_and_files_as_the_child_sees_them_and_secrets_are_not_printed() {
    let agents = "agents:
  - { name: plain, cli: claude-code }
  - { name: narrow, cli: claude-code, env: [PATH, HOME] }
";
    let workspace = program(workspace(agents), "bin/claude", "echo '2.1.325 (Claude Code)'");
    let workspace = workspace.variable("ANTHROPIC_API_KEY", "hunter2");
    let answer = doctor(&workspace);
    let found = json!({ "state": "found", "sign": "ANTHROPIC_API_KEY" });
    assert_eq!((&answer["programs"][0]["login"], &answer["programs"][0]["tested"]), (&found, &json!(true)));
    says(&answer, "plain", "ok", "logged in, as ANTHROPIC_API_KEY shows", "");
    says(&answer, "narrow", "warning", "no sign of a login", "run `claude` once and log in");
    let credentials = r#"{"claudeAiOauth":{"accessToken":"hunter2"}}"#;
    let workspace = workspace.file("home/.claude/.credentials.json", credentials);
    let answer = doctor(&workspace);
    says(&answer, "narrow", "ok", "home/.claude/.credentials.json shows", "");
    assert!(!answer.to_string().contains("hunter2"));
}

#[test]
fn each_program_is_logged_in_where_it_has_written_what_it_was_given() {
    let logins = [
        ("claude", ".claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"s"}}"#, "{}"),
        ("codex", ".codex/auth.json", r#"{"OPENAI_API_KEY":"s"}"#, "{}"),
        ("gemini", ".gemini/oauth_creds.json", r#"{"access_token":"s"}"#, "not json"),
        ("opencode", ".local/share/opencode/auth.json", r#"{"anthropic":{"key":"s"}}"#, "{}"),
        ("cursor-agent", ".config/cursor/auth.json", r#"{"accessToken":"s"}"#, r#"{"accessToken":""}"#),
    ];
    let states = |workspace: &Workspace| -> Vec<Value> {
        let programs = doctor(workspace)["programs"].clone();
        programs.as_array().unwrap().iter().map(|program| program["login"].clone()).collect()
    };
    let not_found = vec![json!({ "state": "not-found" }); 5];
    let mut workspace = workspace("").variable("ANTHROPIC_API_KEY", "");
    for (binary, ..) in logins {
        workspace = program(workspace, &format!("bin/{binary}"), "echo 1.0.0");
    }
    assert_eq!(states(&workspace), not_found);
    for finding in
        all_findings(&doctor(&workspace)).filter(|finding| finding["text"].as_str().unwrap().contains("login"))
    {
        // It stands among other fixes, and in the middle of sentences.
        let fix = finding["fix"].as_str().unwrap();
        assert!(fix.starts_with(char::is_lowercase) && !fix.ends_with('.'), "{fix}");
    }
    for (_, file, _, empty) in logins {
        workspace = workspace.file(&format!("home/{file}"), empty);
    }
    assert_eq!(states(&workspace), not_found);
    for (_, file, good, _) in logins {
        workspace = workspace.file(&format!("home/{file}"), good);
    }
    let home = workspace.path().join("home");
    let found = logins.map(|(_, file, ..)| json!({ "state": "found", "sign": home.join(file) }));
    assert_eq!(states(&workspace), found);

    // A folder that a variable names stands in for the usual one.
    let other = workspace.path().join("other");
    let workspace = workspace.variable("CODEX_HOME", other.to_str().unwrap());
    assert_eq!(states(&workspace)[1], not_found[1]);
    let workspace = workspace.file("other/auth.json", r#"{"a":1}"#);
    assert_eq!(states(&workspace)[1], json!({ "state": "found", "sign": other.join("auth.json") }));
}

#[test]
fn each_way_an_agent_cannot_work_here_is_named_with_what_would_be_right() {
    let agents = "agents:
  - { name: accountless, cli: codex, user: no-such-account }
  - { name: rules, cli: generic, adapter: good.yaml }
  - { name: efforts, cli: claude-code, efforts: [high, silly] }
  - { name: pathless, cli: codex, env: [HOME] }
  - { name: elsewhere, cli: codex, program: ./bin/missing }
  - { name: file, cli: codex, cwd: good.yaml }
  - { name: broken, cli: cursor, permissions: { default: deny } }
  - { name: unknown, cli: acp, command: [agent, --acp] }
  - { name: absent, cli: generic, adapter: absent.yaml }
  - { name: wrong, cli: generic, adapter: wrong.yaml }
  - { name: taken, cli: generic, adapter: taken.yaml }
  - name: three
    cli: codex
    permissions: { default: allow }
    profiles: { complex: { model: large }, mid: {}, routine: { cli: cursor, effort: high } }
";
    let good = "name: NAME\nbinary: { names: [aider] }\nstart: { args: ['--message={prompt}'] }\noutput: text\n";
    let workspace = workspace(agents)
        .file("good.yaml", good.replace("NAME", "aider"))
        .file("wrong.yaml", good.replace("NAME", "aider") + "colour: red\n")
        .file("taken.yaml", good.replace("NAME", "codex"));
    let workspace = program(workspace, "bin/codex", "echo codex-cli 0.166.0");
    let workspace = program(workspace, "bin/agent", "echo 7; test \"$1\" = --version");
    let workspace = program(workspace, "bin/cursor-agent", "printf 'bad \\033[31mlicense' >&2; exit 9");
    let answer = doctor(&workspace);
    says(&answer, "accountless", "problem", "there is no user \"no-such-account\"", "create the user");
    says(&answer, "rules", "problem", "permissions.default: aider cannot be run with ask", "write allow");
    says(&answer, "efforts", "problem", "effort `silly` is not one of Claude Code", "low, medium");
    says(&answer, "pathless", "warning", "env: PATH is not among the variables", "add PATH to env");
    says(&answer, "pathless", "problem", "Codex is not found: env does not name PATH", "add PATH to env");
    says(&answer, "elsewhere", "problem", "bin/missing is not a program that can be started", "correct program");
    says(&answer, "file", "problem", "good.yaml is not a folder", "name a folder as cwd");
    says(&answer, "broken", "problem", "does not start: it exited with code 9: bad license", "--version to see why");
    says(&answer, "unknown", "ok", "bin/agent starts; its version is 7", "");
    says(&answer, "unknown", "unknown", "not known whether it is logged in", "log in with agent itself");
    says(&answer, "absent", "problem", "absent.yaml cannot be read", "name a file");
    says(&answer, "wrong", "problem", "wrong.yaml: colour: is not a key", "remove it");
    says(&answer, "taken", "problem", "name: \"codex\" is the name of a kind that is known", "choose another one");
    says(&answer, "three", "problem", "ROUTINE: cursor has no setting for how hard to think", "remove `effort`");
    says(&answer, "three", "ok", "COMPLEX: ", "");
    let programs = of_agent(&answer, "three").into_iter().filter(|found| found.1.contains("bin/codex")).count();
    assert_eq!(programs, 1, "each program is looked at once");
    let served = workspace.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert_ne!(served.code, Some(0), "serve refuses what is a problem of the adapter's file too");
}

#[test]
fn a_program_that_does_not_know_its_version_is_no_problem_where_none_is_expected() {
    let agents = "agents:
  - { name: silent, cli: acp, command: [./silent] }
  - { name: strict, cli: acp, command: [./strict] }
  - { name: nameless, cli: acp, command: [./nameless] }
  - { name: coder, cli: codex }
";
    let workspace = program(workspace(agents), "silent", "while read -r line; do :; done");
    let workspace = program(workspace, "strict", "echo 'unknown option --version' >&2; exit 2");
    let workspace = program(workspace, "bin/codex", "exit 0");
    let answer = doctor(&workspace.file("nameless", "#!/nowhere\n"));
    says(&answer, "silent", "ok", "silent starts; its version is unknown: it says nothing of it", "");
    let strict = "strict is there; its version is unknown: it exited with code 2: unknown option --version";
    says(&answer, "strict", "warning", strict, "if its tasks fail, run ");
    says(&answer, "coder", "warning", "bin/codex starts; its version is unknown", "the program that is meant");
    let codex = &answer["programs"][1];
    assert_eq!((&codex["starts"], &codex["version"]), (&json!(true), &json!(null)));
    says(&answer, "nameless", "problem", "nameless is there and is not executable", "run chmod +x ");
    assert_eq!(answer["problems"], 1, "{answer}");
}

#[test]
fn a_file_that_is_not_executable_is_said_to_be_there() {
    let agents = "agents:
  - { name: path, cli: codex }
  - { name: named, cli: claude-code, program: ./mine }
  - { name: unreal, cli: acp, command: [./unreal] }
";
    let workspace = workspace(agents).file("bin/codex", "#!/bin/sh\n").file("mine", "#!/bin/sh\n");
    let answer = doctor(&program(workspace, "unreal", "exit 127"));
    says(&answer, "path", "problem", "bin/codex is there and is not executable", "run chmod +x ");
    says(&answer, "named", "problem", "mine is there and is not executable", "run chmod +x ");
    says(&answer, "unreal", "problem", "unreal does not start: it exited with code 127", "to see why");
    let codex = &answer["programs"][1]["findings"][0];
    assert_eq!(codex["level"], "warning");
    assert!(codex["text"].as_str().unwrap().ends_with("bin/codex is there and is not executable"), "{codex}");
}

#[test]
fn copies_need_git_and_a_repository_with_a_commit() {
    let agents = "agents:\n  - { name: coder, cli: codex, cwd: repo, worktree: remove }\n";
    let workspace = program(on_path(agents, SYSTEM_PATH).file("repo/a", ""), "bin/codex", "echo codex-cli 0.166.0");
    says(&doctor(&workspace), "coder", "problem", "repo is in no git repository", "worktree: off");
    git(&workspace, &["init", "-q"]);
    says(&doctor(&workspace), "coder", "problem", "has no commit", "commit something");
    git(&workspace, &["add", "."]);
    git(&workspace, &["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "first"]);
    says(&doctor(&workspace), "coder", "ok", "repo is in a git repository with a commit", "");
}

fn git(workspace: &Workspace, words: &[&str]) {
    let status = Command::new("git").args(words).current_dir(workspace.path().join("repo")).status().unwrap();
    assert!(status.success(), "{words:?}");
}

#[test]
fn another_account_needs_root_and_claude_is_better_off_without_it() {
    let agents = "agents:
  - { name: other, cli: codex, user: nobody }
  - { name: coder, cli: claude-code }
";
    let workspace = program(workspace(agents), "bin/codex", "echo codex-cli 0.166.0");
    let answer = doctor(&program(workspace, "bin/claude", "echo 2.1.325"));
    let as_root: Vec<_> = of_agent(&answer, "coder").into_iter().filter(|found| found.1.contains("as root")).collect();
    if rustix::process::geteuid().is_root() {
        says(&answer, "other", "ok", "programs run as user nobody", "");
        says(&answer, "other", "warning", "cwd: user nobody may not write in", "chown");
        assert!(as_root[0].0 == "warning" && as_root[0].2.contains("add user:"), "{as_root:?}");
    } else {
        says(&answer, "other", "problem", "only root may do that", "run switchboard as root or as nobody");
        assert!(as_root.is_empty(), "{as_root:?}");
    }
}

#[test]
fn repositories_that_would_have_programs_do_what_they_say_are_named() {
    let agents = "agents:
  - { name: reader, cli: gemini, cwd: repo, permissions: { default: deny } }
  - { name: asker, cli: opencode, cwd: repo }
  - { name: writer, cli: gemini, cwd: repo, permissions: { default: allow } }
  - { name: free, cli: opencode, cwd: repo, permissions: { default: allow } }
  - name: skilled
    cli: opencode
    cwd: repo
    permissions: { default: allow }
    skills: [{ name: review, description: x, permissions: { default: ask } }]
  - { name: trusting, cli: gemini, cwd: repo, permissions: { default: allow }, args: [--skip-trust] }
";
    let workspace = program(workspace(agents), "bin/gemini", "echo 0.61.0").file("repo/.env", "A=1");
    let workspace = program(workspace, "bin/opencode", "echo 1.18.33").file("repo/.opencode/plugin/a.js", "");
    let answer = doctor(&workspace);
    says(&answer, "reader", "problem", "repo/.env for its own", "add --skip-trust to `args` if you trust this folder");
    says(&answer, "asker", "problem", "the plugins of", "use `acp` as `cli`, with `opencode acp` as its command");
    says(&answer, "writer", "warning", "gemini takes the variables in", "if you do not trust who has written it");
    says(&answer, "free", "warning", "opencode runs the plugins of", "if you do not trust who has written them");
    says(
        &answer,
        "skilled",
        "problem",
        "skill review: opencode would run the plugins of",
        "use `acp` as `cli`, with `opencode acp` as its command",
    );
    let trusted = of_agent(&answer, "trusting");
    assert!(trusted.iter().all(|found| !found.1.contains("variables")), "{trusted:?}");
}

#[test]
fn it_leaves_nothing_behind_and_needs_no_data() {
    let workspace = program(workspace("agents:\n  - { name: a, cli: codex }\n"), "bin/codex", "echo 0.166.1");
    let workspace = workspace.file("tmp/readme", "");
    let temporary = workspace.path().join("tmp");
    let workspace = workspace.variable("TMPDIR", temporary.to_str().unwrap());
    doctor(&workspace);
    let names = |folder: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&temporary), ["readme"]);
    assert_eq!(names(workspace.path()), ["agents.yaml", "bin", "home", "tmp"]);
    let nowhere = workspace.variable("TMPDIR", "/nowhere").run(&["doctor"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.stderr.contains("next: check that the folder for temporary files can be written"));
}

#[test]
fn a_folder_whose_name_is_no_text_is_shown_as_far_as_it_is() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    // A command in that folder cannot be served, which config check would say instead.
    for (command, program) in [(&["doctor", "-o", "json"][..], "./x"), (&["config", "check", "-o", "json"], "x")] {
        let agents = format!(
            "agents:\n  - {{ name: a, cli: generic, command: [{program}], repos: [.] }}\n  - {{ name: b, cli: codex, program: ./y }}\n"
        );
        std::fs::write(folder.join("agents.yaml"), agents).unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        let run = run.args(command).arg("--workspace").arg(&folder).env_clear().output().unwrap();
        let answer: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
        assert!(answer["workspace"].as_str().unwrap().ends_with("caf\u{fffd}"), "{command:?}: {answer}");
    }
}
