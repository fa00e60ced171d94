//! Command-line agents while a server runs: added, refused and removed.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use switchboard_egress::Egress;
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::ServerStore;
use switchboard_engine::{Caller, CallerId, Callers, Engine, FixedDirectory, Settings};
use switchboard_fleet::config::agent_files::read_item;
use switchboard_fleet::config::agents::{Entry, Kind};
use switchboard_fleet::config::cli_agent::CliAgent;
use switchboard_fleet::programs::Programs;
use switchboard_host::config::Config;
use switchboard_host::serve::{Lifecycle, ReloadListeners, ServerParts};
use switchboard_store::{Options, SqliteStore};
use switchboard_webhooks::CallbackReceiver;
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

struct NoCallers;

impl Callers for NoCallers {
    fn find(&self, _: &CallerId) -> Option<Caller> {
        None
    }
}

async fn opened(data: &TempDir) -> (Programs, Engine) {
    let store: Arc<dyn ServerStore> = Arc::new(SqliteStore::open(data.path(), Options::default()).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::at(Timestamp(1_800_000_000_000)));
    let parts = ServerParts {
        data_dir: data.path().to_owned(),
        config: Arc::new(Config::default()),
        clock: clock.clone(),
        store: store.clone(),
        callers: Arc::new(NoCallers),
        egress: Egress::new(switchboard_egress::Options::default()).unwrap(),
        callbacks: CallbackReceiver::new(store.clone(), store.secret(), clock.clone()),
        reloads: ReloadListeners::default(),
        base_url: "http://localhost".to_owned(),
        local_url: "http://localhost".to_owned(),
    };
    let programs = Programs::open(&parts).unwrap();
    let directory = Arc::new(FixedDirectory::new(Vec::new(), None));
    let engine = Engine::start(store, directory, clock, Settings::default()).await.unwrap();
    (programs, engine)
}

fn cli_agent(item: &str) -> CliAgent {
    let Ok(Entry::Hosted(agent)) = read_item("test", item) else { panic!("{item} is an agent") };
    let Kind::Cli(agent) = agent.kind else { panic!("{item} is a program") };
    *agent
}

/// A program that is not there, so that looking for it says something and starts nothing.
fn absent() -> CliAgent {
    cli_agent(r#"{ "name": "coder", "cli": "claude-code", "program": "/nowhere/claude" }"#)
}

/// The agents that something is logged about.
#[derive(Clone, Default)]
struct Mentioned(Arc<Mutex<Vec<String>>>);

impl Mentioned {
    /// How often.
    fn count(&self, agent: &str) -> usize {
        self.0.lock().iter().filter(|other| *other == agent).count()
    }
}

impl Visit for Mentioned {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "agent" {
            self.0.lock().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Mentioned {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Lets the tasks of this thread go on until something is so.
async fn until(condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
}

#[tokio::test]
async fn an_agent_that_is_removed_or_replaced_is_not_looked_for_any_more() {
    let data = TempDir::new().unwrap();
    let (programs, engine) = opened(&data).await;
    let mentioned = Mentioned::default();
    let _logging = tracing::subscriber::set_default(mentioned.clone());
    let gone = Arc::downgrade(&programs.add("gone", &absent()).unwrap());
    programs.add("kept", &absent()).unwrap();
    programs.start(&engine).await.unwrap();
    programs.remove("gone");
    until(|| gone.upgrade().is_none() && mentioned.count("kept") > 0).await;
    assert_eq!(mentioned.count("gone"), 0, "nothing is said of it");
    // The same for those that are added to a running server.
    let replaced = Arc::downgrade(&programs.add("coder", &absent()).unwrap());
    programs.add("coder", &absent()).unwrap();
    until(|| replaced.upgrade().is_none() && mentioned.count("coder") > 0).await;
    assert_eq!(mentioned.count("coder"), 1, "only the new one is looked for");
    engine.shutdown().await.unwrap();
    programs.stop().await;
}

#[tokio::test]
async fn a_definition_that_is_refused_leaves_the_program_of_its_name_as_it_is() {
    let data = TempDir::new().unwrap();
    let (programs, engine) = opened(&data).await;
    let known = Arc::downgrade(&programs.add("coder", &absent()).unwrap());
    let refused = cli_agent(r#"{ "name": "coder", "cli": "generic", "adapter": "/nowhere/adapter.yaml" }"#);
    let problem = programs.add("coder", &refused).map(|_| ()).unwrap_err().to_string();
    assert!(problem.contains("/nowhere/adapter.yaml"), "{problem}");
    assert!(known.upgrade().is_some(), "it goes on");
    programs.add("coder", &absent()).unwrap();
    assert!(known.upgrade().is_none(), "it is replaced");
    engine.shutdown().await.unwrap();
    programs.stop().await;
}
