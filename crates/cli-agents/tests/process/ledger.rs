//! The folder with the pid files of the runs.

use std::fs;
use std::path::Path;

use switchboard_cli_agents::process::Orphans;

use crate::fixture::{GRACE, LIMITS, alone, block_on, entries_in, is_alive, line, open, script_in, until};

fn name(ledger: &Path) -> String {
    fs::read_to_string(ledger.join("name")).unwrap()
}

#[test]
fn what_is_broken_in_the_folder_is_removed_or_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("deep/ledger");
    drop(open(&ledger, false, GRACE));
    let before = name(&ledger);
    for (file, content) in [("8.run", "{\"pid\":"), ("9.run", ""), ("10.run.half", "{}"), ("junk", "\u{0}")] {
        fs::write(ledger.join(file), content).unwrap();
    }
    drop(open(&ledger, false, GRACE));
    assert_eq!((entries_in(&ledger), name(&ledger)), (0, before.clone()));
    fs::write(ledger.join("name"), "\u{1}half").unwrap();
    drop(open(&ledger, false, GRACE));
    assert!(name(&ledger) != before && name(&ledger).len() > 32, "{}", name(&ledger));
}

#[test]
fn a_copy_of_the_folder_has_a_name_of_its_own_and_nothing_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (first, second, moved) = (path.join("first"), path.join("second"), path.join("moved"));
    block_on(async {
        let (children, _) = open(&first, false, GRACE);
        let mut child = children.spawn(script_in(path, "echo up; exec sleep 3600"), LIMITS).await.unwrap();
        assert_eq!(child.next().await, line("up"));
        fs::create_dir(&second).unwrap();
        for file in fs::read_dir(&first).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), second.join(file.file_name())).unwrap();
        }
        let (_copied, orphans) = open(&second, false, GRACE);
        assert_eq!((orphans, entries_in(&second)), (Orphans::default(), 0));
        assert_ne!(name(&first), name(&second));
        assert!(is_alive(child.pid().cast_signed()));
        child.end().await;
        let before = name(&first);
        drop(children);
        fs::rename(&first, &moved).unwrap();
        drop(open(&moved, false, GRACE));
        assert_eq!(name(&moved), before, "moved is not copied");
    });
}

/// A field of `/proc/PID/stat`, by its number in the manual.
fn stat(pid: i32, field: usize) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(field - 3).unwrap().parse().unwrap()
}

#[test]
fn only_the_very_process_of_a_record_is_ended_and_never_the_server_itself() {
    alone("ledger::only_the_very_process_of_a_record_is_ended_and_never_the_server_itself", || {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), false, GRACE));
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let here = format!("{} {}", boot_id.trim(), fs::read_link("/proc/self/ns/pid").unwrap().display());
        let mut sleeper = std::process::Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
        let (pid, myself) = (sleeper.id().cast_signed(), std::process::id().cast_signed());
        until("a session of its own", || stat(pid, 6) == u64::from(sleeper.id()));
        let (start, my_start) = (stat(pid, 22), stat(myself, 22));
        for (root, start, boot, is_spared) in [
            (pid, start, "another boot", true),
            (pid, start + 1, here.as_str(), true),
            (myself, my_start, here.as_str(), true),
            (pid, start, here.as_str(), false),
        ] {
            let record =
                format!(r#"{{"pid":{root},"start":{start},"boot":"{boot}","marker":"no.such.marker","label":"test"}}"#);
            fs::write(folder.path().join("7.run"), record).unwrap();
            let (_children, orphans) = open(folder.path(), false, GRACE);
            assert_eq!((is_alive(pid), orphans.left), (is_spared, 0), "{root} {start} {boot}");
            assert_eq!(entries_in(folder.path()), 0);
        }
        sleeper.wait().unwrap();
    });
}
