//! Servers in runtimes of their own, so that they can be killed: one that hosts an agent, and one in front of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::{Message, Role, SendRequest, Version};
use switchboard_client::{Client, Peer, RetryPolicy, egress};
use switchboard_engine::clock::{Clock, SimulatedClock, SystemClock};
use switchboard_engine::store::Store;
use switchboard_engine::{
    Agent, AgentError, AgentScope, Caller, CallerId, CallerRole, Engine, FixedDirectory, Hosted, Manifest, Scopes,
    Settings, TaskHandle, Turn,
};
use switchboard_fleet::config::agent_files::read_item;
use switchboard_fleet::config::agents::Entry;
use switchboard_hub::registry::{BreakerSettings, CircuitBreaker};
use switchboard_hub::remote::{Callbacks, RemoteAgent, RemoteParts, RemoteSettings, manifest};
use switchboard_server::{Authenticator, CallerIdentity, Options, Server};
use switchboard_store::{Durability, SqliteStore};
use switchboard_webhooks::{CallbackReceiver, Webhooks};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Longer than any agent takes.
const GRACE: Duration = Duration::from_secs(60);

/// The agent on the other server.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) runs: Arc<AtomicUsize>,
    pub(crate) stopped: Arc<AtomicUsize>,
}

impl Worker {
    pub(crate) fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), runs: Arc::default(), stopped: Arc::default() }
    }
}

impl Agent for Worker {
    fn manifest(&self) -> Manifest {
        Manifest::new("worker", "An agent for tests")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        match turn.text().as_str() {
            "ask" => {
                let answer = task.ask("which city?").await?;
                task.complete_with(format!("city: {}", answer.joined_text())).await?;
            }
            "ask late" => {
                task.status("at it").await?;
                task.text("one ").await?;
                task.ask("which city?").await?;
                task.text("two").await?;
                task.complete().await?;
            }
            "where" => task.complete_with(task.context_id().to_string()).await?,
            "fail" => task.fail("it broke").await?,
            "hold" => {
                task.text("one ").await?;
                task.canceled().await;
                self.stopped.fetch_add(1, Ordering::SeqCst);
                return Err(AgentError::new("stopped"));
            }
            // Says something, waits, and says the rest.
            _ => {
                task.status("at it").await?;
                task.text("one ").await?;
                tokio::select! {
                    permit = self.gate.acquire() => permit.map_err(|_| AgentError::new("closed"))?.forget(),
                    () = task.canceled() => {
                        self.stopped.fetch_add(1, Ordering::SeqCst);
                        return Err(AgentError::new("stopped"));
                    }
                }
                task.text("two").await?;
                task.complete().await?;
            }
        }
        Ok(())
    }
}

struct NoKeys;

impl Authenticator for NoKeys {
    fn authenticate(&self, _: &str) -> Option<Arc<CallerIdentity>> {
        let scopes = Scopes { agents: AgentScope::All, role: CallerRole::None };
        Some(Arc::new(CallerIdentity::new(Caller { id: CallerId::from("anyone"), scopes })))
    }
}

/// A server in a runtime of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<SqliteStore>,
    runtime: Runtime,
}

impl Running {
    /// Serves an agent that is made once the callbacks of the server are known.
    pub(crate) fn start<A: Agent>(
        folder: &Path,
        name: &'static str,
        cancel_grace: Duration,
        base: Option<String>,
        agent: impl FnOnce(CallbackReceiver, SocketAddr) -> A,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (engine, store, address) = runtime.block_on(async {
            let options = switchboard_store::Options { durability: Durability::Process, ..Default::default() };
            let store = Arc::new(SqliteStore::open(folder, options).unwrap());
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let callbacks = CallbackReceiver::new(store.clone(), store.secret(), clock.clone());
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let hosted = Hosted::new(name, agent(callbacks.clone(), address));
            let directory = Arc::new(FixedDirectory::new(vec![hosted], Some(name.into())));
            let settings = Settings { cancel_grace, ..Settings::default() };
            let engine = Engine::start(store.clone(), directory, clock, settings).await.unwrap();
            let out = switchboard_egress::Options { anywhere: true, ..Default::default() };
            let out = switchboard_egress::Egress::new(out).unwrap();
            let webhooks = Webhooks::new(engine.clone(), store.clone(), out, Default::default()).await.unwrap();
            webhooks.start();
            let public_base_url = base.unwrap_or_else(|| format!("http://{address}"));
            let options = Options { public_base_url, open: true, ..Options::default() };
            let server = Server::new(engine.clone(), options, Arc::new(NoKeys));
            let server = server.with_webhooks(webhooks).with_callbacks(callbacks);
            tokio::spawn(server.run(listener, CancellationToken::new().cancelled_owned()));
            (engine, store, address)
        });
        Self { address, engine, store, runtime }
    }

    pub(crate) fn url(&self, agent: &str) -> String {
        format!("http://{}/a2a/{agent}", self.address)
    }

    /// Ends it as `kill -9` would: nothing more is written.
    pub(crate) fn kill(self) {
        let Self { engine, store, runtime, .. } = self;
        drop((engine, store));
        runtime.shutdown_timeout(Duration::from_secs(60));
    }
}

/// The other server.
pub(crate) fn worker(folder: &Path, worker: &Worker) -> Running {
    let worker = worker.clone();
    Running::start(folder, "worker", GRACE, None, move |_, _| worker)
}

/// The other server, whose card names an address in front of it.
pub(crate) fn worker_behind(folder: &Path, worker: &Worker, base: String) -> Running {
    let worker = worker.clone();
    Running::start(folder, "worker", GRACE, Some(base), move |_, _| worker)
}

/// Lets time pass until something has happened.
pub(crate) async fn passing<T>(clock: &SimulatedClock, step: Duration, happens: impl Future<Output = T>) -> T {
    let passes = async {
        loop {
            clock.advance(step);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        happened = tokio::time::timeout(crate::HANG_GUARD, happens) => happened.expect("the test hangs"),
        () = passes => unreachable!("time has no end"),
    }
}

/// Waits until so many sleep by a clock.
pub(crate) async fn all_sleep(clock: &SimulatedClock, sleepers: usize) {
    let asleep = async {
        while clock.sleepers() < sleepers {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, asleep).await.expect("they sleep");
}

/// Our server in front of an agent at a url.
pub(crate) fn hub(folder: &Path, url: &str, change: impl FnOnce(&mut RemoteParts)) -> Running {
    hub_with_grace(folder, url, GRACE, change).0
}

/// The same with a limit on how long a canceled agent may take; also what the agent is made of.
pub(crate) fn hub_with_grace(
    folder: &Path,
    url: &str,
    grace: Duration,
    change: impl FnOnce(&mut RemoteParts),
) -> (Running, RemoteParts) {
    let mut peer = Peer::new(url);
    peer.retries = RetryPolicy {
        max_retries: 2,
        initial_backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(5),
    };
    let mut made = None;
    let running = Running::start(folder, "front", grace, None, |receiver, address| {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let settings = RemoteSettings { connect_within: Duration::from_secs(60), ..RemoteSettings::default() };
        let breaker = BreakerSettings { failures: 1_000, open: Duration::from_millis(1) };
        let item = r#"{"name": "front", "url": "http://127.0.0.1"}"#;
        let Ok(Entry::Remote(definition)) = read_item("test", item) else { panic!("{item} is a remote agent") };
        let mut parts = RemoteParts {
            name: "front".into(),
            url: url.to_owned(),
            client: Client::new(egress().unwrap(), peer).unwrap(),
            breaker: Arc::new(CircuitBreaker::new(breaker, clock.clone(), |_| {})),
            callbacks: Some(Callbacks { receiver, base: format!("http://{address}") }),
            clock,
            manifest: manifest(&definition, None),
            settings,
        };
        change(&mut parts);
        made = Some(parts.clone());
        RemoteAgent::new(parts)
    });
    (running, made.unwrap())
}

/// A caller of our server.
pub(crate) fn caller(running: &Running, version: Version) -> Client {
    let mut peer = Peer::new(running.url("front"));
    peer.version = Some(version);
    Client::new(egress().unwrap(), peer).unwrap()
}

pub(crate) fn say(text: &str) -> SendRequest {
    SendRequest { tenant: None, message: Message::text(Role::User, text), configuration: None, metadata: None }
}
