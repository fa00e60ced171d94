//! Merging what a task has done, once an operator has approved it: into which branch, and what is in the way.

use std::os::unix::fs::PermissionsExt;

use switchboard_a2a::{TaskId, TaskState};
use switchboard_cli_agents::{Settings, WorktreePolicy};
use switchboard_engine::Verdict;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::worktrees::{branches, in_worktrees, worktree_count};

const CHANGES: &str = r#"tell '{"kind":"init","session":"s"}'; echo two >> readme; echo new > ö.txt; finish ok"#;

pub(crate) fn merging(fixture: &Fixture, program: &str) -> Settings {
    in_worktrees(fixture, WorktreePolicy::Merge, program)
}

fn opened(program: &str) -> (Fixture, Harness) {
    let fixture = Fixture::new();
    fixture.repository();
    let harness = Harness::open(&fixture, merging(&fixture, program));
    (fixture, harness)
}

/// Nothing of a merge is left in the checkout or beside it, and git sees no changes in it.
pub(crate) fn is_clean(fixture: &Fixture) {
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    let left = std::fs::read_dir(fixture.work().join(".git")).unwrap().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("index.")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(worktree_count(fixture), 0);
}

pub(crate) fn read(fixture: &Fixture, file: &str) -> String {
    std::fs::read_to_string(fixture.work().join(file)).unwrap()
}

fn commit(fixture: &Fixture, file: &str, content: &str) {
    std::fs::write(fixture.work().join(file), content).unwrap();
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "--quiet", "-m", file]);
}

impl Harness {
    /// A task that has asked whether to merge.
    pub(crate) async fn asked(&self, text: &str) -> TaskId {
        let id = self.start(text).await;
        self.operator_question(&id, 1).await;
        id
    }

    async fn decided(&self, id: &TaskId, nth: usize, verdict: Verdict, words: &str) {
        let (question, _) = self.operator_question(id, nth).await;
        self.decide(id, question, verdict, words).await;
    }

    async fn approved(&self, id: &TaskId) -> String {
        self.decided(id, 1, Verdict::Approve, "yes").await;
        let task = self.ended(id).await;
        assert_eq!(task.status.state, TaskState::Completed);
        status_text(&task)
    }
}

#[test]
fn approved_work_is_merged_into_the_branch_that_is_checked_out_and_no_hook_runs() {
    let (fixture, harness) = opened(CHANGES);
    for hook in ["post-merge", "post-checkout", "pre-merge-commit", "reference-transaction", "post-index-change"] {
        let hook = fixture.work().join(".git/hooks").join(hook);
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}/hooked\n", fixture.notes().display())).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = format!("touch {}/monitored", fixture.notes().display());
    fixture.git(&["config", "core.fsmonitor", &monitor]);
    harness.run(async {
        let base = fixture.git(&["rev-parse", "HEAD"]);
        let id = harness.asked("add a file").await;
        let (_, question) = harness.operator_question(&id, 1).await;
        let asks = format!("Merge switchboard/{id} into main? It is a fast-forward.\n");
        assert!(question.starts_with(&asks), "{question}");
        for shown in ["| 2 files changed, 2 insertions(+)", "| +two\n", "| +new\n", "limits"] {
            assert_eq!(question.contains(shown), shown != "limits", "{shown} in {question}");
        }
        assert_eq!(harness.get(&id).await.status.state, TaskState::AuthRequired);
        assert_eq!((fixture.git(&["rev-parse", "HEAD"]), read(&fixture, "readme")), (base.clone(), "one\n".to_owned()));
        let told = harness.approved(&id).await;
        let tip = fixture.git(&["rev-parse", "main"]);
        assert_eq!(told, format!("ok\n\nMerged into main as {}.", &tip[..12]));
        assert_eq!(fixture.git(&["rev-parse", "main^"]), base, "a fast-forward");
        assert_eq!((read(&fixture, "readme").as_str(), read(&fixture, "ö.txt").as_str()), ("one\ntwo\n", "new\n"));
        assert_eq!((fixture.noted("hooked"), fixture.noted("monitored")), (None, None));
        fixture.git(&["config", "--unset", "core.fsmonitor"]);
        std::fs::remove_dir_all(fixture.work().join(".git/hooks")).unwrap();
        let outcome = serde_json::json!({
            "branch": format!("switchboard/{id}"), "into": "main", "isMerged": true, "commit": tip
        });
        assert_eq!(data(&harness.get(&id).await, "merge"), outcome);
        assert!(branches(&fixture).is_empty(), "a merged branch is removed");
        is_clean(&fixture);
    });
}

#[test]
fn rejected_work_stays_on_its_branch() {
    let (fixture, harness) = opened(CHANGES);
    harness.run(async {
        let id = harness.asked("add a file").await;
        harness.decided(&id, 1, Verdict::Reject, "no").await;
        let task = harness.ended(&id).await;
        let told = format!("ok\n\nNot merged: it was rejected. The work stays on the branch switchboard/{id}.");
        assert_eq!(ending(&task), (TaskState::Completed, told));
        assert_eq!(data(&task, "merge")["isMerged"], false);
        assert_eq!(
            (branches(&fixture), read(&fixture, "readme")),
            (vec![format!("switchboard/{id}")], "one\n".to_owned())
        );
        is_clean(&fixture);
    });
}

#[test]
fn work_that_is_behind_gets_a_merge_commit_and_files_that_git_does_not_know_stay() {
    let (fixture, harness) = opened("mkdir -p a/b; mv readme a/b/moved; echo x > new; finish ok");
    commit(&fixture, "other", "other\n");
    harness.run(async {
        let id = harness.asked("move").await;
        commit(&fixture, "later", "later\n");
        std::fs::create_dir(fixture.work().join("notes")).unwrap();
        std::fs::write(fixture.work().join("notes/mine"), "mine\n").unwrap();
        let told = harness.approved(&id).await;
        assert!(told.contains("Merged into main as "), "{told}");
        assert_eq!(fixture.git(&["log", "-1", "--format=%p"]).split(' ').count(), 2);
        assert_eq!(
            fixture.git(&["log", "-1", "--format=%s %cn"]),
            format!("Merge branch 'switchboard/{id}' into main Switchboard")
        );
        assert_eq!((read(&fixture, "a/b/moved").as_str(), read(&fixture, "later").as_str()), ("one\n", "later\n"));
        assert!(!fixture.work().join("readme").exists());
        assert_eq!(read(&fixture, "notes/mine"), "mine\n");
        std::fs::remove_dir_all(fixture.work().join("notes")).unwrap();
        is_clean(&fixture);
    });
}

#[test]
fn a_conflict_is_a_question_that_names_the_files_and_the_program_can_resolve_it() {
    let program = r#"tell '{"kind":"init","session":"s"}'; if [ "$said" = resolve ]; then echo "$said" > .turn; git checkout --quiet main -- readme; else echo theirs >> readme; fi
        finish "done: $said""#;
    let (fixture, harness) = opened(program);
    harness.run(async {
        let id = harness.asked("begin").await;
        commit(&fixture, "readme", "one\nours\n");
        let head = fixture.git(&["rev-parse", "HEAD"]);
        harness.decided(&id, 1, Verdict::Approve, "yes").await;
        let (_, question) = harness.operator_question(&id, 2).await;
        assert!(question.starts_with("Not merged: both sides have changed readme: "), "{question}");
        assert!(question.contains(r#""conflicts":["readme"]"#), "{question}");
        assert_eq!((fixture.git(&["rev-parse", "HEAD"]), read(&fixture, "readme")), (head, "one\nours\n".to_owned()));
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        harness.decided(&id, 2, Verdict::Answer, "resolve").await;
        let (question, words) = harness.operator_question(&id, 3).await;
        assert!(words.contains(".turn") && !words.starts_with("Not merged"), "{words}");
        harness.decide(&id, question, Verdict::Approve, "yes").await;
        let task = harness.ended(&id).await;
        assert!(status_text(&task).starts_with("done: resolve\n\nMerged into main"), "{}", status_text(&task));
        assert_eq!((read(&fixture, "readme").as_str(), read(&fixture, ".turn").as_str()), ("one\nours\n", "resolve\n"));
        is_clean(&fixture);
    });
}

#[test]
fn nothing_that_is_not_committed_is_touched() {
    let (fixture, harness) = opened(CHANGES);
    let write = |name: &str, text: &str| std::fs::write(fixture.work().join(name), text).unwrap();
    let remove = |name: &str| std::fs::remove_file(fixture.work().join(name)).unwrap();
    commit(&fixture, "other", "other\n");
    harness.run(async {
        let id = harness.asked("go").await;
        let head = fixture.git(&["rev-parse", "HEAD"]);
        let mut nth = 0;
        let mut refused = async |why: &str| {
            nth += 1;
            harness.decided(&id, nth, Verdict::Approve, "yes").await;
            let (_, question) = harness.operator_question(&id, nth + 1).await;
            assert!(question.starts_with("Not merged: ") && question.contains(why), "{why} in {question}");
            assert_eq!(fixture.git(&["rev-parse", "HEAD"]), head);
        };
        write("other", "changed\n");
        refused("changes that are not committed, in other:").await;
        fixture.git(&["add", "other"]);
        refused("changes that are not committed, in other:").await;
        assert_eq!(read(&fixture, "other"), "changed\n");
        fixture.git(&["reset", "--quiet", "--hard"]);
        write("ö.txt", "mine\n");
        refused("files that git does not know are in the way: ö.txt;").await;
        assert_eq!((read(&fixture, "ö.txt").as_str(), read(&fixture, "readme").as_str()), ("mine\n", "one\n"));
        remove("ö.txt");
        write(".git/MERGE_HEAD", &head);
        refused("in the middle of another operation (merge)").await;
        remove(".git/MERGE_HEAD");
        write(".git/index.lock", "");
        refused("another git command is at work").await;
        assert_eq!(read(&fixture, ".git/index.lock"), "", "it is not ours to remove");
        remove(".git/index.lock");
        fixture.git(&["update-index", "--assume-unchanged", "other"]);
        refused("hides other from git").await;
        fixture.git(&["update-index", "--no-assume-unchanged", "other"]);
        // The branch cannot be moved although everything else could be: what was begun is undone.
        write(".git/refs/heads/main.lock", "");
        refused("has got another commit meanwhile").await;
        remove(".git/refs/heads/main.lock");
        assert_eq!(
            (fixture.git(&["status", "--porcelain"]), read(&fixture, "readme")),
            (String::new(), "one\n".to_owned())
        );
        harness.decided(&id, nth + 1, Verdict::Approve, "yes").await;
        assert!(status_text(&harness.ended(&id).await).contains("Merged into main"));
        assert_eq!(read(&fixture, "readme"), "one\ntwo\n");
        is_clean(&fixture);
    });
}

#[test]
fn filters_and_merge_drivers_of_the_repository_are_not_run() {
    let fixture = Fixture::new();
    std::fs::write(fixture.work().join(".gitattributes"), "*.bin filter=evil\nreadme merge=evil\n").unwrap();
    fixture.repository();
    let touch = format!("touch {}/ran; cat", fixture.notes().display());
    for name in ["filter.evil.smudge", "filter.evil.clean", "merge.evil.driver"] {
        fixture.git(&["config", name, &touch]);
    }
    let program = r#"case "$said" in bin) echo x > a.bin;; *) sed -i 's/one/ONE/' readme;; esac; finish ok"#;
    let harness = Harness::open(&fixture, merging(&fixture, program));
    harness.run(async {
        let id = harness.asked("bin").await;
        harness.decided(&id, 1, Verdict::Approve, "yes").await;
        let (_, question) = harness.operator_question(&id, 2).await;
        assert!(question.starts_with("Not merged: a.bin pass through a filter"), "{question}");
        let other = harness.asked("text").await;
        commit(&fixture, "unrelated", "x\n");
        let told = harness.approved(&other).await;
        assert!(told.contains("Merged into main"), "{told}");
        assert_eq!((read(&fixture, "readme").as_str(), fixture.noted("ran")), ("ONE\n", None));
    });
}

#[test]
fn the_branch_is_the_one_that_was_checked_out_when_the_task_asked() {
    let (fixture, harness) = opened(CHANGES);
    harness.run(async {
        let id = harness.asked("go").await;
        fixture.git(&["checkout", "--quiet", "-b", "other"]);
        std::fs::write(fixture.work().join("readme"), "unfinished\n").unwrap();
        let told = harness.approved(&id).await;
        assert!(told.contains("Merged into main as "), "{told}");
        assert_eq!(fixture.git(&["show", "main:readme"]), "one\ntwo");
        assert_eq!(read(&fixture, "readme"), "unfinished\n", "the checkout has another branch");
        fixture.git(&["reset", "--quiet", "--hard"]);
        fixture.git(&["checkout", "--quiet", "--detach"]);
        let task = harness.send("again").await;
        let told = format!(
            "ok\n\nNot merged: the repository is on no branch. The work is on the branch switchboard/{}.",
            task.id
        );
        assert_eq!(ending(&task), (TaskState::Completed, told));
    });
}

#[test]
fn work_that_is_merged_already_or_changes_nothing_is_not_asked_for() {
    let (fixture, harness) = opened(r#"case "$said" in go) echo two >> readme;; esac; finish ok"#);
    harness.run(async {
        assert_eq!(ending(&harness.send("look").await), (TaskState::Completed, "ok".to_owned()));
        let id = harness.asked("go").await;
        fixture.git(&["merge", "--quiet", &format!("switchboard/{id}")]);
        assert_eq!(harness.approved(&id).await, "ok\n\nmain has the work already.");
        assert!(branches(&fixture).is_empty());
        is_clean(&fixture);
    });
}

#[test]
fn a_diff_beyond_its_limit_leaves_out_files_and_says_so() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = "seq 1000 > large; echo small > small; finish ok";
    let settings = Settings { merge_diff: 300, ..merging(&fixture, program) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let id = harness.asked("go").await;
        let (_, question) = harness.operator_question(&id, 1).await;
        assert!(question.contains("leaves out 1 files, for which it has no room (limits.mergeDiff, 300 bytes): large"));
        assert!(question.contains("| +small\n") && !question.contains("+999"), "{question}");
    });
}

#[test]
fn what_a_diff_says_cannot_be_taken_for_the_question() {
    let (_fixture, harness) = opened(r#"printf 'a\033[2K\nMerge nothing?\n\342\200\256evil' > x; finish ok"#);
    harness.run(async {
        let id = harness.asked("go").await;
        let (_, question) = harness.operator_question(&id, 1).await;
        assert!(!question.contains('\u{1b}') && !question.contains('\u{202e}'), "{question}");
        assert_eq!(question.lines().filter(|line| line.starts_with("Merge ")).count(), 1, "{question}");
    });
}

#[test]
fn a_task_that_is_canceled_while_it_asks_merges_nothing_and_keeps_its_branch() {
    let (fixture, harness) = opened(CHANGES);
    harness.run(async {
        let id = harness.asked("go").await;
        assert_eq!(harness.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
        assert_eq!(
            (branches(&fixture), read(&fixture, "readme")),
            (vec![format!("switchboard/{id}")], "one\n".to_owned())
        );
        is_clean(&fixture);
    });
}

#[test]
fn a_merge_waits_for_the_repository() {
    let fixture = Fixture::new();
    fixture.repository();
    let reviewer = Settings::new(
        "reviewer",
        switchboard_cli_agents::Worker::new(fixture.asking("hear; text on; await go; finish done")),
        fixture.work(),
    );
    let harness =
        Harness::with_reviewer(&fixture, merging(&fixture, CHANGES), switchboard_engine::Switches::default(), reviewer);
    harness.run(async {
        let id = harness.asked("go").await;
        let other = harness.start(Said::from("hold").with("targets", serde_json::json!(["reviewer"]))).await;
        harness.until(&other, |task| text(task, "assistant-response").is_some()).await;
        harness.decided(&id, 1, Verdict::Approve, "yes").await;
        let told = harness.until(&id, |task| status_text(task).contains("works in this repository")).await;
        assert_eq!((told.status.state, read(&fixture, "readme").as_str()), (TaskState::Working, "one\n"));
        fixture.allow("go");
        assert!(status_text(&harness.ended(&id).await).contains("Merged into main"));
    });
}
