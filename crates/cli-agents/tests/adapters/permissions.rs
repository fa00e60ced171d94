//! Which rule is about which tool and command, and what it decides.

use switchboard_cli_agents::adapters::{CommandRule, Permission, Permissions, can_fit};

#[test]
fn rules_fit_whole_names_and_stars_stand_for_anything() {
    for (rule, tool, fit) in [
        ("Bash", "Bash", true),
        ("Bash", "BashOutput", false),
        ("Bash", "bash", false),
        ("*", "anything", true),
        ("mcp__*", "mcp__github__list", true),
        ("mcp__*__list", "mcp__github__list", true),
        ("mcp__*__list", "mcp__github__create", false),
        ("*a*b*", "xaxbx", true),
        ("*a*b*", "xbxax", false),
        ("ab*ba", "aba", false),
        ("", "Bash", false),
    ] {
        let permissions = Permissions { deny: vec![rule.to_owned()], ..Permissions::default() };
        assert_eq!(permissions.of(tool) == Permission::Deny, fit, "{rule} {tool}");
    }
}

#[test]
fn a_rule_can_be_about_a_tool_if_both_have_a_name_in_common() {
    let tools = ["Bash", "mcp__*", "*_tool_*"];
    for (rule, can) in [
        ("Bash", true),
        ("bash", false),
        ("Bas", false),
        ("Bash2", false),
        ("B*", true),
        ("*sh", true),
        ("*", true),
        ("Web*", true), // Web_tool_x
        ("mcp__github__list", true),
        ("mcp__*__list", true),
        ("mcp_*", true),
        ("mcp_", false),
        ("my_tool_x", true),
        ("my_tool", false),
        ("", false),
        ("***", true),
    ] {
        assert_eq!(can_fit(rule, &tools), can, "{rule}");
    }
    assert!(can_fit("anything", &["*"]) && can_fit("", &["*"]) && !can_fit("Web*", &["Bash"]));
}

#[test]
fn deny_wins_over_allow_and_the_default_is_to_ask() {
    let rules = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    let permissions =
        Permissions { allow: rules(&["Read", "Web*"]), deny: rules(&["WebFetch"]), ..Permissions::default() };
    assert_eq!(permissions.of("Read"), Permission::Allow);
    assert_eq!(permissions.of("WebSearch"), Permission::Allow);
    assert_eq!(permissions.of("WebFetch"), Permission::Deny);
    assert_eq!(permissions.of("Bash"), Permission::Ask);
}

#[test]
fn a_pattern_allows_one_simple_command_and_nothing_else() {
    let rule = |tool: &str, pattern: &str| CommandRule { tool: tool.to_owned(), pattern: pattern.to_owned() };
    let permissions = Permissions {
        allow_commands: vec![rule("Bash", "git *"), rule("Bash", "make")],
        deny: vec!["Denied".to_owned()],
        ..Permissions::default()
    };
    let of = |tool: &str, command: &str| permissions.of_call(&[tool], Some(command));
    for allowed in ["git status", "git log -n 3 --format='%h %s'", "make", " git diff ", "git add \"a b\""] {
        assert_eq!(of("Bash", allowed), Permission::Allow, "{allowed}");
    }
    for other in [
        "git",
        "make all",
        "gitk --all",
        "sudo git status",
        "git status; rm -rf .",
        "git status && ls",
        "git status & ls",
        "git log | sh",
        "git log $(ls)",
        "git log ${HOME}",
        "git log `ls`",
        "git log > file",
        "git apply < file",
        "git diff <(ls)",
        "git status\nls",
        "git status\rls",
        "git push # --dry-run",
        "git\tstatus",
        "git status\u{2028}ls",
        "\u{a0}make",
        "make\u{85}",
        "",
    ] {
        assert_eq!(of("Bash", other), Permission::Ask, "{other:?}");
    }
    assert_eq!(of("PowerShell", "git status"), Permission::Ask, "the rule names another tool");
    assert_eq!(permissions.of_call(&["Bash"], None), Permission::Ask, "the command is not known");
    assert_eq!(of("Bash", "git log --grep=#12"), Permission::Allow, "a comment begins after a space");
    let everything = Permissions { allow_commands: vec![rule("*", "*")], ..permissions.clone() };
    assert_eq!(everything.of_call(&["Bash"], Some(" ")), Permission::Ask, "there is no command");
    assert_eq!(everything.of_call(&["Denied"], Some("ls")), Permission::Deny, "deny wins");
    let closed = Permissions { default: Permission::Deny, ..permissions };
    assert_eq!(closed.of_call(&["Bash"], Some("git status")), Permission::Allow);
    assert_eq!(closed.of_call(&["Bash"], Some("git status; ls")), Permission::Deny);
    assert!(closed.has_rules());
}
