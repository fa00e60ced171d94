//! Fan-outs: policies, questions of children, and a kill in the middle.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use switchboard_a2a::{Json, Message, Role, Task, TaskId, TaskState, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::{Append, Appended, Store, StoreError, StoreFuture};
use switchboard_engine::{
    Address, Agent, AgentError, AgentName, Caller, Cause, Directory, Engine, Error, FixedDirectory, Hosted,
    IncomingMessage, Manifest, Recovery, Resolved, RoutingRequest, Settings, TaskHandle, TaskView, Turn,
};
use switchboard_hub::tasks::fanout::{Fanout, FanoutOptions};
use switchboard_hub::tasks::fanout_plan::{FANOUT, FanoutPlan};
use switchboard_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;

/// Does what its name says.
struct Named(&'static str);

impl Agent for Named {
    fn manifest(&self) -> Manifest {
        Manifest::new(self.0, "Does what its name says")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        match self.0 {
            "bad" => Ok(task.fail("it went wrong").await?),
            "long" => Ok(task.complete_with("x".repeat(2_000)).await?),
            "slow" => {
                task.working().await?;
                task.canceled().await;
                Err(switchboard_engine::Stopped::Canceled.into())
            }
            name if name.starts_with("ask") => {
                let answer = match turn.cause {
                    // The process that asked is gone.
                    Cause::Answer { .. } => turn.text(),
                    _ => task.ask(format!("{name} which?")).await?.joined_text(),
                };
                Ok(task.complete_with(format!("{name} {answer}")).await?)
            }
            name => Ok(task.complete_with(format!("{name} did {}", turn.text())).await?),
        }
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

/// Resolves the root to a fan-out over the agents and with the policy that the text names: `all good,bad`.
struct Planned {
    agents: FixedDirectory,
    /// Whether the agent `shy` was asked for: it is not served the first time.
    was_shy: AtomicBool,
}

impl Directory for Planned {
    fn resolve(&self, at: &Address, caller: &Caller, asked: Option<RoutingRequest<'_>>) -> Result<Resolved, Error> {
        let is_shy = *at == Address::Agent("shy".into());
        if is_shy && !self.was_shy.swap(true, Ordering::Relaxed) {
            return Err(Error::Unavailable { problem: "it comes soon".to_owned(), retry_after_ms: 1 });
        }
        let Some(asked) = asked.filter(|_| *at == Address::Root) else { return self.agents.resolve(at, caller, None) };
        let text = asked.message.joined_text();
        let (policy, names) = text.split_once(' ').unwrap_or(("all", &text));
        let targets = names.split(',').map(AgentName::from).collect();
        let plan = FanoutPlan { targets, policy: policy.parse().unwrap() };
        let hosted = self.agents.find(&FANOUT.into()).unwrap();
        Ok(Resolved { hosted, decision: Some(Json::from_serialize(&plan).unwrap()), cooldown: None })
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.find(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.agents()
    }
}

/// In the log of a task that is to be canceled.
const CANCEL: &[u8] = br#""cancelRequested""#;

/// So many requests to cancel a task fail.
struct FailingCancels(AtomicUsize);

impl StoreHooks for FailingCancels {
    fn append(&self, store: &Arc<dyn Store>, append: Append) -> StoreFuture<Appended> {
        let is_cancel = append.events.windows(CANCEL.len()).any(|window| window == CANCEL);
        let left = |left: usize| left.checked_sub(1).filter(|_| is_cancel);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".into())))),
            Err(_) => store.append(append),
        }
    }
}

struct Kernel {
    engine: Engine,
    runtime: Runtime,
}

impl Kernel {
    fn open(folder: &Path) -> Self {
        Self::with_failing_cancels(folder, 0)
    }

    /// The store fails the first requests to cancel a task.
    fn with_failing_cancels(folder: &Path, failing: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder, options).unwrap());
        let store = ForwardingStore { store, hooks: FailingCancels(AtomicUsize::new(failing)) };
        let names = ["good", "fine", "bad", "slow", "long", "shy", "ask", "ask2"];
        let fanout = Fanout::new(FanoutOptions { max: 4, inline: 1_000 });
        let mut agents: Vec<_> = names.into_iter().map(|name| Hosted::new(name, Named(name))).collect();
        agents.push(Hosted::new(FANOUT, fanout));
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let directory = Planned { agents: FixedDirectory::new(agents, None), was_shy: AtomicBool::new(false) };
        let started = Engine::start(Arc::new(store), Arc::new(directory), Arc::new(clock), Settings::default());
        let engine = runtime.block_on(started).unwrap();
        Self { engine, runtime }
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let limited = async { tokio::time::timeout(crate::HANG_GUARD, work).await };
        self.runtime.block_on(limited).expect("the test hangs")
    }

    fn kill(self) {
        let Self { engine, runtime } = self;
        drop(engine);
        // Elsewhere, because it waits for what blocks a thread, however long that takes.
        let (ended, has_ended) = std::sync::mpsc::channel();
        let end = std::thread::spawn(move || {
            drop(runtime);
            ended.send(()).unwrap();
        });
        has_ended.recv_timeout(crate::HANG_GUARD).expect("something of the kernel goes on");
        end.join().unwrap();
    }

    async fn send(&self, message: Message) -> Result<TaskId, Error> {
        let incoming = IncomingMessage {
            address: Address::Root,
            message,
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: None,
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: false,
            streaming: false,
        };
        let routed = self.engine.route(&Caller::local(), incoming).await?;
        Ok(self.engine.send(routed).await?.id().clone())
    }

    async fn begin(&self, text: &str) -> TaskId {
        self.send(Message::text(Role::User, text)).await.unwrap()
    }

    async fn say(&self, task: &TaskId, about: &[&TaskId], text: &str) {
        let reference_task_ids = about.iter().map(|id| (*id).clone()).collect();
        let message = Message { task_id: Some(task.clone()), reference_task_ids, ..Message::text(Role::User, text) };
        self.send(message).await.unwrap();
    }

    async fn get(&self, id: &TaskId) -> Task {
        self.engine.get(&Address::Root, &Caller::local(), id).await.unwrap().into_task().unwrap()
    }

    async fn until(&self, id: &TaskId, fits: impl Fn(&Task) -> bool) -> Task {
        loop {
            let task = self.get(id).await;
            if fits(&task) {
                return task;
            }
            assert!(!task.status.state.is_terminal(), "ended as {:?}: {}", task.status.state, words(&task));
            tokio::task::yield_now().await;
        }
    }

    async fn ended(&self, id: &TaskId) -> Task {
        self.until(id, |task| task.status.state.is_terminal()).await
    }

    async fn live(&self) -> Vec<(AgentName, TaskId, TaskState)> {
        let live = self.engine.live_tasks(TaskKey(0), 100).await.unwrap();
        live.into_iter().map(|live| (live.task.agent, live.task.id, live.state)).collect()
    }

    async fn child(&self, agent: &str) -> TaskId {
        self.live().await.into_iter().find(|(name, ..)| name.as_str() == agent).unwrap().1
    }
}

fn words(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

#[test]
fn each_policy_ends_as_it_says_and_leaves_no_child_behind() {
    use TaskState::{Completed, Failed, Rejected};
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path());
    kernel.run(async {
        for (text, state, told, artifacts) in [
            ("all good,fine", Completed, "2 of 2 completed", 2),
            ("all good,shy", Completed, "2 of 2 completed", 2),
            ("all good,bad", Failed, "1 of 2 completed: good completed, bad failed", 2),
            ("all good,nowhere", Failed, "nowhere rejected", 2),
            ("first slow,good", Completed, "1 of 2 completed: slow canceled, good completed", 1),
            ("first bad,bad", Failed, "0 of 2 completed", 2),
            ("quorum good,slow,fine", Completed, "2 of 3 completed", 2),
            ("quorum:1 bad,good", Completed, "1 of 2 completed", 1),
            ("quorum:2 bad,slow", Failed, "0 of 2 completed: bad failed, slow canceled", 1),
            ("failover bad,good,slow", Completed, "1 of 3 completed: bad failed, good completed", 2),
            ("failover bad,bad", Failed, "0 of 2 completed", 2),
            ("all good,good,good,good,good", Rejected, "5 agents: a message goes to 1 to 4", 0),
        ] {
            let id = kernel.begin(text).await;
            let task = kernel.ended(&id).await;
            assert_eq!((task.status.state, words(&task).contains(told)), (state, true), "{text}: {}", words(&task));
            assert!(task.artifacts.len() >= artifacts, "{text}: {:?}", task.artifacts);
            while !kernel.live().await.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        let task = kernel.ended(&kernel.begin("all good,long").await).await;
        let child = |index: usize| task.artifacts[index].metadata.as_ref().unwrap().get("switchboard/child").unwrap();
        let named = |name: &str| task.artifacts.iter().position(|made| made.name.as_deref() == Some(name)).unwrap();
        let (good, long) = (named("good"), named("long"));
        assert_eq!(task.artifacts[good].parts[0].as_text(), Some("good did all good,long"));
        let note = task.artifacts[long].parts[0].as_text().unwrap();
        assert!(note.contains("bytes: read task") && note.len() < 200, "{note}");
        assert!(child(good).as_str().contains(r#""state":"completed""#), "{}", child(good).as_str());
        let whole = kernel.get(&task.artifacts[long].artifact_id.as_str().into()).await;
        assert_eq!(whole.context_id, task.context_id, "the caller can read it, in the same conversation");
        let task = kernel.ended(&kernel.begin("all good,fine,long").await).await;
        let mut names: Vec<&str> = task.artifacts.iter().map(|made| made.name.as_deref().unwrap()).collect();
        names.sort_unstable();
        assert_eq!((task.status.state, names), (Completed, vec!["fine", "good", "long"]), "one of each, and no other");
    });
}

#[test]
fn a_fan_out_waits_when_all_its_open_children_do_and_hands_answers_on() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path());
    kernel.run(async {
        let id = kernel.begin("all ask,ask2,good").await;
        let asked = kernel.until(&id, |task| task.status.state == TaskState::InputRequired).await;
        assert!(words(&asked).contains("ask which?") && words(&asked).contains("ask2 which?"), "{}", words(&asked));
        let (first, second) = (kernel.child("ask").await, kernel.child("ask2").await);
        // Not clear for which; then named; then the only one that is left.
        kernel.say(&id, &[], "red").await;
        let again =
            kernel.until(&id, |task| task.history.iter().any(|said| said.joined_text().contains("not clear"))).await;
        assert!(!again.status.state.is_terminal());
        kernel.until(&id, |task| task.status.state == TaskState::InputRequired).await;
        kernel.say(&id, &[&second], "green").await;
        assert_eq!(words(&kernel.ended(&second).await), "ask2 green");
        kernel.until(&id, |task| task.status.state == TaskState::InputRequired && task.artifacts.len() == 2).await;
        kernel.say(&id, &[], "blue").await;
        assert_eq!(words(&kernel.ended(&first).await), "ask blue");
        assert_eq!(kernel.ended(&id).await.status.state, TaskState::Completed);
        // An answer at the child itself ends the wait too.
        let id = kernel.begin("all ask,good").await;
        kernel.until(&id, |task| task.status.state == TaskState::InputRequired).await;
        kernel.say(&kernel.child("ask").await, &[], "pink").await;
        assert_eq!(kernel.ended(&id).await.status.state, TaskState::Completed);
    });
}

#[test]
fn a_fan_out_that_is_killed_joins_its_children_and_a_cancellation_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path());
    let (id, before) = kernel.run(async {
        let id = kernel.begin("all slow,good,slow").await;
        kernel.until(&id, |task| task.artifacts.len() == 1).await;
        (id, kernel.live().await)
    });
    assert_eq!(before.len(), 3);
    kernel.kill();
    let kernel = Kernel::open(folder.path());
    kernel.run(async {
        kernel.until(&id, |task| task.status.state == TaskState::Working).await;
        let ids = |live: Vec<(AgentName, TaskId, TaskState)>| live.into_iter().map(|live| live.1).collect::<Vec<_>>();
        assert_eq!(ids(kernel.live().await), ids(before), "the same tasks");
        let canceled = kernel.engine.cancel(&Address::Root, &Caller::local(), &id).await.unwrap();
        assert_eq!(canceled.into_task().unwrap().status.state, TaskState::Canceled);
        while !kernel.live().await.is_empty() {
            tokio::task::yield_now().await;
        }
        let total = kernel.engine.list(&Address::Root, &Caller::local(), page()).await.unwrap().total;
        assert_eq!(total, 4, "none was begun twice");
    });
}

#[test]
fn a_fan_out_that_is_killed_says_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut kernel = Kernel::open(folder.path());
    let all_said = |task: &Task| -> Vec<String> {
        let by_agent = task.history.iter().chain(&task.status.message).filter(|said| said.role == Role::Agent);
        by_agent.map(Message::joined_text).collect()
    };
    let (id, before) = kernel.run(async {
        let id = kernel.begin("all slow,ask,good").await;
        kernel.until(&id, |task| task.artifacts.len() == 1 && all_said(task).len() == 2).await;
        // It cannot be for one of both alone.
        kernel.say(&id, &[&id], "which of you?").await;
        (id.clone(), all_said(&kernel.until(&id, |task| all_said(task).len() == 3).await))
    });
    assert!(before[0].starts_with("asked slow, ask, good") && before[1].contains("ask asks, in task"), "{before:?}");
    assert!(before[2].contains("not clear which agent"), "{before:?}");
    for _ in 0..2 {
        kernel.kill();
        kernel = Kernel::open(folder.path());
        kernel.run(kernel.until(&id, |task| task.status.state == TaskState::Working));
    }
    kernel.run(async {
        // What happens next is told, behind what was.
        let asking = kernel.child("ask").await;
        kernel.say(&asking, &[], "red").await;
        let task = kernel.until(&id, |task| task.artifacts.len() == 2).await;
        assert_eq!(all_said(&task), before);
        let slow = kernel.child("slow").await;
        kernel.engine.cancel(&Address::Root, &Caller::local(), &slow).await.unwrap();
        let said = all_said(&kernel.ended(&id).await);
        assert_eq!((said.len(), &said[..3]), (4, &before[..]), "{said:?}");
    });
}

#[test]
fn a_fan_out_whose_policy_is_met_completes_though_a_child_cannot_be_canceled_just_now() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::with_failing_cancels(folder.path(), 1);
    kernel.run(async {
        let id = kernel.begin("first slow,slow,good").await;
        let task = kernel.ended(&id).await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", words(&task));
        // The other one was canceled all the same.
        while kernel.live().await.len() > 1 {
            tokio::task::yield_now().await;
        }
        // As the job does that is owed for what an ended task has left behind.
        assert!(kernel.engine.cancel_children_of(&id).await.unwrap(), "one was left behind");
        while !kernel.live().await.is_empty() {
            tokio::task::yield_now().await;
        }
    });
}

fn page() -> switchboard_engine::ListFilter {
    switchboard_engine::ListFilter { page_size: 10, ..Default::default() }
}
