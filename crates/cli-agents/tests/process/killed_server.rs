//! A server that was killed: what it has left is ended by its guard, or by the next server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use switchboard_cli_agents::process::{Orphans, User};

use crate::fixture::{
    GRACE, LIMITS, block_on, entries_in, guard_of, is_alive, line, open, pid_in, scene_command, script_in, until,
};

/// Where the scene plays.
const FOLDER: &str = "SWITCHBOARD_TEST_FOLDER";

/// Who plays it, if it is not us.
const USER: &str = "SWITCHBOARD_TEST_USER";

/// The test that is a server when it is started with a folder to be one in.
const SERVER: &str = "killed_server::what_a_server_and_its_guard_left_is_ended_by_the_next";

/// The server that is killed.
fn serve(folder: &Path) {
    block_on(async {
        let (children, orphans) = open(&folder.join("ledger"), true, GRACE);
        assert_eq!(orphans, Orphans::default());
        let script = "sh -c 'echo $$ > plain; trap \"\" TERM; while :; do sleep 1; done' &
                      setsid sh -c 'echo $$ > session; exec sleep 3600' >/dev/null 2>&1 </dev/null &
                      (setsid sh -c 'echo $$ > orphan; trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &)
                      while [ ! -s plain -o ! -s session -o ! -s orphan ]; do sleep 0.01; done
                      echo $$ > root; echo up; exec sleep 3600";
        let mut command = script_in(folder, script);
        command.user = std::env::var(USER).ok().map(|name| User::find(&name).unwrap());
        let mut child = children.spawn(command, LIMITS).await.unwrap();
        assert_eq!(child.next().await, line("up"));
        std::future::pending::<()>().await;
    });
}

/// A server that was killed, and its guard.
struct Killed {
    guard: i32,
}

/// Sets the scene, and kills the server; its guard before it, if that is not to do its work. The child must have no other
/// reason to end than that: it does not read.
fn kill_server(folder: &Path, user: Option<&str>, with_guard: bool) -> Killed {
    let mut server = scene_command(SERVER);
    server.env(FOLDER, folder).envs(user.map(|name| (USER, name))).stdout(Stdio::null());
    let mut server = server.spawn().unwrap();
    pid_in(folder, "root");
    until("the run to be written down", || entries_in(&folder.join("ledger")) == 1);
    let guard = guard_of(server.id()).unwrap();
    if with_guard {
        kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
        until("the end of the guard", || !is_alive(guard));
    }
    kill_process(Pid::from_child(&server), Signal::KILL).unwrap();
    server.wait().unwrap();
    Killed { guard }
}

const GRANDCHILDREN: [&str; 3] = ["plain", "session", "orphan"];

#[test]
fn a_child_of_another_user_dies_with_the_server_too() {
    if !rustix::process::geteuid().is_root() {
        // Only root can start one; that this is told is tested where children are started.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    kill_server(path, Some("nobody"), false);
    for file in ["root"].iter().chain(&GRANDCHILDREN) {
        let pid = pid_in(path, file);
        until("the end of all, with the server", || !is_alive(pid));
    }
}

#[test]
fn what_a_wrapper_has_started_dies_with_the_server_and_no_restart_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let killed = kill_server(path, None, false);
    for file in ["root"].iter().chain(&GRANDCHILDREN) {
        let pid = pid_in(path, file);
        until("the end of all, with the server", || !is_alive(pid));
    }
    until("the guard to leave when its work is done", || !is_alive(killed.guard));
    let (_, orphans) = open(&path.join("ledger"), false, GRACE);
    assert_eq!(orphans, Orphans::default(), "nothing is left for the next server");
}

#[test]
fn the_guard_of_a_killed_server_leaves_the_next_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let killed = kill_server(path, None, false);
    block_on(async {
        let (children, _) = open(&path.join("ledger"), false, GRACE);
        let mut child = children.spawn(script_in(path, "echo up; exec sleep 3600"), LIMITS).await.unwrap();
        assert_eq!(child.next().await, line("up"));
        until("the end of the earlier guard", || !is_alive(killed.guard));
        assert!(is_alive(child.pid().cast_signed()), "a run of the next server, with the number of one of the first");
        child.end().await;
    });
}

#[test]
fn what_a_server_and_its_guard_left_is_ended_by_the_next() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return serve(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    kill_server(path, None, true);
    let root = pid_in(path, "root");
    until("the end of the child, with the server", || !is_alive(root));
    let left = GRANDCHILDREN.map(|file| pid_in(path, file));
    assert_eq!(left.map(is_alive), [true; 3], "these outlive it");
    let ledger = path.join("ledger");
    assert_eq!(entries_in(&ledger), 1);
    fs::write(ledger.join("2.run"), "{\"pid\": 1, \"sta").unwrap();

    // This process is not that server, and has other children.
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let (children, orphans) = open(&ledger, false, GRACE);
    assert_eq!(left.map(is_alive), [false; 3]);
    assert!(orphans.ended >= 3 && orphans.left == 0, "{orphans:?}");
    assert_eq!(entries_in(&ledger), 0);
    assert_eq!(children.running(), 0);
    assert!(is_alive(bystander.id().cast_signed()));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    drop(children);
    let (_, orphans) = open(&ledger, false, GRACE);
    assert_eq!(orphans, Orphans::default(), "nothing is left for a third");
}
