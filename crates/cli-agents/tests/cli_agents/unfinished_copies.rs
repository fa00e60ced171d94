//! Copies whose tasks take several turns, wait, or cannot be settled at once: nothing is lost, and nothing stays.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use switchboard_a2a::{Message, TaskId, TaskState};
use switchboard_cli_agents::adapters::{About, Adapter, Dialogue, Exit, Generic, Launch, Order, OrderError, Steps};
use switchboard_cli_agents::process::User;
use switchboard_cli_agents::{Settings, Worker, WorktreePolicy};
use switchboard_engine::Switches;

use crate::bench::*;
use crate::place::Place;
use crate::worktrees::{at_work, branch, branches, copies, copying, put_away};

/// Says what earlier turns have logged, and logs one more.
const LOGS: &str = r#"tell '{"kind":"init","session":"s"}'; echo "$said" >> log; text on; await "$said"
    finish "$(cat log | tr '\n' ' ')""#;

/// Sends a message to a task that is at work.
async fn add(bench: &Bench, id: &TaskId, text: &str) {
    let message = Message { task_id: Some(id.clone()), ..Said::from(text).0 };
    bench.try_send(message).await.unwrap();
}

#[test]
fn a_later_turn_of_a_task_goes_on_with_what_was_changed() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let place = Place::new();
        place.repository();
        let bench = Bench::open(&place, copying(&place, policy, LOGS));
        let id = at_work(&bench, "one");
        bench.run(async {
            add(&bench, &id, "two").await;
            place.allow("one");
            place.allow("two");
            let task = bench.ended(&id).await;
            assert_eq!(ending(&task), (TaskState::Completed, "one two ".to_owned()));
            assert!(text(&task, "diff").unwrap().contains("+one\n+two\n"), "the diff is of the whole task");
            put_away(&bench, &place).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&place), expected);
        });
    }
}

#[test]
fn a_later_turn_that_needs_no_copy_leaves_nothing_of_the_earlier_one() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let place = Place::new();
        place.repository();
        let bench = Bench::open(&place, copying(&place, policy, LOGS));
        let id = at_work(&bench, "one");
        bench.run(async {
            add(&bench, &id, " ").await;
            place.allow("one");
            let task = bench.ended(&id).await;
            assert_eq!(task.status.state, TaskState::Rejected, "{}", status_text(&task));
            put_away(&bench, &place).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&place), expected);
        });
    }
}

#[test]
fn a_task_that_changes_nothing_does_not_part_the_next_one_from_the_work_before() {
    let place = Place::new();
    place.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; [ "$said" = look ] || echo "$said" >> log
        finish "$(cat log | tr '\n' ' ')""#;
    let bench = Bench::open(&place, copying(&place, WorktreePolicy::Keep, program));
    bench.run(async {
        for (said, expected) in [("one", "one "), ("look", "one "), ("two", "one two ")] {
            let task = bench.send(within("c", said)).await;
            assert_eq!(ending(&task), (TaskState::Completed, expected.to_owned()));
        }
        put_away(&bench, &place).await;
        assert_eq!(branches(&place).len(), 2);
    });
}

#[test]
fn a_copy_stays_while_its_task_waits_to_be_taken_up_again() {
    let place = Place::new();
    place.repository();
    let program = r#"tell '{"kind":"init","session":"s"}'; echo "$1" >> log; text on
        [ "$1" = new ] && await never; await end; finish "$(cat log | tr '\n' ' ')""#;
    let settings = || Settings { idle: None, timeout: None, ..copying(&place, WorktreePolicy::Keep, program) };
    let bench = Bench::open(&place, settings());
    let ids = [at_work(&bench, "one"), at_work(&bench, "two")];
    bench.kill();
    // Only one of them has a place now.
    let switches = Switches { max_running: Some(1), ..Switches::default() };
    let bench = Bench::serving(&place, settings(), switches);
    bench.run(async {
        let noted = || place.noted("folders").unwrap().lines().count();
        bench.wait_for(|| (noted() == 3).then_some(())).await;
        assert_eq!(bench.agent.sweep_copies(&bench.engine).await, 1, "one waits");
        assert_eq!(copies(&place), 2);
        place.allow("end");
        for id in &ids {
            let task = bench.ended(id).await;
            assert_eq!(ending(&task), (TaskState::Completed, "new resume ".to_owned()));
        }
        put_away(&bench, &place).await;
    });
}

/// As if the server had been killed while it made or removed its only copy.
fn is_half(place: &Place) {
    let files = std::fs::read_dir(place.data().join("worktrees")).unwrap().map(|file| file.unwrap().path());
    let (records, folders): (Vec<_>, Vec<_>) = files.partition(|file| file.is_file());
    let record = std::fs::read_to_string(&records[0]).unwrap();
    std::fs::write(&records[0], record.replace("\"isReady\":true", "\"isReady\":false")).unwrap();
    std::fs::remove_file(folders[0].join("readme")).unwrap();
}

#[test]
fn half_a_copy_is_made_anew_or_removed_and_never_taken_for_work() {
    for resumes in [true, false] {
        let place = Place::new();
        place.repository();
        let session = if resumes { r#"tell '{"kind":"init","session":"s"}'"# } else { "" };
        let program = format!("{session}\ntext on; [ \"$1\" = new ] && await never; finish \"$(cat readme)\"");
        let settings = || Settings { idle: None, ..copying(&place, WorktreePolicy::Keep, &program) };
        let bench = Bench::open(&place, settings());
        let id = at_work(&bench, "go");
        bench.kill();
        is_half(&place);
        let bench = Bench::open(&place, settings());
        bench.run(async {
            let task = bench.ended(&id).await;
            match resumes {
                true => assert_eq!(ending(&task), (TaskState::Completed, "one".to_owned())),
                false => assert_eq!(reason(&task), "interrupted"),
            }
            bench.agent.sweep_copies(&bench.engine).await;
            put_away(&bench, &place).await;
            assert!(branches(&place).is_empty());
        });
    }
}

#[test]
fn work_that_cannot_be_committed_stays_until_it_can() {
    let place = Place::new();
    place.repository();
    // Git keeps branches as files: now there can be none below this one.
    place.git(&["branch", "switchboard"]);
    let bench = Bench::open(&place, copying(&place, WorktreePolicy::Keep, "echo half > half; finish ok"));
    bench.run(async {
        let task = bench.send("go").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
        let told = bench.told(&task.id).await;
        let note = "WORKING: What was changed could not be committed yet and stays in the copy: git update-ref: ";
        assert!(told.iter().any(|line| line.starts_with(note)), "{told:?}");
        assert_eq!(bench.agent.sweep_copies(&bench.engine).await, 0);
        assert_eq!(copies(&place), 1);
        place.git(&["branch", "-D", "switchboard"]);
        bench.agent.sweep_copies(&bench.engine).await;
        assert_eq!(copies(&place), 0);
        assert_eq!(place.git(&["ls-tree", "--name-only", &branch(&task)]), "half\nreadme");
    });
}

/// Another account if this one may become one, with a home of its own and the test's folders.
fn account(place: &Place) -> User {
    let own = place.path().metadata().unwrap();
    let (uid, gid) = if own.uid() == 0 { (65534, 65534) } else { (own.uid(), own.gid()) };
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for folder in [&home, &place.work(), &place.notes()] {
        let who = format!("{uid}:{gid}");
        assert!(Command::new("chown").arg("-R").arg(who).arg(folder).status().unwrap().success());
    }
    User { uid, gid, groups: vec![gid], home, name: "other".to_owned() }
}

#[test]
fn copies_of_another_account_are_in_its_home_and_belong_to_it() {
    let place = Place::new();
    place.repository();
    let user = account(&place);
    // The server itself would be told off for looking at somebody else's repository.
    let git = |args: &[&str]| place.git(&[&["-c", "safe.directory=*"], args].concat());
    let program = r#"mkdir closed; echo x > closed/x; chmod 500 closed; echo half > half; text on; [ "$said" = end ] || await never
        finish "$(id -u) $(stat -c %u half)""#;
    let settings =
        || Settings { idle: None, user: Some(user.clone()), ..copying(&place, WorktreePolicy::Keep, program) };
    let there = |folder: &Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let homes = || {
        let all = std::fs::read_dir(user.home.join(".switchboard/worktrees")).unwrap();
        all.map(|home| there(&home.unwrap().path())).sum::<usize>()
    };
    let bench = Bench::open(&place, settings());
    let lost = at_work(&bench, "stay");
    bench.kill();
    assert_eq!((homes(), there(&place.data().join("worktrees"))), (1, 1), "the copy there, and its record here");
    let bench = Bench::open(&place, settings());
    bench.run(async {
        let lost = bench.ended(&lost).await;
        let task = bench.send("end").await;
        assert_eq!(ending(&task), (TaskState::Completed, format!("{0} {0}", user.uid)));
        bench.agent.sweep_copies(&bench.engine).await;
        bench.wait_for(|| (homes() + there(&place.data().join("worktrees")) == 0).then_some(())).await;
        for task in [lost, task] {
            assert_eq!(git(&["ls-tree", "--name-only", &branch(&task)]), "closed\nhalf\nreadme");
            let own = place.work().join(".git/refs/heads").join(branch(&task)).metadata().unwrap();
            assert_eq!(own.uid(), user.uid, "git ran as somebody else");
        }
        assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    });
}

#[test]
fn the_work_of_a_task_is_kept_whenever_the_time_for_its_cancel_is_over() {
    for milliseconds in [5, 15, 30, 60, 120] {
        let place = Place::new();
        place.repository();
        let bench = Bench::open(&place, copying(&place, WorktreePolicy::Keep, "echo half > half; text on; hear"));
        let id = at_work(&bench, "go");
        bench.run(async {
            let late = async {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                bench.clock.advance(Duration::from_secs(3));
            };
            let (task, ()) = tokio::join!(bench.cancel(&id), late);
            let task = task.unwrap();
            put_away(&bench, &place).await;
            assert_eq!(branches(&place), [branch(&task)], "after {milliseconds} ms");
            assert_eq!(place.git(&["ls-tree", "--name-only", &branch(&task)]), "half\nreadme");
        });
    }
}

/// A program whose lines are read with a panic.
struct Unreadable(Generic);

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
fn a_turn_that_panics_leaves_no_copy() {
    for policy in [WorktreePolicy::Keep, WorktreePolicy::Remove] {
        let place = Place::new();
        place.repository();
        let worker = Worker::new(Unreadable(place.asking("echo half > half; text on; await never")));
        let bench = Bench::open(&place, Settings { worktree: policy, ..Settings::new("coder", worker, place.work()) });
        bench.run(async {
            let task = bench.send("go").await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "panic"));
            put_away(&bench, &place).await;
            let expected = if policy == WorktreePolicy::Keep { vec![branch(&task)] } else { Vec::new() };
            assert_eq!(branches(&place), expected);
            bench.wait_for(|| (bench.children.running() == 0).then_some(())).await;
        });
    }
}
