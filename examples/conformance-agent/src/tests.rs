//! The agent on the real kernel. Waiting agents are put away at once (`park` is zero), so each answer comes to a new run
//! and nothing can lean on what was in memory.

use std::sync::Arc;
use std::time::Duration;

use switchboard::{Message, Task, TaskState};
use switchboard_a2a::{MessageId, PartContent, Role, TaskId};
use switchboard_engine::clock::SystemClock;
use switchboard_engine::{Address, Caller, Engine, FixedDirectory, Hosted, IncomingMessage, SendResult, Settings};
use switchboard_store::{Durability, Options, SqliteStore};

use crate::agent::Conformance;
use crate::behaviour::Fallback;

struct Bench {
    engine: Engine,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new(fallback: Fallback) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let agent = Conformance { fallback, pause: Duration::ZERO, streaming: true, required_extension: None };
        let directory = Arc::new(FixedDirectory::new(vec![Hosted::new("conformance", agent)], None));
        let settings = Settings { park: Duration::ZERO, ..Settings::default() };
        let engine = Engine::start(store, directory, Arc::new(SystemClock), settings).await.unwrap();
        Self { engine, _folder: folder }
    }

    async fn answer(&self, message_id: &str, task: Option<&TaskId>) -> SendResult {
        let message = Message {
            message_id: MessageId::from(message_id),
            task_id: task.cloned(),
            ..Message::text(Role::User, "from a suite")
        };
        let send = IncomingMessage {
            address: Address::Root,
            message,
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: false,
        };
        self.engine.send(self.engine.route(&Caller::local(), send).await.unwrap()).await.unwrap().answer().await
    }

    async fn task(&self, message_id: &str, task: Option<&TaskId>) -> Task {
        match self.answer(message_id, task).await {
            SendResult::Task(reading) => reading.into_task().unwrap(),
            SendResult::Message(message) => panic!("a message instead of a task: {message:?}"),
        }
    }
}

#[tokio::test]
async fn a_task_waits_as_often_as_it_is_told_and_then_completes() {
    let bench = Bench::new(Fallback::Complete).await;
    let task = bench.task("tck-input-required-1", None).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    let task = bench.task("tck-input-required-2", Some(&task.id)).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    let task = bench.task("tck-complete-task-3", Some(&task.id)).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.status.message.unwrap().joined_text(), "Hello from TCK");
}

#[tokio::test]
async fn each_product_is_one_artifact() {
    let bench = Bench::new(Fallback::Complete).await;
    for (message_id, name) in [
        ("tck-artifact-text", "text"),
        ("tck-artifact-file", "raw"),
        ("tck-artifact-file-url", "url"),
        ("tck-artifact-data", "data"),
        ("tck-stream-artifact-chunked", "text"),
    ] {
        let task = bench.task(message_id, None).await;
        assert_eq!(task.status.state, TaskState::Completed, "{message_id}");
        let [artifact] = task.artifacts.as_slice() else { panic!("{message_id}: {:?}", task.artifacts) };
        let kind = match &artifact.parts[0].content {
            PartContent::Text(_) => "text",
            PartContent::Raw(_) => "raw",
            PartContent::Url(_) => "url",
            PartContent::Data(_) => "data",
        };
        assert_eq!(kind, name, "{message_id}");
    }
}

#[tokio::test]
async fn it_replies_and_rejects() {
    let bench = Bench::new(Fallback::Complete).await;
    let SendResult::Message(message) = bench.answer("tck-message-response", None).await else {
        panic!("a task instead of a message")
    };
    assert_eq!(message.joined_text(), "Direct message response");
    assert_eq!(bench.task("tck-reject-task", None).await.status.state, TaskState::Rejected);
}

#[tokio::test]
async fn without_a_known_id_the_default_decides() {
    let complete = Bench::new(Fallback::Complete).await;
    assert_eq!(complete.task("unknown", None).await.status.state, TaskState::Completed);
    let waiting = Bench::new(Fallback::InputRequired).await;
    let task = waiting.task("unknown", None).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    let task = waiting.task("unknown", Some(&task.id)).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
}
