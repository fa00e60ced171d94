//! A whole Switchboard server on a port of its own, with agents that do one thing each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Artifact, Message, Role, SendConfiguration, SendRequest};
use switchboard_client::{Binding, Client, Peer, RetryPolicy, egress};
use switchboard_egress::{Allowlist, Egress};
use switchboard_engine::clock::SystemClock;
use switchboard_engine::{
    Agent, AgentError, AgentScope, Caller, CallerId, CallerRole, Engine, FixedDirectory, Hosted, Manifest, Scopes,
    Settings, TaskHandle, Turn, Usage,
};
use switchboard_server::{Authenticator, CallerIdentity, Options, Server};
use switchboard_store::{Durability, SqliteStore};
use switchboard_webhooks::Webhooks;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The one key of a server with keys.
pub(crate) const KEY: &str = "sesame";
/// After so many chunks the counting agent says how far it is.
pub(crate) const CHUNKS_PER_STATUS: usize = 10;

/// What an agent does.
#[derive(Clone, Copy)]
enum Does {
    Echo,
    Count,
    Ask,
    Fail,
    Wait,
    Note,
}

struct Worker {
    name: &'static str,
    does: Does,
    gate: Arc<Semaphore>,
}

impl Agent for Worker {
    fn manifest(&self) -> Manifest {
        Manifest::new(self.name, "An agent for tests")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let text = turn.text();
        match self.does {
            Does::Echo => task.complete_with(format!("echo: {text}")).await?,
            Does::Count => count(&task, text.parse().unwrap_or(0)).await?,
            Does::Ask => {
                let answer = task.ask("which city?").await?;
                task.complete_with(format!("city: {}", answer.joined_text())).await?;
            }
            Does::Fail => task.fail("it broke").await?,
            Does::Wait => {
                task.status("waiting").await?;
                self.pass(&task).await?;
                task.complete_with("let through").await?;
            }
            // What it puts by has a number and is sent to no client.
            Does::Note => {
                for word in ["one ", "two ", "three"] {
                    task.save(&word).await?;
                    task.text(word).await?;
                    self.pass(&task).await?;
                }
                task.usage(Usage::default()).await?;
                task.complete().await?;
            }
        }
        Ok(())
    }
}

impl Worker {
    async fn pass(&self, task: &TaskHandle) -> Result<(), AgentError> {
        tokio::select! {
            permit = self.gate.acquire() => permit.map_err(|_| AgentError::new("closed"))?.forget(),
            () = task.canceled() => return Err(AgentError::new("stopped")),
        }
        Ok(())
    }
}

/// Chunks of one artifact, a status after every few.
async fn count(task: &TaskHandle, most: usize) -> Result<(), AgentError> {
    let artifact = Artifact::text("").named("numbers");
    for number in 1..=most {
        let chunk = Artifact { artifact_id: artifact.artifact_id.clone(), ..Artifact::text(chunk(number)) };
        task.chunk(chunk, number > 1, number == most, None).await?;
        if number % CHUNKS_PER_STATUS == 0 {
            task.status(format!("at {number}")).await?;
            // What takes no time at all is over before a connection can be lost.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(task.complete().await?)
}

/// The text of a chunk.
pub(crate) fn chunk(number: usize) -> String {
    format!("<{number}>")
}

/// A running server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    /// Lets a waiting agent go on.
    pub(crate) gate: Arc<Semaphore>,
    _stops: DropGuard,
    _directory: tempfile::TempDir,
}

/// The holder of the one key.
struct OneKey;

impl Authenticator for OneKey {
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        let scopes = Scopes { agents: AgentScope::All, role: CallerRole::None };
        let caller = Caller { id: CallerId::from("holder-of-the-key"), scopes };
        (token == KEY).then(|| Arc::new(CallerIdentity::new(caller)))
    }
}

impl World {
    /// A server that needs no key.
    pub(crate) async fn open() -> Self {
        Self::start(true).await
    }

    /// A server that wants [`KEY`].
    pub(crate) async fn keyed() -> Self {
        Self::start(false).await
    }

    async fn start(open: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store_options = switchboard_store::Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Default::default()
        };
        let store = Arc::new(SqliteStore::open(directory.path(), store_options).unwrap());
        let gate = Arc::new(Semaphore::new(0));
        let agents = [
            ("echo", Does::Echo),
            ("counter", Does::Count),
            ("asker", Does::Ask),
            ("failing", Does::Fail),
            ("waiting", Does::Wait),
            ("noting", Does::Note),
        ];
        let agents = agents.map(|(name, does)| Hosted::new(name, Worker { name, does, gate: gate.clone() }));
        let agents = Arc::new(FixedDirectory::new(agents.into(), Some("echo".into())));
        let engine = Engine::start(store.clone(), agents, Arc::new(SystemClock), Settings::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let options = Options { public_base_url: "http://agents.test".to_owned(), open, ..Options::default() };
        let allowlist = Allowlist::parse(["hook.test"], ["127.0.0.1/32"]).unwrap();
        // No server answers there, so that no test asks the real world for a name.
        let nameservers = vec![SocketAddr::from(([127, 0, 0, 1], 9))];
        let dns_timeout = Duration::from_millis(50);
        let out = switchboard_egress::Options { allowlist, nameservers, dns_timeout, ..Default::default() };
        let out = Egress::new(out).unwrap();
        let webhooks = Webhooks::new(engine.clone(), store, out, Default::default()).await.unwrap();
        webhooks.start();
        let server = Server::new(engine.clone(), options, Arc::new(OneKey)).with_webhooks(webhooks);
        tokio::spawn(server.run(listener, stop.clone().cancelled_owned()));
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            stopped.await;
            engine.shutdown().await
        });
        Self { address, gate, _stops: stop.drop_guard(), _directory: directory }
    }

    /// The base address of an agent.
    pub(crate) fn url(&self, agent: &str) -> String {
        format!("http://{}/a2a/{agent}", self.address)
    }
}

/// A client with everything as usual but the waits, which are short.
pub(crate) fn client(url: impl Into<String>, change: impl FnOnce(&mut Peer)) -> Client {
    let mut peer = Peer::new(url);
    peer.retries = quick(4);
    change(&mut peer);
    Client::new(egress().unwrap(), peer).unwrap()
}

/// So many repetitions, with hardly a wait.
pub(crate) fn quick(max_retries: u32) -> RetryPolicy {
    RetryPolicy { max_retries, initial_backoff: Duration::from_millis(1), max_backoff: Duration::from_millis(4) }
}

pub(crate) const BINDINGS: [Binding; 2] = [Binding::JsonRpc, Binding::Rest];

/// A request with a text.
pub(crate) fn say(text: &str) -> SendRequest {
    let message = Message::text(Role::User, text);
    SendRequest { tenant: None, message, configuration: None, metadata: None }
}

/// The same, answered as soon as the task exists.
pub(crate) fn say_and_leave(text: &str) -> SendRequest {
    let configuration = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
    SendRequest { configuration: Some(configuration), ..say(text) }
}
