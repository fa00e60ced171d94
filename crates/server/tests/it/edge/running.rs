//! A whole server in this process: a real store in a folder of its own, a real socket on a free port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Message, Role, TaskId};
use switchboard_engine::clock::SystemClock;
use switchboard_engine::store::StoreError;
use switchboard_engine::{
    Address, AgentScope, Caller, CallerRole, Engine, FixedDirectory, Hosted, IncomingMessage, Settings,
};
use switchboard_server::{Front, Options, ResponseBudget, Server};
use switchboard_store::SqliteStore;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::edge::agents::{Echo, Gate};
use crate::edge::keyring::Keyring;
use crate::edge::wire::{Reply, Wire};

/// What a stop waits unless a test says otherwise: no test should depend on being done in time.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// A server with the agents `echo`, which answers at the root too, `gate`, and `counted`, an echo that only the test
/// of the metrics calls, because those are the whole process's.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) keys: Arc<Keyring>,
    /// What is in flight of responses.
    pub(crate) responses: Arc<ResponseBudget>,
    /// Says when the gate agent has begun.
    pub(crate) began: mpsc::UnboundedReceiver<()>,
    /// Lets the gate agent end.
    pub(crate) gate: Arc<Notify>,
    /// An open server needs keys once this is cancelled.
    pub(crate) keyed: CancellationToken,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
    _data: TempDir,
}

impl Running {
    /// A server that runs open.
    pub(crate) async fn open() -> Self {
        Self::with(|_| {}).await
    }

    /// A server with keys: `a2a_ann` for everything, `a2a_bob` for the agent `echo` only.
    pub(crate) async fn keyed() -> Self {
        Self::keyed_with(|_| {}).await
    }

    /// The same, told otherwise.
    pub(crate) async fn keyed_with(change: impl FnOnce(&mut Options)) -> Self {
        Self::keyed_with_fronts(change, Settings { drain: HOUR, ..Settings::default() }, Vec::new()).await
    }

    /// The same with fronts.
    pub(crate) async fn keyed_with_fronts(
        change: impl FnOnce(&mut Options),
        settings: Settings,
        fronts: Vec<Arc<dyn Front>>,
    ) -> Self {
        let change = |options: &mut Options| {
            options.open = false;
            change(options);
        };
        let running = Self::with_fronts(change, settings, fronts).await;
        running.keys.add("a2a_ann", "ann", AgentScope::All, CallerRole::Admin);
        running.keys.add("a2a_bob", "bob", AgentScope::Only(vec!["echo".into()]), CallerRole::None);
        running
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::with_settings(change, Settings { drain: HOUR, ..Settings::default() }).await
    }

    pub(crate) async fn with_settings(change: impl FnOnce(&mut Options), settings: Settings) -> Self {
        Self::with_fronts(change, settings, Vec::new()).await
    }

    async fn with_fronts(change: impl FnOnce(&mut Options), settings: Settings, fronts: Vec<Arc<dyn Front>>) -> Self {
        let data = TempDir::new().unwrap();
        // A busy disk is not what is tested here.
        let durability = switchboard_store::Durability::Process;
        let store_options = switchboard_store::Options { durability, max_queue_delay: HOUR, ..Default::default() };
        let store = SqliteStore::open(data.path(), store_options).unwrap();
        let (begins, began) = mpsc::unbounded_channel();
        let gate = Arc::new(Notify::new());
        let agents = vec![
            Hosted::new("echo", Echo),
            Hosted::new("counted", Echo),
            Hosted::new("gate", Gate { began: begins, open: Arc::clone(&gate) }),
        ];
        let directory = FixedDirectory::new(agents, Some("echo".into()));
        let engine = Engine::start(Arc::new(store), Arc::new(directory), Arc::new(SystemClock), settings);
        let engine = engine.await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let public_base_url = format!("http://{address}");
        // On a slow machine a test may leave an answer unread for longer than a client may; those about it set it.
        let mut options = Options { public_base_url, drain: HOUR, write_timeout: HOUR, ..Options::default() };
        change(&mut options);
        let keys = Arc::new(Keyring::default());
        let keyed = CancellationToken::new();
        let server =
            Server::new(engine.clone(), options, Arc::clone(&keys) as _).open_until(keyed.clone()).fronts(fronts);
        let responses = server.responses();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.run(listener, async {
            // A dropped sender is a test that is over.
            let _ = stopped.await;
        }));
        Self { address, engine, keys, responses, began, gate, keyed, stop: Some(stop), serving, _data: data }
    }

    /// Begins to stop the server, and not the kernel.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Begins to stop the server and the kernel, as the program does, and waits until both have noticed.
    pub(crate) async fn stop_all(&mut self) -> JoinHandle<Result<(), StoreError>> {
        self.stop();
        let kernel = self.engine.clone();
        let stopping = tokio::spawn(async move { kernel.shutdown().await });
        self.engine.closing().cancelled().await;
        stopping
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    pub(crate) async fn connect_small(&self) -> Wire {
        Wire::connect_small(self.address).await
    }

    /// One request on a connection of its own, unless the server hangs up instead of answering it.
    pub(crate) async fn try_ask(&self, head: &str, headers: &[&str], body: &str) -> Option<Reply> {
        let mut wire = self.connect().await;
        wire.try_send(request(head, headers, body).as_bytes()).await.ok()?;
        wire.try_reply().await
    }

    /// Makes a task of `echo`, whose answer is its message, past the wire and whatever limits its clients.
    pub(crate) async fn make_task(&self, text: &str) -> TaskId {
        let send = IncomingMessage {
            address: Address::Root,
            message: Message::text(Role::User, text),
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: false,
        };
        let submitted = self.engine.send(self.engine.route(&Caller::local(), send).await.unwrap()).await.unwrap();
        submitted.answer().await;
        submitted.id().clone()
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, head: &str, headers: &[&str], body: &str) -> Reply {
        let mut wire = self.connect().await;
        wire.send(&request(head, headers, body)).await;
        wire.reply().await
    }
}

/// The bytes of a request. `Host` and `Content-Length` are added unless they are given.
pub(crate) fn request(head: &str, headers: &[&str], body: &str) -> String {
    let has = |name: &str| headers.iter().any(|header| header.to_ascii_lowercase().starts_with(name));
    let mut text = format!("{head} HTTP/1.1\r\n");
    if !has("host:") {
        text.push_str("Host: localhost\r\n");
    }
    if !body.is_empty() && !has("content-length:") && !has("transfer-encoding:") {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text + "\r\n" + body
}

/// A v1.0 JSON-RPC request that sends a text.
pub(crate) fn send_message(id: u32, method: &str, text: &str) -> String {
    let message = serde_json::json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": text }] });
    serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "message": message } }).to_string()
}
