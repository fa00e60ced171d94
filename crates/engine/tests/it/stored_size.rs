//! What tasks take on disk, and that the log of one commit is read like any other.

use switchboard_a2a::{Part, TaskState};
use switchboard_engine::*;

use crate::kernel::{Kernel, Script};

/// As many tasks as fill many pages.
const TASKS: i64 = 300;
const CHUNKS: usize = 100;
const CHUNK: &str = "six words of a longer answer ";

fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "stream" {
            for _ in 0..CHUNKS {
                task.text(CHUNK).await?;
            }
            return Ok(task.complete().await?);
        }
        Ok(task.complete_with(format!("You said: {}", turn.text())).await?)
    })
    .early()
}

#[test]
fn a_short_task_takes_1200_bytes_of_the_file_and_a_chunk_150_beside_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let file_bytes = || number("PRAGMA page_count") * number("PRAGMA page_size");

    let empty = file_bytes();
    let ids = kernel.run(async {
        let mut ids = Vec::new();
        for at in 0..TASKS {
            let sent = kernel.send(&format!("message {at} of some")).await;
            kernel.reach(sent.id(), TaskState::Completed).await;
            ids.push(sent.id().clone());
        }
        ids
    });
    let each = (file_bytes() - empty) / TASKS;
    assert!(each <= 1200, "a short task takes {each} bytes");
    assert_eq!(number("SELECT count(*) FROM event WHERE snapshot IS NOT NULL"), 0, "what is stored is stored once");

    let streamed = kernel.run(async {
        let sent = kernel.send("stream").await;
        kernel.reach(sent.id(), TaskState::Completed).await
    });
    let log = number("SELECT sum(length(blob)) FROM event JOIN task ON key = task_key WHERE last_seq > 100");
    let overhead = (usize::try_from(log).unwrap() - CHUNKS * CHUNK.len()) / CHUNKS;
    assert!(overhead <= 150, "a chunk takes {overhead} bytes beside its text");

    // What another process reads of it is what this one saw.
    let seen = kernel.run(async { kernel.get(&ids[7]).await.unwrap() });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let read = kernel.get(&ids[7]).await.unwrap();
        assert_eq!(read, seen);
        assert_eq!(read.history[0].task_id.as_ref(), Some(&ids[7]));
        assert_eq!(read.status.message.unwrap().parts, [Part::text("You said: message 7 of some")]);
        assert_eq!(kernel.get(&streamed.id).await.unwrap(), streamed);
    });
}
