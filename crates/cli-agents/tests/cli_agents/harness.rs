//! A kernel that hosts one command-line agent: its own runtime, so that it can be killed, and a simulated clock.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{
    ContextId, Dialect, Json, Message, Metadata, Part, PartContent, Role, Task, TaskId, TaskState, Timestamp,
};
use switchboard_cli_agents::process::{Children, ChildrenOptions};
use switchboard_cli_agents::{CliAgent, Settings, SharedResources};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::Store;
use switchboard_engine::{
    Address, Caller, Cursor, Engine, Error, FixedDirectory, Hosted, IncomingMessage, SendResult, Seq, Served,
    StreamEnd, Submitted, Switches, ids, reason,
};
use switchboard_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;

use crate::fixture::Fixture;

/// How often things that programs do are looked for.
const LOOK: Duration = Duration::from_millis(3);

/// A kernel, its clock, its children and its runtime.
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) clock: SimulatedClock,
    pub(crate) children: Children,
    pub(crate) agent: Arc<CliAgent>,
    runtime: Runtime,
}

impl Harness {
    pub(crate) fn open(fixture: &Fixture, settings: Settings) -> Self {
        Self::serving(fixture, settings, Switches::default())
    }

    pub(crate) fn serving(fixture: &Fixture, settings: Settings, switches: Switches) -> Self {
        Self::with_store(fixture, settings, switches, |store| Arc::new(store))
    }

    /// With the tasks in a store that `wrap` puts around the usual one.
    pub(crate) fn with_store(
        fixture: &Fixture,
        settings: Settings,
        switches: Switches,
        wrap: impl FnOnce(SqliteStore) -> Arc<dyn Store>,
    ) -> Self {
        Self::build(fixture, settings, switches, Duration::from_millis(300), wrap)
    }

    /// With a second agent, `reviewer`, beside it.
    pub(crate) fn with_reviewer(fixture: &Fixture, settings: Settings, switches: Switches, reviewer: Settings) -> Self {
        let grace = Duration::from_millis(300);
        let kernel = switchboard_engine::Settings::default();
        Self::build_all(fixture, settings, switches, Some(reviewer), kernel, grace, |store| Arc::new(store))
    }

    /// With settings of the kernel.
    pub(crate) fn with_kernel(fixture: &Fixture, settings: Settings, kernel: switchboard_engine::Settings) -> Self {
        let grace = Duration::from_millis(300);
        Self::build_all(fixture, settings, Switches::default(), None, kernel, grace, |store| Arc::new(store))
    }

    /// With children that have all the time they need to end, however busy the machine is.
    pub(crate) fn patient(fixture: &Fixture, settings: Settings) -> Self {
        Self::build(fixture, settings, Switches::default(), Duration::from_secs(600), |store| Arc::new(store))
    }

    fn build(
        fixture: &Fixture,
        settings: Settings,
        switches: Switches,
        grace: Duration,
        wrap: impl FnOnce(SqliteStore) -> Arc<dyn Store>,
    ) -> Self {
        Self::build_all(fixture, settings, switches, None, switchboard_engine::Settings::default(), grace, wrap)
    }

    fn build_all(
        fixture: &Fixture,
        settings: Settings,
        switches: Switches,
        reviewer: Option<Settings>,
        kernel: switchboard_engine::Settings,
        grace: Duration,
        wrap: impl FnOnce(SqliteStore) -> Arc<dyn Store>,
    ) -> Self {
        let options = ChildrenOptions {
            helper: [env!("CARGO_BIN_EXE_exec-child"), "exec-child"].map(OsString::from).into(),
            ledger: fixture.data().join("children"),
            grace,
            // Tests of one process run side by side.
            exclusive: false,
        };
        std::fs::create_dir_all(fixture.data()).unwrap();
        let (children, _) = Children::open(options).unwrap();
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let shared = SharedResources::new(children.clone(), Arc::new(clock.clone()));
        let reviewer = reviewer.map(|settings| {
            let worktrees = fixture.data().join("worktrees-of-reviewer");
            let agent = Served::new(CliAgent::new(settings, shared.clone(), worktrees)).switches(switches.clone());
            Hosted::serving("reviewer", agent)
        });
        let agent = Arc::new(CliAgent::new(settings, shared, fixture.data().join("worktrees")));
        let hosted = Hosted::serving("coder", Served::new(agent.clone()).switches(switches));
        let directory = FixedDirectory::new(std::iter::once(hosted).chain(reviewer).collect(), Some("coder".into()));
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let store = wrap(SqliteStore::open(&fixture.data().join("store"), options).unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let engine = Engine::start(store, Arc::new(directory), Arc::new(clock.clone()), kernel);
        let engine = runtime.block_on(engine).unwrap();
        Self { engine, clock, children, agent, runtime }
    }

    /// Drops everything in the middle of whatever it does, as a killed process would. Its children die with it.
    pub(crate) fn kill(self) {
        let Self { engine, runtime, children, agent, .. } = self;
        drop((engine, agent));
        runtime.shutdown_timeout(Duration::from_secs(10));
        let patience = std::time::Instant::now() + Duration::from_secs(120);
        while children.running() > 0 {
            assert!(std::time::Instant::now() < patience, "children of a killed server live on");
            std::thread::sleep(LOOK);
        }
    }

    /// Stops in order: what runs has no time left, and is marked for the next server.
    pub(crate) fn stop(self) {
        let engine = self.engine.clone();
        self.runtime.block_on(async {
            let stopping = tokio::spawn(async move { engine.shutdown().await });
            while !stopping.is_finished() {
                self.clock.advance(Duration::from_secs(1));
                tokio::time::sleep(LOOK).await;
            }
            stopping.await.unwrap().unwrap();
        });
        self.kill();
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let limited = async { tokio::time::timeout(Duration::from_secs(600), work).await };
        self.runtime.block_on(limited).expect("the test hangs")
    }

    /// Sends a message as another caller, and does not wait for what comes of it.
    pub(crate) async fn send_as(&self, caller: &Caller, message: impl Into<Said>) -> TaskId {
        self.try_send_as(caller, message.into().0).await.unwrap().id().clone()
    }

    pub(crate) async fn try_send(&self, message: Message) -> Result<Submitted, Error> {
        self.try_send_as(&Caller::local(), message).await
    }

    async fn try_send_as(&self, caller: &Caller, message: Message) -> Result<Submitted, Error> {
        let send = IncomingMessage {
            address: Address::Root,
            message,
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: true,
        };
        self.engine.send(self.engine.route(caller, send).await?).await
    }

    /// Sends a message and does not wait for what comes of it.
    pub(crate) async fn start(&self, message: impl Into<Said>) -> TaskId {
        self.try_send(message.into().0).await.unwrap().id().clone()
    }

    /// Sends a message and waits until its task ends or asks.
    pub(crate) async fn send(&self, message: impl Into<Said>) -> Task {
        let submitted = self.try_send(message.into().0).await.unwrap();
        match submitted.answer().await {
            SendResult::Task(reading) => reading.into_task().unwrap(),
            SendResult::Message(message) => panic!("a message instead of a task: {message:?}"),
        }
    }

    /// Sends a message to a task and waits until it ends or asks again.
    pub(crate) async fn reply(&self, task: &Task, message: impl Into<Said>) -> Task {
        let message = Message { task_id: Some(task.id.clone()), ..message.into().0 };
        self.send(Said(message)).await
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Task {
        let reading = self.engine.get(&Address::Root, &Caller::local(), id).await;
        reading.unwrap().into_task().unwrap()
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task, Error> {
        self.engine.cancel(&Address::Root, &Caller::local(), id).await?.into_task()
    }

    /// Cancels a task whose agent has no time to stop it in order.
    pub(crate) async fn cancel_at_once(&self, id: &TaskId) -> Task {
        let hurry = async {
            loop {
                self.clock.advance(Duration::from_secs(1));
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            canceled = self.cancel(id) => canceled.unwrap(),
            () = hurry => unreachable!(),
        }
    }

    /// Waits until something can be said of a task.
    pub(crate) async fn until(&self, id: &TaskId, is_so: impl Fn(&Task) -> bool) -> Task {
        loop {
            let task = self.get(id).await;
            if is_so(&task) {
                return task;
            }
            assert!(!task.status.state.is_terminal(), "ended as {:?}: {}", task.status.state, status_text(&task));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a task has ended, however.
    pub(crate) async fn ended(&self, id: &TaskId) -> Task {
        self.until(id, |task| task.status.state.is_terminal()).await
    }

    /// Waits until something is so outside of the kernel.
    pub(crate) async fn wait_for<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for what a program notes.
    pub(crate) async fn noted(&self, fixture: &Fixture, name: &str) -> String {
        self.wait_for(|| fixture.noted(name)).await
    }

    /// Every event of a task that is sent, from the first, as in version 1.0.
    pub(crate) async fn log(&self, id: &TaskId) -> Vec<Value> {
        self.log_in(Dialect::V1, id).await
    }

    /// The same in a dialect.
    pub(crate) async fn log_in(&self, dialect: Dialect, id: &TaskId) -> Vec<Value> {
        // The first event of a task is always its message, which is not sent.
        let after = Some(Cursor { epoch: ids::Epoch(1), seq: Seq(1) });
        let caller = Caller::local();
        let subscribed = self.engine.subscribe(&Address::Root, &caller, id, after, |_| StreamEnd::Terminal).await;
        let mut stream = subscribed.unwrap().stream;
        let mut frames = Vec::new();
        while let Some(batch) = stream.next().await.unwrap() {
            frames.extend(batch.iter().map(|event| {
                let frame = event.frame(dialect, false).unwrap();
                serde_json::from_slice::<Value>(&frame).unwrap()
            }));
        }
        frames
    }

    /// What a task was told, in short: `artifact-id: text`, `artifact-id+: text` where it is added to one, and
    /// `STATE: text`.
    pub(crate) async fn told(&self, id: &TaskId) -> Vec<String> {
        self.log(id).await.iter().map(in_short).collect()
    }
}

/// A message from a caller.
pub(crate) struct Said(pub(crate) Message);

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self(Message::text(Role::User, text))
    }
}

impl From<Value> for Said {
    fn from(data: Value) -> Self {
        let parts = vec![Part::data(Json::from_serialize(&data).unwrap())];
        Self(Message { parts, ..Message::text(Role::User, "") })
    }
}

impl Said {
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.0.context_id = Some(ContextId::from(context));
        self
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let metadata = self.0.metadata.get_or_insert_with(Metadata::default);
        metadata.insert(key, Json::from_serialize(&value.into()).unwrap());
        self
    }
}

/// A text within a conversation.
pub(crate) fn within(context: &str, text: &str) -> Said {
    Said::from(text).within(context)
}

fn in_short(frame: &Value) -> String {
    let words = |parts: &Value| -> String {
        let parts = parts.as_array().into_iter().flatten();
        parts.map(|part| part["text"].as_str().map_or_else(|| part["data"].to_string(), str::to_owned)).collect()
    };
    if let Some(update) = frame.get("artifactUpdate") {
        let added = if update["append"] == true { "+" } else { "" };
        let id = update["artifact"]["artifactId"].as_str().unwrap();
        return format!("{id}{added}: {}", words(&update["artifact"]["parts"]));
    }
    let status = &frame["statusUpdate"]["status"];
    let state = status["state"].as_str().unwrap().trim_start_matches("TASK_STATE_");
    format!("{state}: {}", words(&status["message"]["parts"]))
}

pub(crate) fn status_text(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

/// What a task's end says of its reason; its detail after a slash.
pub(crate) fn reason(task: &Task) -> String {
    let metadata = task.metadata.as_ref().expect("no metadata");
    let detail = metadata.get(reason::REASON_DETAIL_KEY).and_then(Json::as_text);
    let reason = metadata.get(reason::REASON_KEY).expect("no reason").as_text().unwrap();
    detail.map_or_else(|| reason.clone(), |detail| format!("{reason}/{detail}"))
}

/// How a task ended, in one line.
pub(crate) fn ending(task: &Task) -> (TaskState, String) {
    (task.status.state, status_text(task))
}

/// The data part of a question.
pub(crate) fn question(task: &Task) -> Value {
    assert_eq!(task.status.state, TaskState::InputRequired, "{}", status_text(task));
    let parts = &task.status.message.as_ref().unwrap().parts;
    let data = parts.iter().find_map(|part| match &part.content {
        PartContent::Data(json) => json.read::<Value>().ok(),
        _ => None,
    });
    data.unwrap()
}

/// The data of an artifact.
pub(crate) fn data(task: &Task, id: &str) -> Value {
    let artifact = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == id);
    let artifact = artifact.unwrap_or_else(|| panic!("no artifact {id}"));
    match &artifact.parts.first().unwrap().content {
        PartContent::Data(json) => json.read().unwrap(),
        other => panic!("no data: {other:?}"),
    }
}

/// The text of an artifact, all its parts together; nothing if there is none.
pub(crate) fn text(task: &Task, id: &str) -> Option<String> {
    let artifact = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == id)?;
    let texts = artifact.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect())
}
