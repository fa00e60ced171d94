//! Whatever a child does, ending it ends everything of it.

use std::time::Instant;

use futures_util::FutureExt;
use switchboard_cli_agents::process::Output;

use crate::fixture::{
    Fixture, GRACE, LONGEST, all, alone, block_on, guard_of, is_alive, line, own_children, state, until,
};

#[tokio::test]
async fn a_child_that_obeys_ends_at_once_and_as_it_likes() {
    let fixture = Fixture::patient();
    let mut child =
        fixture.sh("trap 'echo cleaned > cleaned; exit 0' TERM; echo up; while :; do sleep 0.01; done").await;
    assert_eq!(child.next().await, line("up"));
    assert_eq!((fixture.children.running(), fixture.entries()), (1, 1));
    let begun = Instant::now();
    let exit = child.end().await;
    assert!(begun.elapsed() < LONGEST, "it needed {:?}", begun.elapsed());
    assert_eq!((exit.code, exit.signal), (Some(0), None));
    assert!(fixture.folder.path().join("cleaned").exists());
    assert_eq!(child.end().await, exit, "once more changes nothing");
    assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
}

#[tokio::test]
async fn a_child_that_ignores_the_signal_is_killed_after_the_grace() {
    let fixture = Fixture::new();
    let mut child = fixture
        .sh("trap '' TERM INT HUP; sh -c 'echo $$ > below; while :; do sleep 1; done' & echo up; wait; wait")
        .await;
    assert_eq!(child.next().await, line("up"));
    let below = fixture.pid("below");
    let begun = Instant::now();
    let exit = child.end().await;
    assert!(begun.elapsed() >= GRACE, "it had only {:?}", begun.elapsed());
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    assert!(!is_alive(below));
}

#[tokio::test]
async fn a_stopped_child_is_woken_to_obey() {
    let fixture = Fixture::patient();
    let mut child = fixture.sh("trap 'exit 8' TERM; echo up; kill -STOP $$; while :; do sleep 0.01; done").await;
    assert_eq!(child.next().await, line("up"));
    let pid = child.pid().cast_signed();
    until("it to stop", || state(pid) == Some('T'));
    assert_eq!(child.end().await.code, Some(8));
}

#[tokio::test]
async fn no_process_is_asked_twice() {
    let fixture = Fixture::patient();
    let script = "trap 'echo asked >> asked' TERM; echo up; while [ ! -s asked ]; do sleep 0.01; done
                  i=0; while [ $i -lt 30 ]; do sleep 0.01; i=$((i+1)); done";
    let mut child = fixture.sh(script).await;
    assert_eq!(child.next().await, line("up"));
    child.end().await;
    assert_eq!(std::fs::read_to_string(fixture.folder.path().join("asked")).unwrap(), "asked\n");
}

#[tokio::test]
async fn grandchildren_end_too_wherever_they_went() {
    let fixture = Fixture::new();
    let script = "sh -c 'echo $$ > plain; sleep 3600' &
                  setsid sh -c 'echo $$ > session; trap \"\" TERM; while :; do sleep 1; done' &
                  (setsid sh -c 'echo $$ > orphan; exec sleep 3600' >/dev/null 2>&1 </dev/null &)
                  perl -e 'setpgrp(0, 0); open F, \">group\"; print F \"$$\\n\"; close F; sleep 3600' &
                  read wait";
    let mut child = fixture.sh(script).await;
    let pids = ["plain", "session", "orphan", "group"].map(|file| fixture.pid(file));
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    child.end().await;
    assert_eq!(pids.map(is_alive), [false; 4], "{pids:?}");
}

#[tokio::test]
async fn what_a_child_leaves_behind_ends_when_it_does() {
    let fixture = Fixture::new();
    let script = "(setsid sh -c 'echo $$ > left; exec sleep 3600' >/dev/null 2>&1 </dev/null &)
                  while [ ! -s left ]; do sleep 0.01; done; echo bye; exit 2";
    let mut child = fixture.sh(script).await;
    let said = all(&mut child).await;
    let [bye, Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((bye, exit.code), (&line("bye"), Some(2)));
    assert!(!is_alive(fixture.pid("left")));
    assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
}

#[tokio::test]
async fn dropping_a_child_or_its_end_ends_it_all_the_same() {
    let fixture = Fixture::new();
    let script = "trap '' TERM; sh -c 'echo $$ > below; sleep 3600' & echo up; while :; do sleep 1; done";
    let mut child = fixture.sh(script).await;
    assert_eq!(child.next().await, line("up"));
    let pid = child.pid().cast_signed();
    assert!(child.end().now_or_never().is_none(), "it has a grace");
    until("the end that no task waits for", || !is_alive(pid) && fixture.children.running() == 0);
    assert_eq!(child.end().await.signal, Some(9), "and it can still be asked for");

    let mut child = fixture.sh(script).await;
    assert_eq!(child.next().await, line("up"));
    let (pid, below) = (child.pid().cast_signed(), fixture.pid("below"));
    drop(child);
    until("the end of what was dropped", || !is_alive(pid) && !is_alive(below) && fixture.entries() == 0);
}

#[tokio::test]
async fn one_run_s_end_is_not_another_s() {
    let fixture = Fixture::new();
    let script = |name: &str| format!("(setsid sh -c 'echo $$ > {name}; exec sleep 3600' &) ; read wait");
    let mut first = fixture.sh(&script("first")).await;
    let mut second = fixture.sh(&script("second")).await;
    let pids = [fixture.pid("first"), fixture.pid("second")];
    first.end().await;
    assert_eq!(pids.map(is_alive), [false, true]);
    second.end().await;
    assert_eq!(pids.map(is_alive), [false, false]);
}

#[tokio::test]
async fn closing_ends_all() {
    let fixture = Fixture::new();
    let mut children = Vec::new();
    for _ in 0..5 {
        children.push(fixture.sh("trap '' TERM; echo up; setsid sleep 3600").await);
    }
    for child in &mut children {
        assert_eq!(child.next().await, line("up"));
    }
    tokio::time::timeout(LONGEST, fixture.children.close()).await.unwrap();
    assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
    for child in &mut children {
        assert!(matches!(child.next().await, Output::Ended(_)));
    }
}

/// A daemon that has shed everything: parent, session, files, environment.
const DAEMON: &str = "(setsid env -i /bin/sh -c 'echo $$ > daemon; trap \"\" TERM; while :; do /bin/sleep 1; done' \
                      >/dev/null 2>&1 </dev/null &)\nwhile [ ! -s daemon ]; do sleep 0.01; done; echo up; read wait";

#[test]
fn a_daemon_without_any_ties_ends_with_the_run() {
    alone("termination::a_daemon_without_any_ties_ends_with_the_run", || {
        block_on(async {
            let fixture = Fixture::exclusive();
            let mut child = fixture.sh(DAEMON).await;
            assert_eq!(child.next().await, line("up"));
            let daemon = fixture.pid("daemon");
            assert!(is_alive(daemon) && own_children().contains(&daemon), "it has come to us");
            let guard = guard_of(std::process::id()).unwrap();
            child.end().await;
            assert!(!is_alive(daemon));
            assert!(is_alive(guard), "the guard is a child of ours that belongs to no run");
            assert_eq!(own_children(), [0; 0]);
        });
    });
}

#[test]
fn zombies_that_come_to_us_are_reaped_and_other_runs_live_on() {
    alone("termination::zombies_that_come_to_us_are_reaped_and_other_runs_live_on", || {
        block_on(async {
            let fixture = Fixture::exclusive();
            let mut other = fixture.sh("(setsid sh -c 'echo $$ > kept; exec sleep 3600' &) ; echo up; read wait").await;
            assert_eq!(other.next().await, line("up"));
            let kept = fixture.pid("kept");
            let script =
                "i=0; while [ $i -lt 20 ]; do (setsid env -i /bin/true &); i=$((i+1)); done; echo up; read wait";
            let mut child = fixture.sh(script).await;
            assert_eq!(child.next().await, line("up"));
            until("twenty zombies", || own_children().len() >= 22);
            child.end().await;
            let mut left = own_children();
            left.sort_unstable();
            let mut expected = [other.pid().cast_signed(), kept];
            expected.sort_unstable();
            assert_eq!(left, expected);
            assert!(is_alive(kept));
            other.end().await;
            assert_eq!(own_children(), [0; 0]);
        });
    });
}

#[test]
fn a_child_that_forks_without_end_is_beaten() {
    alone("termination::a_child_that_forks_without_end_is_beaten", || {
        block_on(async {
            let fixture = Fixture::exclusive();
            // Always a new process, in a session of its own, and never longer than a moment. For ten seconds at most,
            // for a developer who breaks what is tested here.
            let script = "perl -MPOSIX -e '$SIG{TERM} = q(IGNORE); $SIG{CHLD} = q(IGNORE); $end = time + 10;
                          while (time < $end) { POSIX::setsid(); select(undef, undef, undef, 0.003); exit if fork() }' &
                          echo up; exec sleep 3600";
            let mut child = fixture.sh(script).await;
            assert_eq!(child.next().await, line("up"));
            let exit = tokio::time::timeout(LONGEST, child.end()).await.unwrap();
            assert!(exit.signal.is_some());
            assert_eq!(own_children(), [0; 0]);
        });
    });
}
