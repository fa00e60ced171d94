//! Copies whose tasks take several turns, wait, or cannot be settled at once: nothing is lost, and nothing stays.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use switchboard_a2a::{Message, TaskId, TaskState};
use switchboard_cli_agents::adapters::{About, Adapter, Declared, Dialogue, Exit, Launch, Order, OrderError, Steps};
use switchboard_cli_agents::process::User;
use switchboard_cli_agents::{Settings, Worker, WorktreePolicy};
use switchboard_engine::Switches;

use crate::fixture::Fixture;
use crate::harness::*;
use crate::worktrees::{at_work, await_removal, branch, branches, in_worktrees, worktree_count};

/// Says what earlier turns have logged, and logs one more.
const LOGS: &str = r#"tell '{"kind":"init","session":"s"}'; echo "$said" >> log; text on; await "$said"
    finish "$(cat log | tr '\n' ' ')""#;

/// Sends a message to a task that is at work.
async fn add(harness: &Harness, id: &TaskId, text: &str) {
    let message = Message { task_id: Some(id.clone()), ..Said::from(text).0 };
    harness.try_send(message).await.unwrap();
}

#[test]
fn a_later_turn_of_a_task_goes_on_with_what_was_changed() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let harness = Harness::open(&fixture, in_worktrees(&fixture, policy, LOGS));
        let id = at_work(&harness, "one");
        harness.run(async {
            add(&harness, &id, "two").await;
            fixture.allow("one");
            fixture.allow("two");
            let task = harness.ended(&id).await;
            assert_eq!(ending(&task), (TaskState::Completed, "one two ".to_owned()));
            assert!(text(&task, "diff").unwrap().contains("+one\n+two\n"), "the diff is of the whole task");
            await_removal(&harness, &fixture).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&fixture), expected);
        });
    }
}

#[test]
fn a_later_turn_that_needs_no_worktree_leaves_nothing_of_the_earlier_one() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let harness = Harness::open(&fixture, in_worktrees(&fixture, policy, LOGS));
        let id = at_work(&harness, "one");
        harness.run(async {
            add(&harness, &id, " ").await;
            fixture.allow("one");
            let task = harness.ended(&id).await;
            assert_eq!(task.status.state, TaskState::Rejected, "{}", status_text(&task));
            await_removal(&harness, &fixture).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&fixture), expected);
        });
    }
}

#[test]
fn a_task_that_changes_nothing_does_not_part_the_next_one_from_the_work_before() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; [ "$said" = look ] || echo "$said" >> log
        finish "$(cat log | tr '\n' ' ')""#;
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, program));
    harness.run(async {
        for (said, expected) in [("one", "one "), ("look", "one "), ("two", "one two ")] {
            let task = harness.send(within("c", said)).await;
            assert_eq!(ending(&task), (TaskState::Completed, expected.to_owned()));
        }
        await_removal(&harness, &fixture).await;
        assert_eq!(branches(&fixture).len(), 2);
    });
}

#[test]
fn a_worktree_stays_while_its_task_waits_to_be_taken_up_again() {
    let fixture = Fixture::new();
    fixture.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; echo "$1" >> log; text on
        [ "$1" = new ] && await never; await end; finish "$(cat log | tr '\n' ' ')""#;
    let settings = || Settings { idle: None, timeout: None, ..in_worktrees(&fixture, WorktreePolicy::Keep, program) };
    let harness = Harness::open(&fixture, settings());
    let ids = [at_work(&harness, "one"), at_work(&harness, "two")];
    harness.kill();
    // Only one of them has a place now.
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    let harness = Harness::serving(&fixture, settings(), switches);
    harness.run(async {
        let noted = || fixture.noted("folders").unwrap().lines().count();
        harness.wait_for(|| (noted() == 3).then_some(())).await;
        assert_eq!(harness.agent.sweep_worktrees(&harness.engine).await, 1, "one waits");
        assert_eq!(worktree_count(&fixture), 2);
        fixture.allow("end");
        for id in &ids {
            let task = harness.ended(id).await;
            assert_eq!(ending(&task), (TaskState::Completed, "new resume ".to_owned()));
        }
        await_removal(&harness, &fixture).await;
    });
}

/// As if the server had been killed while it made or removed its only worktree.
fn is_half(fixture: &Fixture) {
    let files = std::fs::read_dir(fixture.data().join("worktrees")).unwrap().map(|file| file.unwrap().path());
    let (records, folders): (Vec<_>, Vec<_>) = files.partition(|file| file.is_file());
    let record = std::fs::read_to_string(&records[0]).unwrap();
    std::fs::write(&records[0], record.replace("\"isReady\":true", "\"isReady\":false")).unwrap();
    std::fs::remove_file(folders[0].join("readme")).unwrap();
}

#[test]
fn half_a_worktree_is_made_anew_or_removed_and_never_taken_for_work() {
    for resumes in [true, false] {
        let fixture = Fixture::new();
        fixture.repository();
        let session = if resumes { r#"tell '{"kind":"init","session":"s"}'"# } else { "" };
        let program = format!("{session}\ntext on; [ \"$1\" = new ] && await never; finish \"$(cat readme)\"");
        let settings = || Settings { idle: None, ..in_worktrees(&fixture, WorktreePolicy::Keep, &program) };
        let harness = Harness::open(&fixture, settings());
        let id = at_work(&harness, "go");
        harness.kill();
        is_half(&fixture);
        let harness = Harness::open(&fixture, settings());
        harness.run(async {
            let task = harness.ended(&id).await;
            match resumes {
                true => assert_eq!(ending(&task), (TaskState::Completed, "one".to_owned())),
                false => assert_eq!(reason(&task), "interrupted"),
            }
            harness.agent.sweep_worktrees(&harness.engine).await;
            await_removal(&harness, &fixture).await;
            assert!(branches(&fixture).is_empty());
        });
    }
}

#[test]
fn work_that_cannot_be_committed_stays_until_it_can() {
    let fixture = Fixture::new();
    fixture.repository();
    // Git keeps branches as files: now there can be none below this one.
    fixture.git(&["branch", "switchboard"]);
    let harness = Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, "echo half > half; finish ok"));
    harness.run(async {
        let task = harness.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        let told = harness.told(&task.id).await;
        let note = "WORKING: What was changed could not be committed yet and stays in the worktree: git update-ref: ";
        assert!(told.iter().any(|line| line.starts_with(note)), "{told:?}");
        assert_eq!(harness.agent.sweep_worktrees(&harness.engine).await, 0);
        assert_eq!(worktree_count(&fixture), 1);
        fixture.git(&["branch", "-D", "switchboard"]);
        harness.agent.sweep_worktrees(&harness.engine).await;
        assert_eq!(worktree_count(&fixture), 0);
        assert_eq!(fixture.git(&["ls-tree", "--name-only", &branch(&task)]), "half\nreadme");
    });
}

/// Another account if this one may become one, with a home of its own and the test's folders.
fn account(fixture: &Fixture) -> User {
    let own = fixture.path().metadata().unwrap();
    let (uid, gid) = if own.uid() == 0 { (65534, 65534) } else { (own.uid(), own.gid()) };
    let home = fixture.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(fixture.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for folder in [&home, &fixture.work(), &fixture.notes()] {
        let who = format!("{uid}:{gid}");
        assert!(Command::new("chown").arg("-R").arg(who).arg(folder).status().unwrap().success());
    }
    User { uid, gid, groups: vec![gid], home, name: "other".to_owned() }
}

#[test]
fn worktrees_of_another_account_are_in_its_home_and_belong_to_it() {
    let fixture = Fixture::new();
    fixture.repository();
    let user = account(&fixture);
    // The server itself would be told off for looking at another account's repository.
    let git = |args: &[&str]| fixture.git(&[&["-c", "safe.directory=*"], args].concat());
    let program = r#"mkdir closed; echo x > closed/x; chmod 500 closed; echo half > half; text on; [ "$said" = end ] || await never
        finish "$(id -u) $(stat -c %u half)""#;
    let settings =
        || Settings { idle: None, user: Some(user.clone()), ..in_worktrees(&fixture, WorktreePolicy::Keep, program) };
    let there = |folder: &Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let homes = || {
        let all = std::fs::read_dir(user.home.join(".switchboard/worktrees")).unwrap();
        all.map(|home| there(&home.unwrap().path())).sum::<usize>()
    };
    let harness = Harness::open(&fixture, settings());
    let lost = at_work(&harness, "stay");
    harness.kill();
    assert_eq!((homes(), there(&fixture.data().join("worktrees"))), (1, 1), "the worktree there, and its record here");
    let harness = Harness::open(&fixture, settings());
    harness.run(async {
        let lost = harness.ended(&lost).await;
        let task = harness.send("end").await;
        assert_eq!(ending(&task), (TaskState::Completed, format!("{0} {0}", user.uid)));
        harness.agent.sweep_worktrees(&harness.engine).await;
        harness.wait_for(|| (homes() + there(&fixture.data().join("worktrees")) == 0).then_some(())).await;
        for task in [lost, task] {
            assert_eq!(git(&["ls-tree", "--name-only", &branch(&task)]), "closed\nhalf\nreadme");
            let own = fixture.work().join(".git/refs/heads").join(branch(&task)).metadata().unwrap();
            assert_eq!(own.uid(), user.uid, "git ran as another account");
        }
        assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    });
}

#[test]
fn the_work_of_a_task_is_kept_whenever_the_time_for_its_cancel_is_over() {
    for milliseconds in [5, 15, 30, 60, 120] {
        let fixture = Fixture::new();
        fixture.repository();
        let harness =
            Harness::open(&fixture, in_worktrees(&fixture, WorktreePolicy::Keep, "echo half > half; text on; hear"));
        let id = at_work(&harness, "go");
        harness.run(async {
            let late = async {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                harness.clock.advance(Duration::from_secs(3));
            };
            let (task, ()) = tokio::join!(harness.cancel(&id), late);
            let task = task.unwrap();
            await_removal(&harness, &fixture).await;
            assert_eq!(branches(&fixture), [branch(&task)], "after {milliseconds} ms");
            assert_eq!(fixture.git(&["ls-tree", "--name-only", &branch(&task)]), "half\nreadme");
        });
    }
}

/// A program whose lines are read with a panic.
struct Unreadable(Declared);

struct Panics;

impl Adapter for Unreadable {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        self.0.start(order).map(|(launch, _)| (launch, Box::new(Panics) as Box<dyn Dialogue>))
    }
}

impl Dialogue for Panics {
    fn line(&mut self, line: &str, _: &mut Steps) {
        panic!("{line}");
    }

    fn ended(&mut self, _: &Exit, _: &mut Steps) {}
}

#[test]
fn a_turn_that_panics_leaves_no_worktree() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let fixture = Fixture::new();
        fixture.repository();
        let worker = Worker::new(Unreadable(fixture.asking("echo half > half; text on; await never")));
        let harness =
            Harness::open(&fixture, Settings { worktree: policy, ..Settings::new("coder", worker, fixture.work()) });
        harness.run(async {
            let task = harness.send("go").await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "panic"));
            await_removal(&harness, &fixture).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&fixture), expected);
            harness.wait_for(|| (harness.children.running() == 0).then_some(())).await;
        });
    }
}
