//! Help that explains itself, and completions.

use crate::program::Workspace;

#[test]
fn every_command_explains_itself() {
    let workspace = Workspace::new();
    let help = |arguments: &[&str]| {
        let run = workspace.run(&[arguments, &["--help"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        run.stdout
    };
    for (command, usage) in [
        (&["send"][..], "switchboard send [OPTIONS] AGENT TEXT..."),
        (&["chat"], "switchboard chat [OPTIONS] AGENT"),
        (&["card"], "switchboard card [get] [OPTIONS] AGENT"),
        (&["card", "get"], "switchboard card get [OPTIONS] AGENT"),
        (&["skills"], "switchboard skills [OPTIONS] AGENT"),
        (&["conformance"], "switchboard conformance [OPTIONS] AGENT"),
        (&["check"], "switchboard conformance [OPTIONS] AGENT"),
        (&["task", "get"], "switchboard task get [OPTIONS] AGENT ID"),
        (&["task", "list"], "switchboard task list [OPTIONS] [AGENT]"),
        (&["task", "cancel"], "switchboard task cancel [OPTIONS] [AGENT] ID"),
        (&["task", "subscribe"], "switchboard task subscribe [OPTIONS] AGENT ID"),
        (&["task", "download"], "switchboard task download [OPTIONS] AGENT ID"),
        (&["task", "push-config", "set"], "switchboard task push-config set [OPTIONS] --url URL AGENT ID"),
    ] {
        let shown = help(command);
        assert!(shown.contains(&format!("Usage: {usage}\n")), "{shown}");
        assert!(shown.contains("The agent: a URL, a file with its card, or a name of the workspace"), "{shown}");
    }
    let send = help(&["send"]);
    assert!(send.contains("Exit codes: 0 done, whatever became of the task"), "{send}");
    let secret = Workspace::new().variable("A2ACLI_BEARER", "hunter2").variable("A2ACLI_API_KEY", "hunter2");
    assert!(!secret.run(&["send", "--help"]).stdout.contains("hunter2"));
}

#[test]
fn shells_get_what_they_complete_with() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let run = workspace.run(&["completion", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.contains("push-config") && run.stdout.contains("context-id"), "{shell}");
    }
    assert_eq!(workspace.run(&["completion", "csh"]).code, Some(2));
}

#[test]
fn help_has_one_form() {
    let workspace = Workspace::new();
    let plain = workspace.run(&["help", "send"]);
    for form in [&["--json"][..], &["-o", "json"], &["--output=json"]] {
        let run = workspace.run(&[&["help"], form, &["send"]].concat());
        assert_eq!((run.code, &run.stdout), (Some(0), &plain.stdout), "{}", run.stderr);
    }
}
