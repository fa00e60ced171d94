//! Named pipes where files are read: to open one blocks until somebody writes to it.

use std::process::Command;

use switchboard_fleet::config::FleetConfig;
use switchboard_host::config::Overrides;

use crate::workspace::{Workspace, names};

const ECHO: &str = "agents: [{ name: echo, builtin: echo }]\n";

fn make_pipe(workspace: &Workspace, file: &str) {
    let made = Command::new("mkfifo").arg(workspace.path(file)).status().unwrap();
    assert!(made.success());
}

/// What a thread of its own comes to, so that one that blocks for ever fails the test.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(crate::HANG_GUARD).expect("it does not hang")
}

#[test]
fn a_named_pipe_among_the_files_of_agents_is_a_problem_and_hangs_nothing() {
    for pipe in ["agents.yaml", "agents.d/pipe.yaml", "switchboard.yaml"] {
        let workspace = Workspace::new(&[("agents.d/echo.yaml", ECHO)]);
        make_pipe(&workspace, pipe);
        let folder = workspace.folder().to_owned();
        let problems = in_time(move || FleetConfig::load(&folder, &Overrides::default())).unwrap_err().to_string();
        assert!(problems.contains(pipe) && problems.contains("is not a regular file"), "{problems}");
    }
}

#[test]
fn a_running_server_keeps_its_agents_beside_a_named_pipe() {
    let workspace = Workspace::new(&[("agents.yaml", ECHO)]);
    let mut files = workspace.agent_files();
    assert_eq!(names(&files.read().unwrap()), ["echo"]);
    std::fs::create_dir(workspace.path("agents.d")).unwrap();
    make_pipe(&workspace, "agents.d/pipe.yaml");
    let listing = in_time(move || files.read()).unwrap();
    assert_eq!(names(&listing), ["echo"]);
    let [problem] = &listing.problems[..] else { panic!("{:?}", listing.problems) };
    assert!(problem.wrong.contains("is not a regular file"), "{problem}");
}

#[test]
fn a_certificate_that_is_a_named_pipe_is_read_as_one_that_cannot_be() {
    let far = "agents: [{ name: far, url: \"https://far.example.com\", tls: { cert: far.pem, key: far.pem } }]\n";
    let workspace = Workspace::new(&[("agents.yaml", far)]);
    make_pipe(&workspace, "far.pem");
    let mut files = workspace.agent_files();
    let listing = in_time(move || files.read()).unwrap();
    assert_eq!(names(&listing), ["far"]);
}
