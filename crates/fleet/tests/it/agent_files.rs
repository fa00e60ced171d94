//! The files of agents while a server runs, read in the middle of a change.

use crate::workspace::{Workspace, names};

const ECHO: &str = "agents: [{ name: echo, builtin: echo }]\n";
const MORE: &str = "agents: [{ name: third, builtin: echo }]\n";

fn workspace() -> Workspace {
    Workspace::new(&[("agents.yaml", ECHO), ("agents.d/more.yaml", MORE)])
}

#[test]
fn a_file_that_is_moved_while_it_is_saved_removes_no_agent() {
    let workspace = workspace();
    let mut files = workspace.agent_files();
    assert_eq!(names(&files.read().unwrap()), ["echo", "third"]);
    for moved in ["agents.yaml", "agents.d/more.yaml", "agents.d"] {
        workspace.rename(moved, "aside");
        assert!(files.read().is_none() && files.is_unsettled(), "{moved} is read again in a moment");
        workspace.rename("aside", moved);
        assert!(files.read().is_none() && !files.is_unsettled(), "{moved} is as it was");
    }
    // It may come back with something else in it.
    workspace.remove("agents.d/more.yaml");
    assert!(files.read().is_none());
    workspace.write("agents.d/more.yaml", "agents: [{ name: fourth, builtin: echo }]\n");
    assert_eq!(names(&files.read().unwrap()), ["echo", "fourth"]);
}

#[test]
fn a_file_is_gone_once_it_was_missing_twice_in_a_row() {
    let workspace = workspace();
    let mut files = workspace.agent_files();
    files.read().unwrap();
    workspace.remove("agents.d/more.yaml");
    assert!(files.read().is_none());
    // Another file may change meanwhile.
    workspace.write("agents.yaml", "agents: [{ name: first, builtin: echo }]\n");
    assert_eq!(names(&files.read().unwrap()), ["first"]);
    assert!(files.read().is_none() && !files.is_unsettled());
}

#[test]
fn a_file_that_is_missing_when_an_operator_asks_is_gone_at_once() {
    let workspace = workspace();
    let mut files = workspace.agent_files();
    files.read().unwrap();
    files.ask_for_next();
    assert!(files.read().is_none(), "nothing has changed");
    workspace.remove("agents.d/more.yaml");
    assert!(files.read().is_none() && files.is_unsettled(), "it was asked for one reading, which has been");
    files.ask_for_next();
    assert_eq!(names(&files.read().unwrap()), ["echo"]);
    // What is half written is so for whoever asks.
    for half in ["", "agents: [{ name: ec"] {
        workspace.write("agents.yaml", half);
        files.ask_for_next();
        assert!(files.read().is_none() && files.is_unsettled(), "{half:?}");
        workspace.write("agents.yaml", ECHO);
        assert!(files.read().is_none() && !files.is_unsettled());
    }
}
