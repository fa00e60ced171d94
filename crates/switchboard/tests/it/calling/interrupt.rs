//! Ctrl-C: the task is never lost, and stopped at the agent only if the user confirms it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Fleet;
use super::terminal::{Terminal, interrupt, still};

/// The state of a task.
/// The state of a task once its agent has begun.
fn state(fleet: &Fleet, id: &str) -> Value {
    loop {
        let state = fleet.run(&["task", "get", "probe", id, "--json"]).json()["status"]["state"].clone();
        if state != "TASK_STATE_SUBMITTED" {
            return state;
        }
    }
}

#[test]
fn in_a_pipe_it_is_said_how_to_go_on_and_the_task_goes_on() {
    let fleet = Fleet::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["send", "probe", "hold"])
        .current_dir(fleet.workspace.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.starts_with("state: ")), "it has begun");
    interrupt(&child);
    let said: Vec<String> = said.filter(|line| !line.starts_with("state: ")).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(130), Vec::new()), "{said:?}");
    let next = said[1].strip_prefix("next: switchboard ").unwrap();
    let id = next.rsplit(' ').next().unwrap();
    assert_eq!(
        fleet.stable(&said.join("\n")),
        "task ID1 goes on without us\nnext: switchboard task get probe --wait ID1\nor stop it: switchboard task cancel probe ID1"
    );
    assert_eq!(state(&fleet, id), "TASK_STATE_WORKING");
    let stop = said[2].strip_prefix("or stop it: switchboard ").unwrap();
    assert_eq!(fleet.run(&stop.split(' ').collect::<Vec<_>>()).code, Some(0));
    assert_eq!(state(&fleet, id), "TASK_STATE_CANCELED");
}

#[test]
fn on_a_terminal_it_is_asked_and_yes_stops_the_task() {
    let fleet = Fleet::new();
    let mut terminal = Terminal::run(&fleet.workspace, &["send", "probe", "hold"]);
    terminal.until("working");
    terminal.interrupt();
    terminal.until("cancel the task at the agent? [y/N] ");
    terminal.say("y");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    let shown = "\ncancel the task at the agent? [y/N] y\ntask: ID1\ncontext: ID2\nstate: canceled\n";
    assert_eq!(fleet.stable(&still(&screen)), shown);
    assert!(screen.contains("calling 0."), "the line moves meanwhile: {screen:?}");
}

#[test]
fn no_or_ctrl_c_once_more_leaves_the_task_alone() {
    let fleet = Fleet::new();
    for answer in ["", "no", "^C"] {
        let mut terminal = Terminal::run(&fleet.workspace, &["send", "probe", "hold"]);
        terminal.until("working");
        terminal.interrupt();
        terminal.until("[y/N] ");
        match answer {
            "^C" => terminal.interrupt(),
            answer => terminal.say(answer),
        }
        let (screen, code) = terminal.end();
        assert_eq!(code, Some(130), "{screen}");
        let still = still(&screen);
        let id = still.split("switchboard task cancel probe ").nth(1).unwrap().trim();
        assert_eq!(state(&fleet, id), "TASK_STATE_WORKING", "{answer:?}: {still}");
    }
}

#[test]
fn before_the_agent_has_answered_nothing_more_is_known() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let workspace = crate::program::Workspace::new();
    let mut terminal = Terminal::run(&workspace, &["send", &silent.local_addr().unwrap().to_string(), "hi"]);
    terminal.until("calling");
    // The client is connected and waits for the reply.
    let held = silent.accept().unwrap();
    terminal.interrupt();
    let (screen, code) = terminal.end();
    drop(held);
    assert_eq!((still(&screen).as_str(), code), ("stopped; the agent may have got the message\n", Some(130)));
}
