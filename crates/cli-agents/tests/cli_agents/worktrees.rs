//! Tasks that work in worktrees of a repository: what they change, and that nothing is left.

use std::collections::HashSet;

use switchboard_a2a::{Task, TaskId, TaskState};
use switchboard_cli_agents::{Settings, Worker, WorktreePolicy};

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;

/// An agent that works in worktrees. Its program has what it was told in `$said`.
pub(crate) fn in_worktrees(fixture: &Fixture, policy: WorktreePolicy, program: &str) -> Settings {
    let begin = r#"hear; said=${line#*'"text":"'}; said=${said%%'"'*}; echo "$PWD" >> "$NOTES/folders""#;
    let worker = Worker::new(Resuming::new(fixture.asking(&format!("{begin}\n{program}"))));
    Settings { worktree: policy, ..Settings::new("coder", worker, fixture.work()) }
}

pub(crate) fn branches(fixture: &Fixture) -> Vec<String> {
    let all = fixture.git(&["for-each-ref", "refs/heads", "--format=%(refname:short)"]);
    all.lines().filter(|name| *name != "main").map(str::to_owned).collect()
}

/// How many worktrees there are, of whatever one consists: its folder, its record, what git knows of it.
pub(crate) fn worktree_count(fixture: &Fixture) -> usize {
    let files = std::fs::read_dir(fixture.data().join("worktrees")).into_iter().flatten().flatten();
    let names: HashSet<_> = files.filter_map(|file| Some(file.path().file_stem()?.to_owned())).collect();
    // Not by `git worktree list`, which fails if one is removed while it looks.
    let known = std::fs::read_dir(fixture.work().join(".git/worktrees")).into_iter().flatten().count();
    names.len().max(known)
}

/// Waits until no worktree is left.
pub(crate) async fn await_removal(harness: &Harness, fixture: &Fixture) {
    harness.wait_for(|| (worktree_count(fixture) == 0).then_some(())).await;
}

pub(crate) fn branch(task: &Task) -> String {
    format!("switchboard/{}", task.id)
}

/// A task whose program has said something and goes on.
pub(crate) fn at_work(harness: &Harness, message: impl Into<Said>) -> TaskId {
    harness.run(async {
        let id = harness.start(message).await;
        harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
        id
    })
}

const CHANGES: &str = r#"tell '{"kind":"init","session":"s"}'; echo two >> readme; echo new > ö.txt; finish ok"#;

#[test]
fn what_a_task_changed_is_told_and_its_branch_kept_or_removed() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let hook = fixture.work().join(".git/hooks/post-checkout");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}/hooked\n", fixture.notes().display())).unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let harness = Harness::open(&fixture, in_worktrees(&fixture, policy, CHANGES));
        harness.run(async {
            let base = fixture.git(&["rev-parse", "HEAD"]);
            let task = harness.send("add a file\nand more").await;
            assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
            let patch = text(&task, "diff").unwrap();
            assert!(patch.contains("+two\n") && patch.contains("+++ b/ö.txt\n") && patch.contains("+new\n"), "{patch}");
            let diff = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == "diff").unwrap();
            assert_eq!(diff.parts[0].media_type.as_deref(), Some("text/x-diff"));
            let facts: serde_json::Value =
                diff.metadata.as_ref().unwrap().get("switchboard/worktree").unwrap().read().unwrap();
            match policy {
                WorktreePolicy::Keep => {
                    assert_eq!(facts, serde_json::json!({"branch": branch(&task), "base": base, "isCut": false}));
                    assert_eq!(data(&task, "agent-metadata")["branch"], branch(&task));
                }
                _ => {
                    assert_eq!(facts, serde_json::json!({"base": base, "isCut": false}));
                    assert_eq!(data(&task, "agent-metadata").get("branch"), None);
                }
            }
            assert_eq!(data(&task, "result")["filesChanged"], serde_json::json!(["readme", "ö.txt"]));
            await_removal(&harness, &fixture).await;
            assert_eq!(
                std::fs::read_to_string(fixture.work().join("readme")).unwrap(),
                "one\n",
                "the original is untouched"
            );
            match policy {
                WorktreePolicy::Keep => {
                    assert_eq!(branches(&fixture), [branch(&task)]);
                    assert_eq!(fixture.git(&["log", "-1", "--format=%s", &branch(&task)]), "add a file");
                    assert_eq!(fixture.git(&["show", &format!("{}:ö.txt", branch(&task))]), "new");
                }
                _ => assert!(branches(&fixture).is_empty()),
            }
            assert_eq!(fixture.noted("hooked"), None, "the repository's own hooks ran");
        });
    }
}

#[test]
fn a_task_that_changed_nothing_leaves_no_branch() {
    let fixture = Fixture::new();
    fixture.repository();
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, "finish ok"));
    harness.run(async {
        let task = harness.send("look").await;
        assert_eq!((task.status.state, text(&task, "diff").as_deref()), (TaskState::Completed, Some("")));
        await_removal(&harness, &fixture).await;
        assert!(branches(&fixture).is_empty());
    });
}

#[test]
fn a_later_task_of_the_conversation_goes_on_at_the_same_place_with_what_was_changed() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; echo "$1" >> log; finish "$(cat log | tr '\n' ' ')""#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    harness.run(async {
        let first = harness.send(within("c", "one")).await;
        let second = harness.send(within("c", "two")).await;
        assert_eq!(status_text(&second).trim(), "new resume");
        let folders = fixture.noted("folders").unwrap();
        let folders: Vec<&str> = folders.lines().collect();
        assert_eq!(folders[0], folders[1]);
        assert!(folders[0].starts_with(fixture.data().join("worktrees").to_str().unwrap()), "{folders:?}");
        let patch = text(&second, "diff").unwrap();
        assert!(patch.contains("+resume") && !patch.contains("+new"), "only what this task changed: {patch}");
        let mut expected = vec![branch(&first), branch(&second)];
        expected.sort();
        assert_eq!(branches(&fixture), expected);
        let other = harness.send(within("d", "three")).await;
        assert_eq!(status_text(&other).trim(), "new", "another conversation begins with the repository");
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn a_task_that_fails_still_tells_what_it_changed_and_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"echo half > half; tell '{"kind":"error","message":"no"}'"#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(ending(&task), (TaskState::Failed, "no".to_owned()));
        assert!(text(&task, "diff").unwrap().contains("+half"));
        assert_eq!(branches(&fixture), [branch(&task)]);
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn a_task_that_is_stopped_leaves_no_worktree_and_keeps_its_work_on_its_branch() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let harness = Harness::open(&fixture, in_worktrees(&fixture, policy, "echo half > half; text on; await never"));
        harness.run(async {
            let id = harness.start("go").await;
            harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
            let task = harness.cancel(&id).await.unwrap();
            assert_eq!(task.status.state, TaskState::Canceled);
            assert!(text(&task, "diff").unwrap().contains("+half"), "with `remove` this is all that stays");
            harness.wait_for(|| (worktree_count(&fixture) == 0).then_some(())).await;
            match policy {
                WorktreePolicy::Keep => {
                    harness
                        .wait_for(|| {
                            (fixture.git(&["ls-tree", "--name-only", &branch(&task)]) == "half\nreadme").then_some(())
                        })
                        .await;
                }
                _ => harness.wait_for(|| branches(&fixture).is_empty().then_some(())).await,
            }
        });
    }
}

#[test]
fn a_task_that_asks_and_is_canceled_tells_what_it_changed() {
    let fixture = Fixture::new();
    fixture.repository();
    let harness =
        Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Remove, "echo half > half; ask r1 Bash; hear"));
    harness.run(async {
        let asked = harness.send("go").await;
        let task = harness.cancel(&asked.id).await.unwrap();
        assert!(text(&task, "diff").unwrap().contains("+half"));
        let told = harness.told(&task.id).await;
        assert_eq!(told.last().unwrap(), "CANCELED: ", "the diff comes before the end: {told:?}");
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn a_task_that_says_more_than_a_task_can_hold_leaves_no_worktree() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"note pid $$; printf '{"kind":"tool_use","id":"1","tool":"%s"}\n' "$(head -c 9000000 /dev/zero | tr '\0' x)"; await never"#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Remove, program));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Failed, "{}", status_text(&task));
        assert_eq!(reason(&task), "too_large");
        harness.wait_for(|| (worktree_count(&fixture) == 0 && branches(&fixture).is_empty()).then_some(())).await;
        harness.wait_for(|| (harness.children.running() == 0).then_some(())).await;
    });
}

#[test]
fn tasks_in_worktrees_do_not_wait_for_each_other_and_a_folder_within_stays_one() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work().join("src")).unwrap();
    std::fs::write(fixture.work().join("src/code"), "x").unwrap();
    fixture.repository();
    let program = "text \"in $(basename \"$PWD\")\"; await end; finish ok";
    let settings =
        Settings { cwd: fixture.work().join("src"), ..in_worktrees(&fixture, WorktreePolicy::Keep, program) };
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(harness.start("go").await);
        }
        for id in &ids {
            let task = harness.until(id, |task| text(task, "assistant-response").is_some()).await;
            assert_eq!(text(&task, "assistant-response").unwrap(), "in src");
        }
        assert_eq!(worktree_count(&fixture), 5);
        fixture.allow("end");
        for id in &ids {
            assert_eq!(harness.ended(id).await.status.state, TaskState::Completed);
        }
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn a_folder_that_cannot_be_copied_is_said_to_be_one() {
    let fixture = Fixture::new();
    let open = |fixture: &Fixture| Harness::open(fixture, in_worktrees(fixture, WorktreePolicy::Keep, "finish ok"));
    let harness = open(&fixture);
    let expected = "this agent works in worktrees, and its folder is in no git repository";
    assert_eq!(ending(&harness.run(harness.send("go"))), (TaskState::Failed, expected.to_owned()));
    fixture.git(&["init", "--quiet"]);
    let expected = "this agent works in worktrees, and its repository has no commit";
    assert_eq!(ending(&harness.run(harness.send("go"))), (TaskState::Failed, expected.to_owned()));
}

#[test]
fn a_task_taken_up_again_finds_its_worktree_as_it_left_it() {
    let fixture = Fixture::new();
    fixture.repository();
    let program =
        r#"tell '{"kind":"init","session":"s"}'; echo "$1" >> log; text on; [ "$1" = new ] && await never; finish ok"#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    let id = at_work(&harness, "go");
    harness.kill();
    assert_eq!(worktree_count(&fixture), 1, "a killed server leaves the worktree");
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    harness.run(async {
        let task = harness.ended(&id).await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        let patch = text(&task, "diff").unwrap();
        assert!(patch.contains("+new\n+resume\n"), "{patch}");
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn worktrees_in_which_no_task_will_go_on_are_removed() {
    // It never names its session, so that it cannot be taken up again.
    swept("echo half > half; text on; await never");
}

#[test]
fn what_a_program_has_committed_itself_is_kept_too() {
    let commit = "git -c user.name=Own -c user.email=own@localhost commit --quiet -m own";
    swept(&format!("echo half > half; git add --all; {commit}; text on; await never"));
}

/// A killed server leaves a worktree with a file `half`, and its task cannot be taken up again.
fn swept(program: &str) {
    let fixture = Fixture::new();
    fixture.repository();
    let settings = || Settings { idle: None, ..in_worktrees(&fixture, WorktreePolicy::Keep, program) };
    let harness = Harness::open(&fixture, settings());
    let id = at_work(&harness, "go");
    harness.kill();
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        let task = harness.ended(&id).await;
        assert_eq!(reason(&task), "interrupted");
        let at_work = harness.start("go").await;
        harness.until(&at_work, |task| text(task, "assistant-response").is_some()).await;
        assert_eq!(worktree_count(&fixture), 2);
        harness.agent.sweep_worktrees(&harness.engine).await;
        assert_eq!(worktree_count(&fixture), 1, "that of the task at work stays");
        assert_eq!(harness.get(&at_work).await.status.state, TaskState::Working);
        assert_eq!(fixture.git(&["ls-tree", "--name-only", &branch(&task)]), "half\nreadme");
    });
}

#[test]
fn a_message_right_after_a_stop_finds_the_worktree_removed_and_what_was_changed() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        // What was changed takes its time to be committed.
        let program = r#"tell '{"kind":"init","session":"s"}'; echo "$1" >> log; [ "$1" = new ] && head -c 5000000 /dev/urandom > slow
            text on; [ "$1" = new ] && await never; finish "$(cat log | tr '\n' ' ')""#;
        let harness = Harness::open(&fixture, in_worktrees(&fixture, policy, program));
        harness.run(async {
            let id = harness.start(within("c", "one")).await;
            harness.until(&id, |task| text(task, "assistant-response").is_some()).await;
            harness.cancel(&id).await.unwrap();
            let task = harness.send(within("c", "two")).await;
            let expected = if policy == WorktreePolicy::Keep { "new resume" } else { "resume" };
            assert_eq!(status_text(&task).trim(), expected);
            assert!(text(&task, "diff").unwrap().contains("+resume"));
            await_removal(&harness, &fixture).await;
        });
    }
}

#[test]
fn what_a_lost_task_left_is_committed_before_its_place_is_used_again() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = "[ -e half ] || echo half > half; text on; await end; finish ok";
    let settings = || in_worktrees(&fixture, WorktreePolicy::Keep, program);
    let harness = Harness::open(&fixture, settings());
    let id = at_work(&harness, within("c", "one"));
    harness.kill();
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        let lost = harness.ended(&id).await;
        assert_eq!(reason(&lost), "interrupted");
        fixture.allow("end");
        let again = harness.send(within("c", "two")).await;
        assert_eq!(again.status.state, TaskState::Completed, "{}", status_text(&again));
        assert_eq!(fixture.git(&["ls-tree", "--name-only", &branch(&lost)]), "half\nreadme");
        await_removal(&harness, &fixture).await;
    });
}

#[test]
fn a_program_that_works_on_a_branch_of_its_own_loses_nothing() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; [ "$1" = new ] && git checkout --quiet -b own
        echo "$1" >> log; text on; [ "$1" = new ] && await never; finish ok"#;
    let settings = || in_worktrees(&fixture, WorktreePolicy::Keep, program);
    let harness = Harness::open(&fixture, settings());
    let id = at_work(&harness, "go");
    harness.kill();
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        let task = harness.ended(&id).await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        assert!(text(&task, "diff").unwrap().contains("+new\n+resume\n"));
        assert_eq!(fixture.git(&["show", &format!("{}:log", branch(&task))]), "new\nresume");
    });
}

#[test]
fn branches_of_others_are_never_removed() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = "git checkout --quiet -b mine; text on; await never";
    let settings = || Settings { idle: None, ..in_worktrees(&fixture, WorktreePolicy::Remove, program) };
    let harness = Harness::open(&fixture, settings());
    let id = at_work(&harness, "go");
    harness.kill();
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        harness.ended(&id).await;
        harness.agent.sweep_worktrees(&harness.engine).await;
        await_removal(&harness, &fixture).await;
        assert_eq!(fixture.git(&["branch", "--list", "mine"]).trim(), "mine");
    });
}
