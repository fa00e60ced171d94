//! An outbox whose dispatcher does not run, for unit tests that take single steps.

use std::sync::Arc;

use switchboard_a2a::{Message, PushConfig, Role, Version};
use switchboard_egress::{Allowlist, Egress};
use switchboard_engine::clock::Clock;
use switchboard_engine::*;
use switchboard_store::SqliteStore;

use crate::{Options, Webhooks};

/// Says that it begins, makes an artifact of so many bytes as its text says, and fails: no status carries the artifact.
struct Maker;

impl Agent for Maker {
    fn manifest(&self) -> Manifest {
        Manifest::new("Maker", "Makes an artifact")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let bytes = turn.text().parse().map_err(|_| AgentError::new("send a number"))?;
        task.status("begun").await?;
        task.text("x".repeat(bytes)).await?;
        Ok(task.fail("enough").await?)
    }
}

pub(crate) async fn unstarted(clock: Arc<dyn Clock>) -> (tempfile::TempDir, Webhooks) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), switchboard_store::Options::default()).unwrap());
    let directory = Arc::new(FixedDirectory::new(vec![Hosted::new("maker", Maker)], None));
    let engine = Engine::start(store.clone(), directory, clock, Settings::default()).await.unwrap();
    let allowlist = Allowlist::parse(["localhost"], ["127.0.0.0/8"]).unwrap();
    let egress = Egress::new(switchboard_egress::Options { allowlist, ..Default::default() }).unwrap();
    (folder, Webhooks::new(engine, store, egress, Options::default()).await.unwrap())
}

/// Sends a message with a webhook and waits for the end of its task.
pub(crate) async fn send(webhooks: &Webhooks, text: String, version: Version, config: &str) {
    let caller = Caller::local();
    let config: PushConfig = serde_json::from_str(config).unwrap();
    let send = IncomingMessage {
        address: Address::Root,
        message: Message::text(Role::User, text),
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: None,
        trace: None,
        webhook: Some(webhooks.prepare(&caller, version, &config).await.unwrap()),
        push_config: Some(config),
        return_immediately: false,
        streaming: false,
    };
    let engine = &webhooks.outbox.engine;
    engine.send(engine.route(&caller, send).await.unwrap()).await.unwrap().answer().await;
}
