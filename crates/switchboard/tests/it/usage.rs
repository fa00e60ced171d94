//! What the program does when it is typed wrongly, and the small commands.

use crate::program::Workspace;

#[test]
fn wrong_usage_exits_2_and_help_exits_0() {
    let workspace = Workspace::new();
    for arguments in
        [&[][..], &["config"], &["config", "chek"], &["version", "--colour"], &["config", "check", "-o", "xml"]]
    {
        let run = workspace.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains("--help"), "{arguments:?}: {}", run.stderr);
    }
    assert!(workspace.run(&["config", "chek"]).stderr.contains("'check'"));
    let help = workspace.run(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("config") && help.stdout.contains("version"), "{}", help.stdout);
    // The server starts programs with it; it is no command for users.
    assert!(!help.stdout.contains("exec-child"), "{}", help.stdout);
}

#[test]
fn version_says_the_version_in_both_forms() {
    let workspace = Workspace::new();
    let text = workspace.run(&["version"]);
    assert!(text.stdout.starts_with(concat!("switchboard ", env!("CARGO_PKG_VERSION"), " (")), "{}", text.stdout);
    for flag in ["--version", "-V"] {
        let run = workspace.run(&[flag]);
        assert_eq!((run.code, run.stdout, run.stderr), (Some(0), text.stdout.clone(), String::new()), "{flag}");
    }
    assert_eq!(workspace.run(&["version", "-o", "json"]).json()["version"], env!("CARGO_PKG_VERSION"));
}
