//! The folder with the pid files of the runs.

use std::fs;
use std::path::Path;

use switchboard_cli_agents::process::Orphans;

use crate::fixture::{GRACE, LIMITS, block_on, entries_in, is_alive, line, open, script_in};

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
        let mut child = children.spawn(script_in(path, "echo up; exec sleep 60"), LIMITS).await.unwrap();
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
