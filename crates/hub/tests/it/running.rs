//! A server with a hub in this process: a real store in a folder of its own, a simulated clock, a socket on a free port.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_egress::Egress;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::feed::{FeedPage, Position};
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::{ServerStore, Store, StoreError, StoreFuture};
use switchboard_engine::{
    AgentScope, Caller, CallerId, CallerRole, Callers, Directory, Engine, FixedDirectory, Hosted, Scopes, Settings,
};
use switchboard_host::config::{Config, Overrides};
use switchboard_host::serve::{Lifecycle, ReloadListeners, ServerParts};
use switchboard_hub::Hub;
use switchboard_hub::registry::{AgentSources, Registry};
use switchboard_hub::routing::{Drops, RoutingDirectory, RoutingRules};
use switchboard_hub::tasks::channel::mailboxes::Mailboxes;
use switchboard_hub::tasks::channel::{Channel, ChannelOptions};
use switchboard_hub::tasks::channel_plan::CHANNEL;
use switchboard_hub::tasks::fanout::{Fanout, FanoutOptions};
use switchboard_hub::tasks::fanout_plan::FANOUT;
use switchboard_server::{Authenticator, CallerIdentity, Options, Server};
use switchboard_store::SqliteStore;
use switchboard_webhooks::CallbackReceiver;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::actor::Actor;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// When the clock of every test begins: a full hour.
pub(crate) const START: Timestamp = Timestamp(1_800_000_000_000);

/// Keys by their tokens, which are the callers' names.
#[derive(Default)]
struct Keyring(HashMap<String, Arc<CallerIdentity>>);

impl Authenticator for Keyring {
    fn authenticate(&self, token: &str) -> Option<Arc<CallerIdentity>> {
        self.0.get(token).cloned()
    }
}

impl Callers for Keyring {
    fn find(&self, id: &CallerId) -> Option<Caller> {
        self.0.get(id.as_str()).map(|identity| identity.caller.clone())
    }

    fn name(&self, id: &CallerId) -> Option<String> {
        (id.as_str() == "nan").then(|| "Nan's laptop".to_owned())
    }
}

/// `ann` is an admin, as is `nan`, whose key has a name; `oli` is an operator, `vic` a viewer, and `bob` and `bea` have no
/// role; `ada`, `ole`, `eva` and `cat` are the same for the agent `echo` alone.
fn keys() -> Arc<Keyring> {
    let only_echo = || AgentScope::Only(vec!["echo".into()]);
    let keys = [
        ("ann", AgentScope::All, CallerRole::Admin),
        ("nan", AgentScope::All, CallerRole::Admin),
        ("ada", only_echo(), CallerRole::Admin),
        ("oli", AgentScope::All, CallerRole::Operator),
        ("ole", only_echo(), CallerRole::Operator),
        ("vic", AgentScope::All, CallerRole::Viewer),
        ("eva", only_echo(), CallerRole::Viewer),
        ("bob", AgentScope::All, CallerRole::None),
        ("bea", AgentScope::All, CallerRole::None),
        ("cat", only_echo(), CallerRole::None),
    ];
    let identity = |(name, agents, role): (&str, AgentScope, CallerRole)| {
        let caller = Caller { id: CallerId::from(name), scopes: Scopes { agents, role } };
        (name.to_owned(), Arc::new(CallerIdentity::new(caller)))
    };
    Arc::new(Keyring(keys.into_iter().map(identity).collect()))
}

/// How many of the next pages of the log cannot be read, or make their readers panic. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct UnreadablePages {
    failing: Arc<AtomicUsize>,
    panicking: Arc<AtomicUsize>,
}

impl UnreadablePages {
    pub(crate) fn set(&self, count: usize) {
        self.failing.store(count, Ordering::SeqCst);
    }

    pub(crate) fn set_panicking(&self, count: usize) {
        self.panicking.store(count, Ordering::SeqCst);
    }

    pub(crate) fn left(&self) -> usize {
        self.failing.load(Ordering::SeqCst) + self.panicking.load(Ordering::SeqCst)
    }

    fn take(count: &AtomicUsize) -> bool {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

impl StoreHooks for UnreadablePages {
    fn read_all(&self, store: &Arc<dyn Store>, after: Position, rows: usize, bytes: usize) -> StoreFuture<FeedPage> {
        assert!(!Self::take(&self.panicking), "as the test has ordered");
        let fails = Self::take(&self.failing);
        let page = store.read_all(after, rows, bytes);
        Box::pin(async move {
            if fails {
                return Err(StoreError::Failed("as the test has ordered".into()));
            }
            page.await
        })
    }
}

/// Which agents a server has.
enum Served {
    /// Those of the files of its workspace, and these.
    Files(Vec<Hosted>),
    /// These.
    Fixed(Vec<Hosted>),
}

/// A running server with the agents `echo` and `other`.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) clock: SimulatedClock,
    pub(crate) registry: Arc<Registry>,
    pub(crate) reload_now: Arc<Notify>,
    pub(crate) reloads: ReloadListeners,
    pub(crate) unreadable: UnreadablePages,
    keys: Arc<Keyring>,
    hub: Hub,
    stop: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub(crate) async fn in_folder(data: &Path) -> Self {
        Self::with(data, SimulatedClock::at(START), |_| {}, Settings::default()).await
    }

    pub(crate) async fn with(
        data: &Path,
        clock: SimulatedClock,
        change: impl FnOnce(&mut Config),
        settings: Settings,
    ) -> Self {
        let served = vec![Hosted::new("echo", Actor), Hosted::new("other", Actor), fanout()];
        Self::serving(data, served, clock, change, settings).await
    }

    /// A server with agents of the test's own.
    pub(crate) async fn serving(
        data: &Path,
        served: Vec<Hosted>,
        clock: SimulatedClock,
        change: impl FnOnce(&mut Config),
        settings: Settings,
    ) -> Self {
        Self::start(data, &data.join("workspace"), Served::Fixed(served), clock, change, settings).await
    }

    /// A server whose agents are those of a workspace folder.
    pub(crate) async fn of_workspace(data: &Path, workspace: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let served = Served::Files(Vec::new());
        Self::start(data, workspace, served, SimulatedClock::at(START), change, Settings::default()).await
    }

    /// The same with a clock and settings; its projector writes each row at once and reads all from the store.
    pub(crate) async fn of_workspace_at(data: &Path, workspace: &Path, clock: &SimulatedClock) -> Self {
        Self::of_workspace_beside(data, workspace, clock, Vec::new()).await
    }

    /// The same, with agents that are in no file.
    pub(crate) async fn of_workspace_beside(
        data: &Path,
        workspace: &Path,
        clock: &SimulatedClock,
        own: Vec<Hosted>,
    ) -> Self {
        let settings = Settings { feed_ring_bytes: 0, cancel_grace: Duration::from_secs(1), ..Settings::default() };
        let change = |config: &mut Config| {
            config.hub.projector.flush = switchboard_host::config::time_span::TimeSpan::ZERO;
        };
        Self::start(data, workspace, Served::Files(own), clock.clone(), change, settings).await
    }

    /// The same with settings.
    pub(crate) async fn beside(
        data: &Path,
        workspace: &Path,
        own: Vec<Hosted>,
        clock: &SimulatedClock,
        change: impl FnOnce(&mut Config),
        settings: Settings,
    ) -> Self {
        Self::start(data, workspace, Served::Files(own), clock.clone(), change, settings).await
    }

    async fn start(
        data: &Path,
        workspace: &Path,
        served: Served,
        clock: SimulatedClock,
        change: impl FnOnce(&mut Config),
        settings: Settings,
    ) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let durability = switchboard_store::Durability::Process;
        // Lines that are longer than usual are refused sooner here than by the program.
        let journal_line = config.hub.journal.line.length();
        let options =
            switchboard_store::Options { durability, max_queue_delay: HOUR, journal_line, ..Default::default() };
        let store: Arc<dyn ServerStore> = Arc::new(SqliteStore::open(data, options).unwrap());
        Self::start_on(store, data, workspace, served, clock, config, settings).await
    }

    /// The agents of most tests on a store of the test's own.
    pub(crate) async fn on_store(store: Arc<dyn ServerStore>, data: &Path, config: Config) -> Self {
        let served = vec![Hosted::new("echo", Actor), Hosted::new("other", Actor), fanout()];
        Self::serving_on_store(store, data, served, config).await
    }

    /// Agents of the test's own on such a store.
    pub(crate) async fn serving_on_store(
        store: Arc<dyn ServerStore>,
        data: &Path,
        served: Vec<Hosted>,
        config: Config,
    ) -> Self {
        let (clock, served) = (SimulatedClock::at(START), Served::Fixed(served));
        Self::start_on(store, data, &data.join("workspace"), served, clock, config, Settings::default()).await
    }

    async fn start_on(
        store: Arc<dyn ServerStore>,
        data: &Path,
        workspace: &Path,
        served: Served,
        clock: SimulatedClock,
        config: Config,
        settings: Settings,
    ) -> Self {
        let shared: Arc<SimulatedClock> = Arc::new(clock.clone());
        let (streams_per_caller, write_timeout) =
            (config.limits.streams_per_caller.get(), config.server.write_timeout.duration());
        let keys = keys();
        let callbacks = CallbackReceiver::new(store.clone(), store.secret(), shared.clone());
        let reloads = ReloadListeners::default();
        let egress = switchboard_egress::Options {
            allowlist: config.webhooks.allowlist(),
            ..switchboard_egress::Options::default()
        };
        let parts = ServerParts {
            callbacks: callbacks.clone(),
            reloads: reloads.clone(),
            data_dir: data.to_owned(),
            config: Arc::new(config),
            clock: shared.clone(),
            store: store.clone(),
            callers: keys.clone(),
            egress: Egress::new(egress).unwrap(),
            base_url: "http://localhost".to_owned(),
            local_url: "http://localhost".to_owned(),
        };
        let reload_now = Arc::new(Notify::new());
        let mailboxes = Arc::<Mailboxes>::default();
        let channels = ChannelOptions { joined: parts.config.hub.channels.joined.length(), inline: 64 << 10 };
        let channel = Channel::new(channels, mailboxes.clone()).with_clock(shared.clone());
        let (fixed, own) = match served {
            Served::Files(own) => (None, own),
            Served::Fixed(mut served) => {
                served.push(Hosted::new(CHANNEL, channel));
                (Some(FixedDirectory::new(served, None)), Vec::new())
            }
        };
        let sources = AgentSources {
            folder: workspace.to_owned(),
            overrides: Overrides::default(),
            reload_now: reload_now.clone(),
            own,
        };
        let registry = Registry::open(parts.clone(), sources).await.unwrap();
        let agents: Arc<dyn Directory> = match fixed {
            Some(fixed) => Arc::new(fixed),
            None => registry.clone(),
        };
        let rules = RoutingRules::configured(&parts.config.hub);
        let drops = Arc::new(Drops::new(shared.clone()).with_callers(keys.clone()));
        let directory = Arc::new(RoutingDirectory::new(agents, rules, registry.clone(), drops.clone()));
        directory.follow(&reloads);
        let unreadable = UnreadablePages::default();
        let faulty = Arc::new(ForwardingStore { store, hooks: unreadable.clone() });
        let engine = Engine::start(faulty, directory, shared, settings).await.unwrap();
        let hub = Hub::new(parts, registry.clone()).with_drops(drops).with_mailboxes(mailboxes);
        let fronts = hub.start(&engine).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = Options {
            public_base_url: format!("http://{address}"),
            open: false,
            drain: HOUR,
            streams_per_caller,
            write_timeout,
            ..Options::default()
        };
        let server = Server::new(engine.clone(), options, keys.clone()).fronts(fronts).with_callbacks(callbacks);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(listener, stop.clone().cancelled_owned()));
        Self { address, engine, clock, registry, reload_now, reloads, unreadable, keys, hub, stop, serving }
    }

    /// Revokes a key.
    pub(crate) fn revoke(&self, key: &str) {
        self.keys.0[key].revoked.cancel();
    }

    /// Stops in order, as the program does.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.engine.shutdown().await.unwrap();
        self.serving.await.unwrap().unwrap();
        self.hub.stop().await;
    }

    async fn connect(&self, head: &str, key: &str, headers: &[&str], body: &str) -> BufReader<TcpStream> {
        let mut text = format!("{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if !key.is_empty() {
            text.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// One request; the status and the body as JSON, or as text where it is none.
    pub(crate) async fn ask(&self, head: &str, key: &str, headers: &[&str], body: &str) -> (u16, Value) {
        let mut reader = self.connect(head, key, headers, body).await;
        let status = read_head(&mut reader).await;
        let mut body = String::new();
        reader.read_to_string(&mut body).await.unwrap();
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> (u16, Value) {
        self.ask(&format!("GET {path}"), key, &["Accept: application/json"], "").await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        self.ask(&format!("POST {path}"), key, &[], &body.to_string()).await
    }

    /// The topics of the journal's lines, once there are so many.
    pub(crate) async fn topics(&self, topic: &str, count: usize) -> Vec<String> {
        let path = format!("/api/feed?from=oldest&topic={topic}");
        let read = tokio::time::timeout(crate::HANG_GUARD, async {
            loop {
                let (_, page) = self.get(&path, "ann").await;
                let items = page["items"].as_array().unwrap();
                if items.len() >= count {
                    return items.iter().map(|item| item["topic"].as_str().unwrap().to_owned()).collect();
                }
            }
        });
        read.await.unwrap()
    }

    /// Sends a message and returns the task.
    pub(crate) async fn send(&self, key: &str, agent: &str, text: &str) -> Value {
        self.send_with(key, agent, json!({ "parts": [{ "text": text }] }), &[]).await
    }

    pub(crate) async fn send_with(&self, key: &str, agent: &str, mut message: Value, headers: &[&str]) -> Value {
        message["messageId"] = "m".into();
        message["role"] = "ROLE_USER".into();
        let body = json!({ "message": message }).to_string();
        let path = format!("POST /a2a/{agent}/message:send");
        let (status, answer) = self.ask(&path, key, headers, &body).await;
        assert_eq!(status, 200, "{answer}");
        answer["task"].clone()
    }

    /// Opens a stream of the feed.
    pub(crate) async fn stream(&self, path: &str, key: &str, headers: &[&str]) -> Stream {
        let mut reader = self.connect(&format!("GET {path}"), key, headers, "").await;
        assert_eq!(read_head(&mut reader).await, 200);
        Stream { reader }
    }

    /// Opens the stream that answers a message.
    pub(crate) async fn stream_of(&self, path: &str, key: &str, body: &Value) -> Stream {
        let mut reader = self.connect(&format!("POST {path}"), key, &[], &body.to_string()).await;
        assert_eq!(read_head(&mut reader).await, 200);
        Stream { reader }
    }
}

async fn read_head(reader: &mut BufReader<TcpStream>) -> u16 {
    let mut status = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        if status == 0 {
            status = line.split(' ').nth(1).unwrap().parse().unwrap();
        }
        if line == "\r\n" {
            return status;
        }
    }
}

/// An open event stream.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
}

/// A frame of a stream: its id, its event, its data.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Stream {
    /// The next frame; pings and the marks of chunked encoding are skipped.
    pub(crate) async fn next(&mut self) -> Frame {
        let mut frame = Frame { id: String::new(), event: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            assert_ne!(self.reader.read_line(&mut line).await.unwrap(), 0, "the stream has ended");
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                frame.id = id.to_owned();
            } else if let Some(event) = line.strip_prefix("event: ") {
                frame.event = event.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                frame.data = serde_json::from_str(data).unwrap();
                return frame;
            }
        }
    }

    /// The events until its end.
    pub(crate) async fn rest(mut self) -> Vec<String> {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).await.unwrap();
        text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect()
    }

    /// All that comes until its end.
    pub(crate) async fn rest_of_text(mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).await.unwrap();
        text
    }

    /// The events of the next frames.
    pub(crate) async fn events(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await.event);
        }
        events
    }
}

/// The agent that carries fan-outs out.
pub(crate) fn fanout() -> Hosted {
    Hosted::new(FANOUT, Fanout::new(FanoutOptions { max: 64, inline: 64 << 10 }))
}

/// A folder for the data of a server.
pub(crate) fn folder() -> TempDir {
    TempDir::new().unwrap()
}
