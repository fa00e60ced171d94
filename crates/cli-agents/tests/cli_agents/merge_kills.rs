//! A server that is killed anywhere in a merge: the next one finishes it, and nothing of anybody's is lost.

use std::path::PathBuf;

use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::Verdict;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::merges::{is_clean, merging, read};
use crate::worktrees::branches;

const FILES: usize = 600;

/// A task that asks whether to merge a change of many files, while the branch has something of its own.
fn opened() -> (Fixture, Harness, TaskId) {
    let fixture = Fixture::new();
    for number in 0..FILES {
        std::fs::write(fixture.work().join(format!("file-{number:03}")), "old\n").unwrap();
    }
    fixture.repository();
    let harness = open(&fixture);
    let id = harness.run(harness.asked("go"));
    std::fs::write(fixture.work().join("beside"), "beside\n").unwrap();
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "--quiet", "-m", "beside"]);
    (fixture, harness, id)
}

fn open(fixture: &Fixture) -> Harness {
    let program =
        "for file in file-*; do echo new > $file; done; rm file-000; mkdir dir; echo new > dir/added; finish ok";
    Harness::open(fixture, merging(fixture, program))
}

/// A moment of a merge: what it is called, and whether it is there, as can be seen from outside.
type Moment = (&'static str, fn(&Fixture) -> bool);

const MOMENTS: [Moment; 7] = [
    ("nothing is done", |_| true),
    ("its record is written", |fixture| record(fixture).is_some()),
    ("the index is locked", |fixture| fixture.work().join(".git/index.lock").symlink_metadata().is_ok()),
    ("a file is removed", |fixture| !fixture.work().join("file-000").exists()),
    ("a file is written", |fixture| fixture.work().join("dir/added").exists()),
    ("the last file is written", |fixture| has(fixture, "file-599", "new\n")),
    ("the branch is moved", |fixture| {
        std::fs::read_to_string(fixture.work().join(".git/logs/HEAD")).unwrap().contains("approved work")
    }),
];

/// Whether a file has this content. It may be missing for a moment while git replaces it.
fn has(fixture: &Fixture, file: &str, content: &str) -> bool {
    std::fs::read_to_string(fixture.work().join(file)).is_ok_and(|found| found == content)
}

fn record(fixture: &Fixture) -> Option<PathBuf> {
    let files = std::fs::read_dir(fixture.data().join("worktrees")).ok()?.flatten();
    files.map(|file| file.path()).find(|path| path.extension().is_some_and(|kind| kind == "merge"))
}

#[test]
fn a_merge_is_made_once_whenever_the_server_is_killed() {
    for (moment, is_there) in MOMENTS {
        let (fixture, harness, id) = opened();
        harness.run(async {
            let (question, _) = harness.operator_question(&id, 1).await;
            harness.decide(&id, question, Verdict::Approve, "yes").await;
            while !is_there(&fixture) {
                tokio::task::yield_now().await;
            }
        });
        harness.kill();
        // What a kill can leave of a file, and what a person writes before the server is back.
        let is_halfway =
            record(&fixture).is_some_and(|file| std::fs::read_to_string(file).unwrap().contains(r#""isBegun":true"#));
        let is_old = |name: &str| has(&fixture, name, "old\n");
        let (torn, edited) = ("file-300", "file-301");
        let is_edited = is_halfway && is_old(torn) && is_old(edited);
        if is_edited {
            std::fs::write(fixture.work().join(torn), "").unwrap();
            std::fs::write(fixture.work().join(edited), "mine\n").unwrap();
        }
        let harness = open(&fixture);
        harness.run(async {
            let task = harness.ended(&id).await;
            assert_eq!(task.status.state, TaskState::Completed, "{moment}: {}", status_text(&task));
            assert!(status_text(&task).contains("Merged into main as "), "{moment}: {}", status_text(&task));
            if is_edited {
                assert_eq!(read(&fixture, edited), "mine\n", "{moment}: a person's words are lost");
                std::fs::write(fixture.work().join(edited), "new\n").unwrap();
            }
            harness.agent.sweep_worktrees(&harness.engine).await;
        });
        assert_eq!(fixture.git(&["log", "--merges", "--format=%s"]).lines().count(), 1, "{moment}");
        let files = (1..FILES).map(|number| format!("file-{number:03}"));
        let wrong: Vec<_> =
            files.map(|name| (read(&fixture, &name), name)).filter(|(text, _)| text != "new\n").collect();
        assert!(wrong.is_empty(), "{moment}: {wrong:?}");
        assert_eq!(read(&fixture, "dir/added"), "new\n", "{moment}");
        assert!(branches(&fixture).is_empty(), "{moment}");
        is_clean(&fixture);
    }
}

#[test]
fn a_question_whether_to_merge_survives_a_restart() {
    let (fixture, harness, id) = opened();
    harness.kill();
    let harness = open(&fixture);
    harness.run(async {
        assert_eq!(harness.get(&id).await.status.state, TaskState::AuthRequired);
        let (question, _) = harness.operator_question(&id, 1).await;
        harness.decide(&id, question, Verdict::Approve, "yes").await;
        assert!(status_text(&harness.ended(&id).await).contains("Merged into main as "));
        harness.agent.sweep_worktrees(&harness.engine).await;
    });
    is_clean(&fixture);
}
