//! The stored form of events: without the ids of their task, and read back with them.

use switchboard_engine::ids::Seq;
use switchboard_engine::store::feed::{FeedContent, Position};
use switchboard_engine::store::{Store, TaskIdentity};
use switchboard_store::{check, database_path};

use super::SqliteFixture;
use crate::build::{Writes, create, done, new_task, owner, working};
use crate::suite::Fixture;

fn lines(task: &TaskIdentity) -> [String; 2] {
    let (id, context) = (&task.id, &task.context);
    [
        format!(
            r#"{{"received":{{"message":{{"messageId":"m","contextId":"{context}","taskId":"{id}","role":"ROLE_USER","parts":[{{"text":"x"}}]}},"at":"2026-01-01T00:00:00Z"}}}}"#
        ),
        format!(
            r#"{{"statusUpdate":{{"taskId":"{id}","contextId":"{context}","status":{{"state":"TASK_STATE_WORKING"}}}}}}"#
        ),
    ]
}

/// The events of a task as the store reads them, whole and one after the other.
async fn read(store: &impl Store, task: &TaskIdentity) -> [Vec<String>; 2] {
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    let after_first = store.read(loaded.row.key, Seq(1), usize::MAX).await.unwrap();
    // The order of all rows has the same ones.
    let all = store.read_all(Position::default(), usize::MAX, usize::MAX).await.unwrap().rows.into_iter();
    let of_task = all.filter_map(|row| match row.content {
        FeedContent::Events { key, events, .. } if key == loaded.row.key => Some(events.events),
        _ => None,
    });
    assert_eq!(of_task.collect::<Vec<_>>(), loaded.events.iter().map(|row| row.events.clone()).collect::<Vec<_>>());
    let text = |rows: &[switchboard_engine::store::EventRow]| {
        rows.iter().map(|row| String::from_utf8(row.events.to_vec()).unwrap()).collect()
    };
    [text(&loaded.events), text(&after_first)]
}

#[tokio::test]
async fn ids_are_left_out_of_stored_events_and_rows_with_them_read_the_same() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    // A context that callers chose, which is stored as text and cannot be told from JSON by its look.
    let tasks = ["c", "conversation 7", "\\\"quoted\\\"", ""].map(|context| new_task("ann", "echo", context));
    for task in &tasks {
        let [first, second] = lines(task);
        let appended = store.write(create(task, &[&first], working(1, 1))).await.unwrap();
        store.write(owner(appended.key, 1, &[&second], done(2, 1))).await.unwrap();
        assert_eq!(read(&store, task).await, [vec![first, second.clone()], vec![second]]);
    }
    let connection = rusqlite::Connection::open(database_path(fixture.directory.path())).unwrap();
    let stored: Vec<Vec<u8>> = connection
        .prepare("SELECT blob FROM event ORDER BY id")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&stored[0]),
        "{\"received\":{\"message\":{\"messageId\":\"m\",\u{1}3,\u{1}2,\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]},\"at\":\"2026-01-01T00:00:00Z\"}}"
    );
    assert_eq!(stored[1], b"\x011WORKING\"}}}");

    // As the program stored them before.
    for (row, line) in (1..).zip(tasks.iter().flat_map(lines)) {
        connection.execute("UPDATE event SET blob = ?2 WHERE id = ?1", (row, line.into_bytes())).unwrap();
    }
    drop(connection);
    for task in &tasks {
        let [first, second] = lines(task);
        assert_eq!(read(&store, task).await, [vec![first, second.clone()], vec![second]]);
    }
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}
