//! Many children, ended in every way there is: no process, zombie, file or entry is left.

use std::time::Duration;

use crate::fixture::{Fixture, LONGEST, all, alone, block_on, open_files, own_children, until};

const SCRIPTS: [&str; 8] = [
    "exit 0",
    "kill -9 $$",
    "echo a line; sleep 0.05; exit 3",
    "trap '' TERM; echo up; while :; do sleep 1; done",
    "(setsid env -i /bin/sleep 3600 &) ; sleep 3600",
    "exec >&- 2>&-; sleep 3600",
    "yes | head -c 200000; sleep 3600 & exit 1",
    "cat; sleep 0.02",
];

#[test]
fn fifty_children_leave_nothing() {
    alone("many_children::fifty_children_leave_nothing", || {
        block_on(async {
            let fixture = Fixture::exclusive();
            fixture.sh("true").await.end().await;
            let files = open_files();
            let mut endings = Vec::new();
            for number in 0..50_usize {
                let mut child = fixture.sh(SCRIPTS[number % SCRIPTS.len()]).await;
                let way = (number / SCRIPTS.len()) % 5;
                endings.push(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis((number % 7) as u64 * 5)).await;
                    match way {
                        0 => drop(child),
                        1 => drop(child.end().await),
                        2 => drop(child.leave(Duration::from_millis(20)).await),
                        3 => drop(tokio::time::timeout(Duration::from_millis(10), child.end()).await),
                        _ => {
                            let _ = child.write("a word".to_owned());
                            child.close_input();
                            let _ = tokio::time::timeout(Duration::from_millis(30), all(&mut child)).await;
                        }
                    }
                }));
            }
            for ending in endings {
                tokio::time::timeout(LONGEST, ending).await.unwrap().unwrap();
            }
            fixture.children.close().await;
            assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
            assert_eq!(own_children(), [0; 0], "processes are left");
            until("all files to be closed", || open_files() <= files);
        });
    });
}
