//! A whole server on a port of its own, with a store that is gone afterwards.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_egress::{Allowlist, Egress};
use switchboard_engine::clock::SystemClock;
use switchboard_engine::{
    AgentName, AgentScope, Caller, CallerId, CallerRole, Directory, Engine, FixedDirectory, Hosted, Scopes, Settings,
};
use switchboard_server::{Authenticator, CallerIdentity, Options, Server};
use switchboard_store::{Durability, SqliteStore};
use switchboard_webhooks::{CallbackReceiver, Webhooks};
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
    /// An open server needs keys once this is cancelled.
    pub(crate) keyed: CancellationToken,
    /// Where other servers' news come in, on a server with webhooks.
    pub(crate) callbacks: CallbackReceiver,
    _stops: DropGuard,
    _directory: tempfile::TempDir,
}

/// How to start one.
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) agents: Option<Vec<Hosted>>,
    /// Picks among them, instead of the fixed directory.
    pub(crate) directory: Option<Arc<dyn Directory>>,
    pub(crate) default_agent: Option<AgentName>,
    pub(crate) settings: Settings,
    pub(crate) gate: Arc<Semaphore>,
    /// With webhooks, and what of the network they may reach.
    pub(crate) webhooks: Option<(switchboard_webhooks::Options, Allowlist)>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            options: Options { public_base_url: "http://agents.test".to_owned(), ..Options::default() },
            authenticator: Arc::new(Keys::default()),
            agents: None,
            directory: None,
            default_agent: Some("worker".into()),
            settings: Settings::default(),
            gate: Arc::new(Semaphore::new(0)),
            webhooks: None,
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
    /// The same with webhooks, which may go to this machine and to `hook.test`.
    pub(crate) fn and_webhooks(self) -> Self {
        let allowed = Allowlist::parse(["hook.test"], ["127.0.0.1/32"]).unwrap();
        Self { webhooks: Some((switchboard_webhooks::Options::default(), allowed)), ..self }
    }

    /// With keys: `ann` and `bob` may call every agent, `guest` only `talker`; `viewer`, `operator` and
    /// `admin` have that role, and `limited` is an operator of `either`.
    pub(crate) fn with_keys() -> (Self, Keys) {
        let keys = Keys::default();
        let mut plan = Self { authenticator: Arc::new(keys.clone()), ..Self::default() };
        plan.options.open = false;
        (plan, keys)
    }

    pub(crate) async fn start(self) -> World {
        let directory = tempfile::tempdir().unwrap();
        let store_options = switchboard_store::Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Default::default()
        };
        let store = Arc::new(SqliteStore::open(directory.path(), store_options).unwrap());
        let agents = self.agents.unwrap_or_else(|| agents::usual(&self.gate));
        let fixed = || Arc::new(FixedDirectory::new(agents, self.default_agent)) as Arc<dyn Directory>;
        let agents = self.directory.unwrap_or_else(fixed);
        let clock = Arc::new(SystemClock);
        let engine = Engine::start(store.clone(), agents, clock.clone(), self.settings).await.unwrap();
        let callbacks = CallbackReceiver::new(store.clone(), engine.secret(), clock);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let keyed = CancellationToken::new();
        let mut server = Server::new(engine.clone(), self.options, self.authenticator).open_until(keyed.clone());
        if let Some((options, allowlist)) = self.webhooks {
            // No nameserver answers there, so that no test asks the real world for a name, and none need wait for it.
            let nameservers = vec![SocketAddr::from(([127, 0, 0, 1], 9))];
            let dns_timeout = Duration::from_millis(50);
            let egress = switchboard_egress::Options { allowlist, nameservers, dns_timeout, ..Default::default() };
            let webhooks = Webhooks::new(engine.clone(), store, Egress::new(egress).unwrap(), options).await.unwrap();
            webhooks.start();
            server = server.with_webhooks(webhooks).with_callbacks(callbacks.clone());
        }
        tokio::spawn(server.run(listener, stop.clone().cancelled_owned()));
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            stopped.await;
            engine.shutdown().await
        });
        World {
            address,
            gate: self.gate,
            _stops: stop.clone().drop_guard(),
            stop,
            keyed,
            callbacks,
            _directory: directory,
        }
    }
}

/// A few callers whose keys are their names.
#[derive(Clone)]
pub(crate) struct Keys(Arc<HashMap<&'static str, Arc<CallerIdentity>>>);

impl Default for Keys {
    fn default() -> Self {
        let identity = |name: &'static str, agents: AgentScope| {
            let role = match name {
                "viewer" => CallerRole::Viewer,
                "operator" | "limited" => CallerRole::Operator,
                "admin" => CallerRole::Admin,
                _ => CallerRole::None,
            };
            let scopes = Scopes { agents, role };
            let caller = Caller { id: CallerId::from(name), scopes };
            (name, Arc::new(CallerIdentity::new(caller)))
        };
        let only = AgentScope::Only(vec!["talker".into()]);
        let all = [
            identity("ann", AgentScope::All),
            identity("bob", AgentScope::All),
            identity("viewer", AgentScope::All),
            identity("operator", AgentScope::All),
            identity("admin", AgentScope::All),
            identity("limited", AgentScope::Only(vec!["either".into()])),
            identity("guest", only),
        ];
        Self(Arc::new(all.into()))
    }
}

impl Keys {
    pub(crate) fn revoke(&self, name: &str) {
        self.0[name].revoked.cancel();
    }
}

impl Authenticator for Keys {
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        self.0.get(token).filter(|identity| !identity.revoked.is_cancelled()).cloned()
    }
}
