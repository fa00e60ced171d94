//! The artifact `diff`: what a task has changed, byte for byte as `git apply` takes it.

use std::path::Path;

use switchboard_a2a::{Artifact, PartContent, Task, TaskState};
use switchboard_cli_agents::WorktreePolicy;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::worktrees::{await_removal, branch, in_worktrees};

fn diff(task: &Task) -> &Artifact {
    task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == "diff").unwrap()
}

fn bytes(task: &Task) -> Vec<u8> {
    let part = &diff(task).parts[0];
    assert_eq!(part.media_type.as_deref(), Some("text/x-diff"));
    match &part.content {
        PartContent::Text(text) => text.clone().into_bytes(),
        PartContent::Raw(bytes) => bytes.clone(),
        other => panic!("no patch: {other:?}"),
    }
}

/// Applies a patch to the repository and says which tree comes of it.
fn applied(fixture: &Fixture, patch: &Path) -> String {
    fixture.git(&["apply", "--index", "--whitespace=nowarn", patch.to_str().unwrap()]);
    fixture.git(&["write-tree"])
}

/// Has a program change a repository with some files in it.
fn changed(files: &[(&str, &[u8])], program: &str) -> (Fixture, Task) {
    let fixture = Fixture::new();
    for (name, content) in files {
        std::fs::write(fixture.work().join(name), content).unwrap();
    }
    fixture.repository();
    let harness =
        Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, &format!("{program}; finish ok")));
    let task = harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        await_removal(&harness, &fixture).await;
        task
    });
    drop(harness);
    (fixture, task)
}

fn applies(files: &[(&str, &[u8])], program: &str) -> Task {
    let (fixture, task) = changed(files, program);
    let patch = fixture.path().join("patch");
    std::fs::write(&patch, bytes(&task)).unwrap();
    let tree = format!("{}^{{tree}}", branch(&task));
    assert_eq!(applied(&fixture, &patch), fixture.git(&["rev-parse", &tree]), "{program}");
    task
}

fn is_text(task: &Task) -> bool {
    matches!(diff(task).parts[0].content, PartContent::Text(_))
}

#[test]
fn a_diff_applies_whatever_was_changed() {
    let (dos, mixed, binary) = (&b"one\r\ntwo\r\nthree\r\n"[..], &b"a\r\nb\nc"[..], &b"\0\x01\xff\n"[..]);
    let texts = applies(
        &[("dos", dos), ("mixed", mixed), ("binary", binary)],
        r"printf 'one\r\nzwei\r\nthree\r\n' > dos; printf 'a\nb\r\nc\r\n' > mixed
        printf '\000\002\376\n\n' > binary; printf '\000' > new",
    );
    assert!(is_text(&texts));
    let latin = b"caf\xe9\nplain\n".as_slice();
    assert!(!is_text(&applies(&[("latin", latin)], r"printf 'caf\351s\nplain\n' > latin")));
    applies(
        &[("old", b"1\n2\n3\n4\n5\n6\n".as_slice()), ("gone", b"x\n".as_slice()), ("run", b"r\n".as_slice())],
        r#"mv old renamed; rm gone; chmod +x run; ln -s run link; printf 'no end' > end; : > empty
        printf 'x\n' > 'with space'; printf 'x\n' > "quote\"d"; printf 'x\n' > "$(printf 'latin\351')""#,
    );
}

#[test]
fn a_diff_without_room_for_all_leaves_out_whole_files_and_says_so() {
    let lines = r#"awk 'BEGIN { for (i = 0; i < 200000; i++) print "line " i }'"#;
    let (fixture, task) = changed(&[], &format!("{lines} > large; echo a > a; echo z > z; echo two >> readme"));
    let expected = "The diff is cut: it leaves out 1 of 4 files, which are too large for it: large";
    assert_eq!(diff(&task).description.as_deref(), Some(expected));
    let facts: serde_json::Value =
        diff(&task).metadata.as_ref().unwrap().get("switchboard/worktree").unwrap().read().unwrap();
    assert_eq!((&facts["isCut"], &facts["leftOut"]), (&true.into(), &serde_json::json!(["large"])));
    assert_eq!(data(&task, "result")["filesChanged"], serde_json::json!(["a", "large", "readme", "z"]));
    let patch = fixture.path().join("patch");
    std::fs::write(&patch, bytes(&task)).unwrap();
    applied(&fixture, &patch);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "A  a\nM  readme\nA  z");
    let whole = fixture.git(&["show", &format!("{}:large", branch(&task))]);
    assert_eq!(whole.lines().count(), 200_000, "it is whole on the branch");
}

#[test]
fn a_large_diff_that_fits_is_whole() {
    // It cannot be compressed.
    let task = applies(&[], "head -c 800000 /dev/urandom > noise; echo two >> readme");
    assert_eq!(diff(&task).description, None);
}
