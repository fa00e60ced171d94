//! Cooldowns: work that is not done again for a while, whichever process was asked before.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::{Message, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};

use crate::kernel::*;

/// The key of a message is its text; what is refused is noted.
struct Cooling {
    agents: FixedDirectory,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Directory for Cooling {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        request: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let key = request.map(|request| request.message.joined_text()).unwrap_or_default();
        let cooldown = Some(CooldownRule { key, window: Duration::from_secs(30) });
        Ok(Resolved { cooldown, ..self.agents.resolve(address, caller, request)? })
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.find(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.agents()
    }

    fn refused_by_cooldown(&self, caller: &CallerId, agent: &AgentName, key: &str) {
        self.refused.lock().push(format!("{caller} {agent} {key}"));
    }
}

fn open(folder: &std::path::Path, now: Timestamp, refused: &Arc<Mutex<Vec<String>>>) -> Kernel {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options { durability: Durability::Process, ..Options::default() };
    let store = Arc::new(SqliteStore::open(folder, options).unwrap());
    let clock = SimulatedClock::at(now);
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "ask" {
            task.ask("?").await?;
        }
        Ok(task.complete_with("done").await?)
    });
    let agents = FixedDirectory::new(vec![Hosted::new(AGENT, script)], None);
    let directory = Arc::new(Cooling { agents, refused: refused.clone() });
    let started = Engine::start(store, directory, Arc::new(clock.clone()), Settings::default());
    let engine = runtime.block_on(started).unwrap();
    Kernel { engine, clock, runtime }
}

#[test]
fn a_cooldown_refuses_new_tasks_until_it_is_over_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let start = Timestamp(1_800_000_000_000);
    let kernel = open(folder.path(), start, &refused);
    let wait = |sent: Result<Submitted, Error>| match sent {
        Err(Error::CoolingDown { key, retry_after_ms }) => (key, retry_after_ms),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was accepted"),
    };
    kernel.run(async {
        let keyed = IncomingMessage { idempotency_key: Some("k".to_owned()), ..request(message("triage")) };
        let first = kernel.send_as(&Caller::local(), keyed.clone()).await.unwrap();
        kernel.clock.advance(Duration::from_secs(10));
        assert_eq!(wait(kernel.try_send(message("triage")).await), ("triage".to_owned(), 20_000));
        kernel.try_send(message("another")).await.unwrap();
        let again = kernel.send_as(&Caller::local(), keyed).await.unwrap();
        assert_eq!(again.id(), first.id(), "a repeated send is no new work");
        let asking = kernel.try_send(message("ask")).await.unwrap();
        kernel.reach(asking.id(), switchboard_a2a::TaskState::InputRequired).await;
        let answer = Message { task_id: Some(asking.id().clone()), ..message("ask") };
        kernel.try_send(answer).await.unwrap();
        kernel.ended(asking.id()).await;
    });
    kernel.kill();
    let kernel = open(folder.path(), Timestamp(start.0 + 10_000), &refused);
    kernel.run(async {
        assert_eq!(wait(kernel.try_send(message("triage")).await), ("triage".to_owned(), 20_000), "the row decides");
        assert_eq!(wait(kernel.try_send(message("triage")).await).1, 20_000, "and is kept in mind");
        kernel.clock.advance(Duration::from_secs(20));
        let sent = kernel.try_send(message("triage")).await.unwrap();
        kernel.ended(sent.id()).await;
        assert_eq!(wait(kernel.try_send(message("triage")).await).1, 30_000);
    });
    let expected = format!("{} {AGENT} triage", Caller::local().id);
    assert_eq!(*refused.lock(), vec![expected; 4]);
}
