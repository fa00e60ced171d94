//! Data of an earlier version: every task that waits or has ended reads as the server that wrote it has told it.

use serde_json::Value;
use switchboard_engine::*;

use crate::kernel::*;

/// See `crates/store/tests/it/sqlite/migration.rs`.
const FIFTH_SCHEMA: &[u8] = include_bytes!("../../../store/tests/fixtures/schema-5.db");
/// What that server answered when it was asked for each task, and whose task that is.
const ANSWERS: &str = include_str!("../../../store/tests/fixtures/schema-5.tasks.jsonl");

#[test]
fn tasks_of_the_fifth_schema_read_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(switchboard_store::database_path(folder.path()), FIFTH_SCHEMA).unwrap();
    let never = Script::new(|_, _| async { panic!("there is nothing to work on for an agent of this name") });
    let kernel = Kernel::open(folder.path(), never);
    kernel.run(async {
        let answers: Vec<Value> = ANSWERS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 27);
        for answer in answers {
            let caller = Caller { id: answer["owner"].as_str().unwrap().into(), ..Caller::local() };
            let id = answer["task"]["id"].as_str().unwrap().into();
            let reading = kernel.engine.get(&Address::Root, &caller, &id).await.unwrap();
            let task = serde_json::to_value(reading.into_task().unwrap()).unwrap();
            assert_eq!(task, answer["task"]);
        }
    });
}
