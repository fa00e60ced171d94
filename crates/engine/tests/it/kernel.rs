//! A kernel to test: its own runtime, so that it can be killed; a simulated clock; agents written as closures.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use switchboard_a2a::{Message, Role, Task, TaskId, TaskState, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::Store;
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;

use crate::faults::{Faults, FaultyStore};

type Run = dyn Fn(Turn, TaskHandle) -> BoxFuture<'static, Result<(), AgentError>> + std::marker::Send + Sync;

/// An agent made of a closure.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) manifest: Manifest,
    pub(crate) recovery: Recovery,
    /// The text of messages that it has not begun to work on when it is lost; empty for none.
    pub(crate) queues: &'static str,
    /// Texts that answer an open question of their conversation.
    pub(crate) answers: &'static [&'static str],
    run: Arc<Run>,
}

impl Script {
    pub(crate) fn new<F, R>(run: F) -> Self
    where
        F: Fn(Turn, TaskHandle) -> R + std::marker::Send + Sync + 'static,
        R: Future<Output = Result<(), AgentError>> + std::marker::Send + 'static,
    {
        Self {
            manifest: Manifest::new("Script", "A closure"),
            recovery: Recovery::Fail("lost".to_owned()),
            queues: "",
            answers: &[],
            run: Arc::new(move |turn, task| run(turn, task).boxed()),
        }
    }

    pub(crate) fn early(mut self) -> Self {
        self.manifest.start = Start::WithCommit;
        self
    }

    pub(crate) fn recovering(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// The script, and a count of its runs.
    pub(crate) fn counted(self) -> (Self, Runs) {
        let held = Arc::new(());
        let (of_runs, inner) = (held.clone(), self.run.clone());
        let run = move |turn: Turn, task: TaskHandle| {
            let (work, held) = (inner(turn, task), of_runs.clone());
            async move {
                let outcome = work.await;
                drop(held);
                outcome
            }
            .boxed()
        };
        // The count's own reference and the script's.
        (Self { run: Arc::new(run), ..self }, Runs { held, idle: 2 })
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Manifest)) -> Self {
        change(&mut self.manifest);
        self
    }
}

/// How many runs of a script there are: each holds a reference until it is dropped.
pub(crate) struct Runs {
    held: Arc<()>,
    idle: usize,
}

impl Runs {
    /// Waits until no run is left, and lets something happen meanwhile.
    pub(crate) async fn until_none(&self, meanwhile: impl Fn()) {
        while Arc::strong_count(&self.held) > self.idle {
            meanwhile();
            tokio::task::yield_now().await;
        }
    }
}

impl Agent for Script {
    fn manifest(&self) -> Manifest {
        self.manifest.clone()
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        (self.run)(turn, task).await
    }

    fn is_answer(&self, message: &Message) -> bool {
        self.answers.contains(&message.joined_text().as_str())
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        match task.message.joined_text() == self.queues {
            true => Recovery::Queue,
            false => self.recovery.clone(),
        }
    }
}

/// A kernel, its clock and its runtime.
pub(crate) struct Kernel {
    pub(crate) engine: Engine,
    pub(crate) clock: SimulatedClock,
    pub(crate) runtime: Runtime,
}

pub(crate) const AGENT: &str = "script";

impl Kernel {
    pub(crate) fn open(folder: &Path, script: Script) -> Self {
        Self::with(folder, script, Settings::default(), |store| Arc::new(store))
    }

    pub(crate) fn with_settings(folder: &Path, script: Script, settings: Settings) -> Self {
        Self::with(folder, script, settings, |store| Arc::new(store))
    }

    pub(crate) fn with_faults(folder: &Path, script: Script, settings: Settings, faults: &Faults) -> Self {
        let faults = faults.clone();
        Self::with(folder, script, settings, |store| Arc::new(FaultyStore { store: Arc::new(store), hooks: faults }))
    }

    pub(crate) fn hosting(folder: &Path, agent: impl Agent) -> Self {
        Self::with(folder, agent, Settings::default(), |store| Arc::new(store))
    }

    pub(crate) fn with(
        folder: &Path,
        script: impl Agent,
        settings: Settings,
        wrap: impl FnOnce(SqliteStore) -> Arc<dyn Store>,
    ) -> Self {
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = wrap(SqliteStore::open(folder, options).unwrap());
        Self::start(AGENT, store, runtime, script, settings)
    }

    /// Two kernels on one store, as two nodes of a cluster have it. What is called on one runs in the runtime of the caller.
    pub(crate) fn two_nodes(
        folder: &Path,
        script: &Script,
        settings: &Settings,
        wrap: impl FnMut(SqliteStore) -> Arc<dyn Store>,
    ) -> [Self; 2] {
        Self::two_nodes_serving(folder, || vec![Hosted::new(AGENT, script.clone())], settings, wrap)
    }

    /// The same with any agents.
    pub(crate) fn two_nodes_serving(
        folder: &Path,
        agents: impl Fn() -> Vec<Hosted>,
        settings: &Settings,
        mut wrap: impl FnMut(SqliteStore) -> Arc<dyn Store>,
    ) -> [Self; 2] {
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let stores = SqliteStore::open_nodes(folder, options, 2).unwrap();
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let nodes = stores.into_iter().map(|store| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let directory = FixedDirectory::new(agents(), None);
            let started = Engine::start(wrap(store), Arc::new(directory), Arc::new(clock.clone()), settings.clone());
            let engine = runtime.block_on(started).unwrap();
            Self { engine, clock: clock.clone(), runtime }
        });
        nodes.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("two were opened"))
    }

    /// With an agent of another name.
    pub(crate) fn named(name: &'static str, folder: &Path, script: impl Agent) -> Self {
        Self::named_with(name, folder, script, |store| Arc::new(store))
    }

    pub(crate) fn named_with(
        name: &'static str,
        folder: &Path,
        script: impl Agent,
        wrap: impl FnOnce(SqliteStore) -> Arc<dyn Store>,
    ) -> Self {
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = wrap(SqliteStore::open(folder, options).unwrap());
        Self::start(name, store, runtime, script, Settings::default())
    }

    /// With an agent that is served in a way of its own.
    pub(crate) fn serving(folder: &Path, hosted: Hosted) -> Self {
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = Arc::new(SqliteStore::open(folder, options).unwrap());
        Self::start_hosted(hosted, store, runtime, Settings::default())
    }

    /// With several agents, each at its address.
    pub(crate) fn serving_all(folder: &Path, agents: Vec<Hosted>, settings: Settings) -> Self {
        let options = Options {
            durability: Durability::Process,
            max_queue_delay: Duration::from_secs(3_600),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = Arc::new(SqliteStore::open(folder, options).unwrap());
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let started =
            Engine::start(store, Arc::new(FixedDirectory::new(agents, None)), Arc::new(clock.clone()), settings);
        let engine = runtime.block_on(started).unwrap();
        Self { engine, clock, runtime }
    }

    fn start(
        name: &'static str,
        store: Arc<dyn Store>,
        runtime: Runtime,
        script: impl Agent,
        settings: Settings,
    ) -> Self {
        Self::start_hosted(Hosted::new(name, script), store, runtime, settings)
    }

    fn start_hosted(hosted: Hosted, store: Arc<dyn Store>, runtime: Runtime, settings: Settings) -> Self {
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let directory = FixedDirectory::new(vec![hosted], None);
        let started = Engine::start(store, Arc::new(directory), Arc::new(clock.clone()), settings);
        let engine = runtime.block_on(started).unwrap();
        Self { engine, clock, runtime }
    }

    /// Drops everything in the middle of whatever it does, as a killed process would.
    pub(crate) fn kill(self) {
        let Self { engine, runtime, .. } = self;
        drop(engine);
        runtime.shutdown_timeout(Duration::from_secs(10));
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let limited = async { tokio::time::timeout(Duration::from_secs(10 * 60), work).await };
        self.runtime.block_on(limited).expect("the test hangs")
    }

    pub(crate) async fn send(&self, text: &str) -> Submitted {
        self.try_send(message(text)).await.unwrap()
    }

    pub(crate) async fn try_send(&self, message: Message) -> Result<Submitted, Error> {
        self.send_as(&Caller::local(), request(message)).await
    }

    /// The same as a sender that waits for the answer.
    pub(crate) async fn send_and_wait(&self, message: Message) -> Result<Submitted, Error> {
        let routed = self.engine.route(&Caller::local(), request(message)).await?;
        self.engine.send_and_wait(routed).await.map(|(submitted, _)| submitted)
    }

    pub(crate) async fn send_as(&self, caller: &Caller, incoming: IncomingMessage) -> Result<Submitted, Error> {
        self.engine.send(self.engine.route(caller, incoming).await?).await
    }

    pub(crate) async fn send_to(&self, agent: &str, text: &str) -> Result<Submitted, Error> {
        let address = Address::Agent(agent.into());
        self.send_as(&Caller::local(), IncomingMessage { address, ..request(message(text)) }).await
    }

    pub(crate) async fn say(&self, id: &TaskId, text: &str) -> Result<Submitted, Error> {
        self.try_send(Message { task_id: Some(id.clone()), ..message(text) }).await
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Result<Task, Error> {
        self.engine.get(&Address::Root, &Caller::local(), id).await?.into_task()
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task, Error> {
        self.engine.cancel(&Address::Root, &Caller::local(), id).await?.into_task()
    }

    /// Every event of a task that is sent, from the first. Only for stores that were opened once: epoch 1.
    pub(crate) async fn log(&self, id: &TaskId) -> Vec<Arc<LoggedEvent>> {
        // The first event of a task is always its message, which is not sent.
        let after = Some(Cursor { epoch: ids::Epoch(1), seq: Seq(1) });
        let caller = Caller::local();
        let subscribed = self.engine.subscribe(&Address::Root, &caller, id, after, |_| StreamEnd::Terminal).await;
        let mut stream = subscribed.unwrap().stream;
        let mut events = Vec::new();
        while let Some(batch) = stream.next().await.unwrap() {
            events.extend(batch);
        }
        events
    }

    /// Waits until a task is in a state.
    pub(crate) async fn reach(&self, id: &TaskId, state: TaskState) -> Task {
        loop {
            let task = self.get(id).await.unwrap();
            if task.status.state == state {
                return task;
            }
            assert!(!task.status.state.is_terminal(), "ended as {:?}: {:?}", task.status.state, task.status.message);
            tokio::task::yield_now().await;
        }
    }

    /// Waits until a task has ended, however.
    pub(crate) async fn ended(&self, id: &TaskId) -> Task {
        loop {
            let task = self.get(id).await.unwrap();
            if task.status.state.is_terminal() {
                return task;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass, a second at a time, until something is done.
    pub(crate) async fn while_time_passes<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            if let Some(done) = work.as_mut().now_or_never() {
                return done;
            }
            self.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    }

    /// Stops in order, as for a deploy, whatever still runs.
    pub(crate) fn stop(self) {
        self.run(async {
            let engine = self.engine.clone();
            let stopping = tokio::spawn(async move { engine.shutdown().await });
            self.while_time_passes(stopping).await.unwrap().unwrap();
        });
        self.kill();
    }

    /// Stops in order, before so much time has passed.
    pub(crate) async fn stop_before(&self, limit: Duration) {
        let engine = self.engine.clone();
        let stopping = tokio::spawn(async move { engine.shutdown().await });
        let mut passed = Duration::ZERO;
        while !stopping.is_finished() {
            passed += Duration::from_millis(20);
            assert!(passed < limit, "it was waited for");
            self.clock.advance(Duration::from_millis(20));
            // The store is closed in real time.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stopping.await.unwrap().unwrap();
    }

    /// Turns the clock as soon as at least `sleepers` wait for it.
    pub(crate) async fn advance(&self, sleepers: usize, duration: Duration) {
        while self.clock.sleepers() < sleepers {
            tokio::task::yield_now().await;
        }
        self.clock.advance(duration);
    }
}

pub(crate) fn message(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn request(message: Message) -> IncomingMessage {
    IncomingMessage {
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
    }
}

pub(crate) async fn answer_task(submitted: &Submitted) -> Task {
    match submitted.answer().await {
        SendResult::Task(reading) => reading.into_task().unwrap(),
        SendResult::Message(message) => panic!("a message instead of a task: {message:?}"),
    }
}

pub(crate) fn reason(task: &Task) -> String {
    let metadata = task.metadata.as_ref().expect("no metadata");
    metadata.get(reason::REASON_KEY).expect("no reason").as_text().unwrap()
}

pub(crate) fn status_text(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}
