//! A whole server on a port of its own, with a store that is gone afterwards.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use switchboard_engine::clock::SystemClock;
use switchboard_engine::{AgentName, AgentScope, Caller, CallerId, Engine, FixedDirectory, Hosted, Scopes, Settings};
use switchboard_server::{Authenticator, Identity, OpenDoor, Options, Server};
use switchboard_store::{Durability, SqliteStore};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::agents;
use super::client::Ask;

/// A running server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    /// Lets waiting agents go on, one step per permit.
    pub(crate) gate: Arc<Semaphore>,
    /// Stops the server.
    pub(crate) stop: CancellationToken,
    _stops: DropGuard,
    _directory: tempfile::TempDir,
}

/// How to start one.
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) agents: Option<Vec<Hosted>>,
    pub(crate) default_agent: Option<AgentName>,
    pub(crate) settings: Settings,
    pub(crate) gate: Arc<Semaphore>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            options: Options { public_base_url: "http://agents.test".to_owned(), ..Options::default() },
            authenticator: Arc::new(OpenDoor),
            agents: None,
            default_agent: Some("worker".into()),
            settings: Settings::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }
}

impl World {
    /// An open server with the usual agents, `worker` at the root.
    pub(crate) async fn start() -> Self {
        Plan::default().start().await
    }

    pub(crate) fn post(&self, path: &str, body: &serde_json::Value) -> Ask {
        Ask::new(self.address, "POST", path).body(body)
    }

    pub(crate) fn get(&self, path: &str) -> Ask {
        Ask::new(self.address, "GET", path)
    }
}

impl Plan {
    /// With keys: `ann` and `bob` may call every agent, `guest` only `talker`.
    pub(crate) fn with_keys() -> (Self, Keys) {
        let keys = Keys::default();
        let mut plan = Self { authenticator: Arc::new(keys.clone()), ..Self::default() };
        plan.options.open = false;
        (plan, keys)
    }

    pub(crate) async fn start(self) -> World {
        let directory = tempfile::tempdir().unwrap();
        let store_options = switchboard_store::Options { durability: Durability::Process, ..Default::default() };
        let store = Arc::new(SqliteStore::open(directory.path(), store_options).unwrap());
        let agents = self.agents.unwrap_or_else(|| agents::usual(&self.gate));
        let agents = Arc::new(FixedDirectory::new(agents, self.default_agent));
        let engine = Engine::start(store, agents, Arc::new(SystemClock), self.settings).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = Server::new(engine.clone(), self.options, self.authenticator);
        tokio::spawn(server.run(listener, stop.clone().cancelled_owned()));
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            stopped.await;
            engine.shutdown().await
        });
        World { address, gate: self.gate, _stops: stop.clone().drop_guard(), stop, _directory: directory }
    }
}

/// A few callers whose keys are their names.
#[derive(Clone)]
pub(crate) struct Keys(Arc<HashMap<&'static str, Arc<Identity>>>);

impl Default for Keys {
    fn default() -> Self {
        let identity = |name: &'static str, agents: AgentScope| {
            let caller = Caller { id: CallerId::from(name), scopes: Scopes { agents, admin: false } };
            (name, Arc::new(Identity::new(caller)))
        };
        let only = AgentScope::Only(vec!["talker".into()]);
        let all = [identity("ann", AgentScope::All), identity("bob", AgentScope::All), identity("guest", only)];
        Self(Arc::new(all.into()))
    }
}

impl Keys {
    pub(crate) fn revoke(&self, name: &str) {
        self.0[name].revoked.cancel();
    }
}

impl Authenticator for Keys {
    fn authenticate(&self, token: &str) -> Option<Arc<Identity>> {
        self.0.get(token).filter(|identity| !identity.revoked.is_cancelled()).cloned()
    }
}
