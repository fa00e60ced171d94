//! The hidden command that becomes a child.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn exec_child(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_exec-child")).arg("exec-child").args(words).output().unwrap()
}

fn told(output: &Output) -> String {
    assert!(output.stdout.is_empty());
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(told.starts_with("switchboard exec-child: ") && told.lines().count() == 1, "{told}");
    told
}

#[test]
fn it_becomes_the_program_below_its_parent() {
    let myself = std::process::id().to_string();
    let output = exec_child(&[&myself, "--", "/bin/sh", "-c", "echo $1; exit 7", "sh", "--user"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"--user\n"[..]));
}

#[test]
fn a_child_of_another_process_exits() {
    let output = exec_child(&["1", "--", "/bin/sh", "-c", "echo never"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(told(&output).contains("process 1, which started this, is gone"));
}

#[test]
fn it_says_what_is_wrong_in_one_line() {
    let myself = std::process::id().to_string();
    let missing = exec_child(&[&myself, "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(told(&missing).contains("cannot run /no/such/program"));
    let directory = exec_child(&[&myself, "--", "/"]);
    assert_eq!(directory.status.code(), Some(126));
    assert!(told(&directory).contains("cannot run /: "));
    let wrong: [&[&str]; 9] = [
        &[],
        &["x", "--", "/bin/true"],
        &[&myself],
        &[&myself, "/bin/true"],
        &[&myself, "--"],
        &[&myself, "--user", "0:0", "--", "/bin/true"],
        &[&myself, "--user", "0:0:0:0", "--", "/bin/true"],
        &[&myself, "--user", "a:b:c", "--", "/bin/true"],
        // The number that means "leave it as it is": root would stay root.
        &[&myself, "--user", "4294967295:4294967295:", "--", "/bin/true"],
    ];
    let guard = exec_child(&["guard", "/no/such/folder"]);
    assert_eq!((guard.status.code(), guard.stdout.as_slice()), (Some(2), &b""[..]));
    for words in wrong {
        let output = exec_child(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(told(&output).contains("usage: exec-child PARENT_PID"), "{words:?}");
    }
}

#[test]
fn a_program_out_of_an_accounts_reach_is_to_be_installed_elsewhere() {
    if !rustix::process::geteuid().is_root() {
        // Only root can become another user.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    let program = folder.path().join("agent");
    std::fs::copy("/bin/true", &program).unwrap();
    let (myself, program) = (std::process::id().to_string(), program.to_str().unwrap());
    let output = exec_child(&[&myself, "--user", "65534:65534:", "--", program]);
    assert_eq!(output.status.code(), Some(126));
    let expected = "User 65534 must be able to reach it: install it elsewhere, such as in /usr/local/bin";
    assert!(told(&output).contains(expected), "{}", told(&output));
    assert_eq!(exec_child(&[&myself, "--", program]).status.code(), Some(0));
}
