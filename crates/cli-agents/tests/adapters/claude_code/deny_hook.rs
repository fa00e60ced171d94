//! What the operator permits holds, whatever a repository's author has put into the folder.
//!
//! The recordings were made in a project that grants itself everything: rules that allow all tools, hooks, servers of
//! tools, skills, agents, variables. The program was told to trust it, and started as this adapter starts it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_cli_agents::adapters::{CommandRule, Permission};

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The permissions under which a recording was made.
pub(super) fn of(name: &str) -> Permissions {
    match name {
        "claude-rules-only-read.txt" => {
            Permissions { default: Permission::Deny, allow: names(&["Read"]), ..Permissions::default() }
        }
        "claude-rules-no-bash-in-agent.txt" => Permissions { deny: names(&["Bash"]), ..Permissions::default() },
        _ => Permissions::default(),
    }
}

fn under(permissions: Permissions) -> Box<dyn Dialogue> {
    start(&Order { permissions, ..order() }).unwrap().1
}

fn play_under_its_rules(name: &str, decisions: &[Decision]) -> Told {
    let prompt: Option<String> = Recording::open(name).written().iter().find_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["message"]["content"][0]["text"].as_str().map(str::to_owned)
    });
    let order = Order { prompt: prompt.unwrap(), permissions: of(name), ..order() };
    play_to(start(&order).unwrap().1.as_mut(), name, decisions)
}

/// Everything that was written to the program, and was when it was recorded.
fn assert_written(name: &str, decisions: &[Decision]) -> Told {
    let played = play_under_its_rules(name, decisions);
    let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let recorded: Vec<Value> = Recording::open(name).written().into_iter().map(parse).collect();
    let write = |step: &Step| if let Step::Write(line) = step { Some(parse(line)) } else { None };
    let written: Vec<Value> = played.steps.iter().filter_map(write).collect();
    assert_eq!(written, recorded, "{name}");
    played
}

fn asked<'a>(told: &'a Told) -> Vec<&'a str> {
    let asked =
        |event: &'a Event| if let Event::ApprovalRequired(asked) = event { Some(asked.prompt.as_str()) } else { None };
    told.events().filter_map(asked).collect()
}

#[test]
fn a_project_that_allows_itself_everything_is_asked_about_all_the_same() {
    let told = assert_written("claude-rules-hostile-project-deny.txt", &[deny("No."), deny("No.")]);
    assert_eq!(asked(&told), ["Bash: touch /home/agent/project/made", "Write new.txt"]);
    assert!(told.answer().contains("data"), "a plain read needs no question: {}", told.answer());
}

#[test]
fn what_the_project_says_is_told_to_the_model_and_files_that_a_caller_mentions_are_not() {
    let told = assert_written("claude-rules-instructions.txt", &[]);
    assert_eq!(told.answer(), "brief-and-kind 1, secret-of-the-file 0, EVILSKILL-MARK 0, EVILAGENT-MARK 0");
}

#[test]
fn where_the_default_is_to_deny_only_what_is_allowed_is_done() {
    let told = assert_written("claude-rules-only-read.txt", &[allow()]);
    assert_eq!(asked(&told), ["Read /etc/hostname"]);
    let results: Vec<(&str, bool)> = told
        .events()
        .filter_map(|event| match event {
            Event::ToolResult { tool, is_error, .. } => Some((tool.as_str(), *is_error)),
            _ => None,
        })
        .collect();
    assert_eq!(results, [("Agent", true), ("Bash", true), ("Read", false), ("Read", false)]);
    // The result lists the agent under another name, and it is still the operator's refusal.
    assert!(told.answer().starts_with("tool said"), "{}", told.answer());
}

#[test]
fn what_is_denied_is_denied_in_agents_that_it_starts() {
    let told = assert_written("claude-rules-no-bash-in-agent.txt", &[]);
    let bash = told.events().find_map(|event| match event {
        Event::ToolResult { tool, output, is_error: true, .. } if tool == "Bash" => Some(output.as_str()),
        _ => None,
    });
    assert!(bash.unwrap().contains("Bash may not be used here"), "{bash:?}");
    assert_eq!(told.answer(), "noted the task");
}

#[test]
fn nothing_is_begun_before_the_rules_are_taken() {
    let mut dialogue = under(Permissions { default: Permission::Deny, ..Permissions::default() });
    let mut steps = Steps::default();
    dialogue.begin(&mut steps);
    match steps.take().as_slice() {
        [Step::Write(line)] => assert!(line.contains("initialize") && !line.contains("Say hello."), "{line}"),
        other => panic!("{other:?}"),
    }
    let reply = |id: &str, subtype: &str| json!({"type": "control_response", "response": {"subtype": subtype, "request_id": id, "error": "unknown"}});
    assert_eq!(hear(dialogue.as_mut(), &[reply("other", "success"), json!({"type": "control_response"})]), []);
    let taken = hear(dialogue.as_mut(), &[reply("rules", "success"), reply("rules", "success")]);
    match taken.as_slice() {
        [Step::Write(line)] => assert!(line.contains("Say hello."), "{line}"),
        other => panic!("the prompt is written once, not {other:?}"),
    }

    let mut dialogue = under(Permissions { deny: names(&["Bash"]), ..Permissions::default() });
    match hear(dialogue.as_mut(), &[reply("rules", "error")]).as_slice() {
        [Step::Finish(Ending::Failed(failure))] => {
            assert_eq!(failure.kind, FailureKind::Reported);
            assert!(
                failure.message.contains("nothing was begun: unknown; install a version that was tested"),
                "{}",
                failure.message
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_use_of_a_tool_is_held_against_the_rules() {
    let only_fetch = Permissions { default: Permission::Deny, allow: names(&["Web*"]), ..Permissions::default() };
    let no_search = Permissions { deny: names(&["Tool*"]), ..only_fetch.clone() };
    let no_servers = Permissions { deny: names(&["mcp__*"]), ..Permissions::default() };
    for (permissions, tool, denied) in [
        (&only_fetch, json!("WebFetch"), false),
        (&only_fetch, json!("Read"), true),
        // How what is allowed is called must be looked up with it.
        (&only_fetch, json!("ToolSearch"), false),
        (&no_search, json!("ToolSearch"), true),
        (&no_servers, json!("mcp__files__read"), true),
        (&no_servers, json!("Read"), false),
        (&no_servers, json!(""), true),
        (&no_servers, json!(7), true),
    ] {
        let input = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "t"});
        let request = json!({"subtype": "hook_callback", "callback_id": "rules", "input": input});
        let called = json!({"type": "control_request", "request_id": 0, "request": request});
        match hear(under(permissions.clone()).as_mut(), &[called]).as_slice() {
            [Step::Write(line)] => {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["response"]["request_id"], 0);
                let decision = &line["response"]["response"]["hookSpecificOutput"]["permissionDecision"];
                assert_eq!(decision, &if denied { json!("deny") } else { Value::Null }, "{tool}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_command_is_held_against_the_patterns_that_allow_it() {
    let rule = CommandRule { tool: "Bash".to_owned(), pattern: "git *".to_owned() };
    let only_git = Permissions { default: Permission::Deny, allow_commands: vec![rule], ..Permissions::default() };
    let claude = ClaudeCode;
    for (tool, input, permission) in [
        ("Bash", json!({"command": "git status", "description": "Look"}), Permission::Allow),
        ("Bash", json!({"command": "git status", "dangerouslyDisableSandbox": false}), Permission::Allow),
        ("Bash", json!({"command": "git status", "dangerouslyDisableSandbox": true}), Permission::Deny),
        ("Bash", json!({"command": "git status", "run_in_background": true, "timeout": 5}), Permission::Allow),
        ("Bash", json!({"command": "git status", "env": {"GIT_PAGER": "sh"}}), Permission::Deny),
        ("Bash", json!({"command": "git status; ls"}), Permission::Deny),
        ("Bash", json!({"command": "ls"}), Permission::Deny),
        ("Bash", json!({"command": ["git", "status"]}), Permission::Deny),
        ("Monitor", json!({"command": "git status"}), Permission::Deny),
    ] {
        assert_eq!(claude.permission(&only_git, tool, &input), permission, "{tool} {input}");
        let hook = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "t", "tool_input": input});
        let request = json!({"subtype": "hook_callback", "callback_id": "rules", "input": hook});
        let called = json!({"type": "control_request", "request_id": 0, "request": request});
        let steps = hear(under(only_git.clone()).as_mut(), &[called]);
        let [Step::Write(line)] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(line.contains("\"deny\""), permission == Permission::Deny, "{tool} {line}");
    }
    let arguments = start(&Order { permissions: only_git, ..order() }).unwrap().0.args.join(" ");
    assert!(!arguments.contains("--disallowedTools"), "the model may use Bash: {arguments}");
}

#[test]
fn only_the_users_settings_are_read_and_an_operator_may_say_otherwise() {
    let trusting = Order { args: names(&["--setting-sources", "user,project,local"]), ..order() };
    let (launch, _) = start(&trusting).unwrap();
    let arguments = launch.args.join(" ");
    assert!(arguments.contains("--add-dir . --setting-sources user --input-format"), "{arguments}");
    assert!(arguments.ends_with("--setting-sources user,project,local"), "the last one counts: {arguments}");
    for name in ["CLAUDE_CODE_DISABLE_FILE_MENTIONS", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] {
        assert!(launch.env.contains(&(name.to_owned(), "1".to_owned())), "{name}");
    }
}

#[test]
fn where_all_is_denied_the_model_sees_no_tool() {
    let nothing = Permissions { default: Permission::Deny, deny: names(&["Bash"]), ..Permissions::default() };
    let arguments = |permissions| start(&Order { permissions, ..order() }).unwrap().0.args.join(" ");
    assert!(arguments(nothing).starts_with("-p --disallowedTools * --add-dir"));
    assert!(!arguments(of("claude-rules-only-read.txt")).contains("--disallowedTools"));
}

#[cfg(unix)]
#[test]
fn instructions_that_are_a_link_out_of_the_project_are_not_read() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    let reads = |name: &str| {
        let order = Order { cwd: folder.0.join(name), ..order() };
        start(&order).unwrap().0.args.contains(&"--add-dir".to_owned())
    };
    fs::write(folder.0.join("secret"), "secret").unwrap();
    for name in ["plain", "inside", "outside", "rules", "nothing"] {
        fs::create_dir_all(folder.0.join(name).join(".claude")).unwrap();
    }
    fs::write(folder.0.join("plain/CLAUDE.md"), "Be kind.").unwrap();
    fs::write(folder.0.join("inside/AGENTS.md"), "Be kind.").unwrap();
    symlink("AGENTS.md", folder.0.join("inside/CLAUDE.md")).unwrap();
    symlink("../secret", folder.0.join("outside/CLAUDE.md")).unwrap();
    symlink(&folder.0, folder.0.join("rules/.claude/rules")).unwrap();
    assert!(reads("plain") && reads("inside") && reads("nothing"));
    assert!(!reads("outside") && !reads("rules"));

    let make = |path: &str| fs::create_dir_all(folder.0.join(path)).unwrap();
    for name in ["file", "deep", "harmless", "detour"] {
        make(&format!("{name}/.claude/rules/deep"));
    }
    symlink("../../../secret", folder.0.join("file/.claude/rules/a.md")).unwrap();
    symlink("../../../../secret", folder.0.join("deep/.claude/rules/deep/a.md")).unwrap();
    // In a circle, to nowhere, and to another place of the project.
    make("harmless/docs");
    make("detour/docs");
    for name in ["harmless", "detour"] {
        let rules = folder.0.join(name).join(".claude/rules");
        symlink("..", rules.join("up")).unwrap();
        symlink("nowhere.md", rules.join("b.md")).unwrap();
        symlink("../../docs", rules.join("docs")).unwrap();
    }
    symlink("../../secret", folder.0.join("detour/docs/a.md")).unwrap();
    assert!(reads("harmless"));
    assert!(!reads("file") && !reads("deep") && !reads("detour"));
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claude-code-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
