//! What is written to a child.

use std::time::{Duration, Instant};

use switchboard_cli_agents::process::{Output, WriteError};

use crate::fixture::{Fixture, LONGEST, all, line};

#[tokio::test]
async fn lines_arrive_in_order_and_the_end_after_them() {
    let fixture = Fixture::new();
    let mut child = fixture.sh("cat; echo end").await;
    for number in 0..200 {
        child.write(format!("line {number} {}", "ö".repeat(1000))).unwrap();
    }
    child.close_input();
    assert_eq!(child.write("late".to_owned()), Err(WriteError::Closed));
    let said = all(&mut child).await;
    assert_eq!(said.len(), 202);
    assert_eq!(said.get(199), Some(&line(format!("line 199 {}", "ö".repeat(1000)))));
    assert_eq!(said.get(200), Some(&line("end")));
}

#[tokio::test]
async fn without_input_there_is_only_its_end() {
    let fixture = Fixture::new();
    let mut command = fixture.script("cat; echo end");
    command.input = false;
    let mut child = fixture.children.spawn(command, crate::fixture::LIMITS).await.unwrap();
    assert_eq!(child.write("lost".to_owned()), Err(WriteError::Closed));
    assert_eq!(child.next().await, line("end"));
}

#[tokio::test]
async fn a_child_that_never_reads_blocks_no_writer() {
    let fixture = Fixture::patient();
    let mut child = fixture.sh("echo ready; sleep 3600").await;
    let long = "x".repeat(300_000);
    let taken = (0..100).take_while(|_| child.write(long.clone()).is_ok()).count();
    assert!((4..20).contains(&taken), "{taken} lines were taken");
    assert_eq!(child.write("one more".to_owned()), Err(WriteError::Full));
    assert_eq!(child.next().await, line("ready"), "it is still listened to");
    child.close_input();
    let begun = Instant::now();
    let exit = child.end().await;
    assert_eq!(exit.signal, Some(15));
    assert!(begun.elapsed() < LONGEST);
}

#[tokio::test]
async fn a_child_that_closes_its_input_is_told_of_and_does_not_end_the_server() {
    let fixture = Fixture::patient();
    let mut child = fixture.sh("exec <&-; echo closed; sleep 3600").await;
    assert_eq!(child.next().await, line("closed"));
    let broken = async {
        while child.write("x".to_owned()) != Err(WriteError::Closed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONGEST, broken).await.unwrap();
    assert_eq!(child.end().await.signal, Some(15));
}

#[tokio::test]
async fn a_child_leaves_by_itself_when_its_input_ends() {
    let fixture = Fixture::new();
    let mut child = fixture.sh("trap 'exit 9' TERM; while read line; do echo $line; done; exit 6").await;
    child.write("hello".to_owned()).unwrap();
    assert_eq!(child.next().await, line("hello"));
    let exit = child.leave(Duration::from_secs(10)).await;
    assert_eq!((exit.code, exit.signal), (Some(6), None));
    assert_eq!(child.next().await, Output::Ended(exit));
}

#[tokio::test]
async fn a_child_that_does_not_leave_is_made_to() {
    let fixture = Fixture::patient();
    let mut child = fixture.sh("trap 'exit 9' TERM; cat; echo stays; while :; do sleep 0.02; done").await;
    child.close_input();
    assert_eq!(child.next().await, line("stays"));
    assert_eq!(child.leave(Duration::from_millis(50)).await.code, Some(9));
}
