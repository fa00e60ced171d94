//! A kernel that serves one agent.

use std::sync::Arc;

use serde_json::Value;
use switchboard_a2a::{Message, Metadata, Role, Task, TaskId, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::ids::Epoch;
use switchboard_engine::{
    Address, Agent, Caller, Cursor, Engine, FixedDirectory, Hosted, IncomingMessage, SendResult, Seq, Settings,
    StreamEnd,
};
use switchboard_store::{Durability, Options, SqliteStore};

/// The kernel and the folder it keeps its tasks in.
pub(crate) struct Kernel {
    engine: Engine,
    _folder: tempfile::TempDir,
}

impl Kernel {
    pub(crate) async fn serve(agent: impl Agent) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: std::time::Duration::from_secs(3_600),
            ..Options::default()
        };
        let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let directory = Arc::new(FixedDirectory::new(vec![Hosted::new("agent", agent)], None));
        let clock = Arc::new(SimulatedClock::at(Timestamp(1_800_000_000_000)));
        let engine = Engine::start(store, directory, clock, Settings::default()).await.unwrap();
        Self { engine, _folder: folder }
    }

    /// Sends a text and waits for the task that comes of it.
    pub(crate) async fn send(&self, text: &str, metadata: Option<Metadata>) -> Task {
        let send = IncomingMessage {
            address: Address::Root,
            message: Message::text(Role::User, text),
            accepted_output_modes: Vec::new(),
            metadata,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: false,
        };
        let submitted = self.engine.send(self.engine.route(&Caller::local(), send).await.unwrap()).await.unwrap();
        match submitted.answer().await {
            SendResult::Task(reading) => reading.into_task().unwrap(),
            SendResult::Message(message) => panic!("a message instead of a task: {message:?}"),
        }
    }

    /// Everything an ended task has sent.
    pub(crate) async fn frames(&self, id: &TaskId) -> Vec<Value> {
        let after = Some(Cursor { epoch: Epoch(1), seq: Seq(1) });
        let subscribed =
            self.engine.subscribe(&Address::Root, &Caller::local(), id, after, |_| StreamEnd::Terminal).await;
        let mut stream = subscribed.unwrap().stream;
        let mut frames = Vec::new();
        while let Some(batch) = stream.next().await.unwrap() {
            frames.extend(batch.iter().map(|event| serde_json::from_slice::<Value>(&event.line).unwrap()));
        }
        frames
    }
}
