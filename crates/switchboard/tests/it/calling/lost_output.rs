//! An answer that cannot be written is a failure, and said once.

use std::fs::File;
use std::process::{Command, Stdio};

use super::Fleet;

#[test]
fn a_disk_that_is_full_is_said_once_and_fails() {
    let fleet = Fleet::new();
    for arguments in [
        &["send", "echo", "hi", "-o", "json"][..],
        &["send", "echo", "hi", "-q"],
        &["task", "list", "echo", "--json"],
        &["card", "echo"],
        &["version"],
        &["completion", "bash"],
        &["--help"],
        &["send", "--help"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_switchboard"))
            .args(arguments)
            .current_dir(fleet.workspace.path())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert_eq!(told.matches("the output could not be written").count(), 1, "{arguments:?}: {told}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let fleet = Fleet::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["card", "echo"])
        .current_dir(fleet.workspace.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
