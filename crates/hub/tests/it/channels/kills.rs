//! A kill at any write, over and over: what was said is handed on once, all of it, in order.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::{ContextId, Json, Message, MessageId, Role, Timestamp};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::{Append, Appended, Conversation, Store, StoreFuture};
use switchboard_engine::{
    Address, Agent, AgentError, AgentName, Caller, CallerId, Directory, Engine, Error, FixedDirectory, Hosted,
    IncomingMessage, Manifest, Recovery, Settings, TaskHandle, TaskView, Turn,
};
use switchboard_hub::routing::DecidedBy;
use switchboard_hub::tasks::channel::mailboxes::Mailboxes;
use switchboard_hub::tasks::channel::{Channel, ChannelOptions};
use switchboard_hub::tasks::channel_plan::{CHANNEL, ChannelPlan};
use switchboard_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const MESSAGES: usize = 12;
const KILLS: usize = 6;
const SEEDS: u64 = 12;

/// Asks about every third message, and says what it was told.
struct Ear;

impl Agent for Ear {
    fn manifest(&self) -> Manifest {
        Manifest::new("Ear", "Hears")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let is_first = task.snapshot().history.len() == 1;
        if is_first && turn.text().contains("m3") {
            task.ask("and?").await?;
        }
        Ok(task.complete_with("heard").await?)
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

/// Stops at an append: it is written or not, and nobody hears of it, nor of any after it.
#[derive(Clone)]
struct Killing {
    left: Arc<AtomicUsize>,
    is_written: bool,
    killed: CancellationToken,
}

impl StoreHooks for Killing {
    fn append(&self, store: &Arc<dyn Store>, append: Append) -> StoreFuture<Appended> {
        let before = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1)));
        let before = before.unwrap();
        if before > 1 {
            return store.append(append);
        }
        let written = (before == 1 && self.is_written).then(|| store.append(append));
        let killed = self.killed.clone();
        Box::pin(async move {
            if let Some(written) = written {
                let _ = written.await;
            }
            killed.cancel();
            std::future::pending().await
        })
    }
}

struct Kernel {
    engine: Engine,
    store: Arc<dyn Store>,
    clock: SimulatedClock,
    killing: Killing,
    runtime: Runtime,
}

impl Kernel {
    fn open(folder: &Path, clock: &SimulatedClock, kill_at: usize, is_written: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder, options).unwrap());
        let left = Arc::new(AtomicUsize::new(kill_at));
        let killing = Killing { left, is_written, killed: CancellationToken::new() };
        let hooked: Arc<dyn Store> = Arc::new(ForwardingStore { store, hooks: killing.clone() });
        let options = ChannelOptions { joined: 100, inline: 1_000 };
        let channel = Channel::new(options, Arc::<Mailboxes>::default()).with_clock(Arc::new(clock.clone()));
        let agents = vec![Hosted::new("ear", Ear), Hosted::new(CHANNEL, channel)];
        // More than the tests kill.
        let settings = Settings { max_recoveries: 100, ..Settings::default() };
        let directory: Arc<dyn Directory> = Arc::new(FixedDirectory::new(agents, None));
        let started = Engine::start(hooked.clone(), directory, Arc::new(clock.clone()), settings);
        let engine = runtime.block_on(started).unwrap();
        Self { engine, store: hooked, clock: clock.clone(), killing, runtime }
    }

    /// Works until it is killed; says whether it came to the end.
    fn run(&self, work: impl Future<Output = ()>) -> bool {
        let work = async {
            tokio::select! {
                () = self.killing.killed.cancelled() => false,
                () = work => true,
            }
        };
        let limited = async { tokio::time::timeout(crate::HANG_GUARD, work).await };
        self.runtime.block_on(limited).expect("the test hangs")
    }

    fn kill(self) {
        let Self { engine, store, runtime, .. } = self;
        drop((engine, store));
        // Elsewhere, because it waits for what blocks a thread.
        std::thread::spawn(move || drop(runtime)).join().unwrap();
    }

    /// As the bridge tells it, and tells it again where it has heard no answer.
    async fn tell(&self, number: usize) -> Result<(), Error> {
        let incoming = IncomingMessage {
            address: Address::Root,
            message: Message {
                message_id: MessageId::from(format!("m{number}")),
                context_id: Some(ContextId::from("c")),
                ..Message::text(Role::User, format!("m{number};"))
            },
            accepted_output_modes: Vec::new(),
            metadata: None,
            idempotency_key: Some(format!("k{number}")),
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: true,
            streaming: false,
        };
        let debounce = (Duration::from_secs(3), Duration::from_secs(15));
        let plan = ChannelPlan::new(&"ear".into(), DecidedBy::Default, None, debounce);
        let plan = Json::from_serialize(&plan).unwrap();
        let routed = self.engine.route_own(&Caller::local(), &CHANNEL.into(), incoming, |_| Ok(plan)).await?;
        self.engine.send(routed.via(Via::Channel)).await.map(drop)
    }

    async fn tell_all(&self, told: &AtomicUsize) {
        loop {
            let number = told.load(Ordering::SeqCst);
            if number == MESSAGES {
                break;
            }
            match self.tell(number).await {
                Ok(()) => drop(told.fetch_add(1, Ordering::SeqCst)),
                Err(Error::Unsupported(_) | Error::Unavailable { .. }) => {}
                Err(error) => panic!("message {number}: {error}"),
            }
            self.clock.advance(Duration::from_millis(700));
            tokio::task::yield_now().await;
        }
        while !self.engine.live_tasks(TaskKey(0), 10).await.unwrap().iter().all(|live| live.state.is_interrupted()) {
            self.clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
        // An open question is answered by what is said next. It may be asked once more: what is said in the moment in which a
        // run takes it up again is no answer to it, and waits with the rest.
        let mut number = MESSAGES;
        loop {
            let live = self.engine.live_tasks(TaskKey(0), 10).await.unwrap();
            if live.is_empty() {
                break;
            }
            if live.iter().all(|live| live.state.is_interrupted()) && self.tell(number).await.is_ok() {
                number += 1;
            }
            self.clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
    }

    /// What the agent has heard, call by call.
    async fn heard(&self) -> String {
        let conversation = Conversation {
            owner: CallerId::from("local"),
            agent: AgentName::from("ear"),
            context: ContextId::from("c"),
        };
        let mut rows = self.store.context(conversation, 100).await.unwrap();
        rows.sort_by_key(|row| row.key);
        let mut heard = String::new();
        for row in rows {
            let reading = self.engine.get(&Address::Root, &Caller::local(), &row.task.id).await.unwrap();
            let task = reading.into_task().unwrap();
            let said = task.history.iter().filter(|message| message.role == Role::User);
            said.for_each(|message| heard.push_str(&message.joined_text()));
        }
        heard
    }
}

/// A small generator, the same for a seed whenever it runs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

#[test]
fn kills_at_any_write_lose_nothing_and_double_nothing() {
    for seed in 1..=SEEDS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let folder = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
        let told = AtomicUsize::new(0);
        let mut is_done = false;
        for _ in 0..KILLS {
            let kernel = Kernel::open(folder.path(), &clock, 2 + dice.below(14), dice.below(2) == 0);
            is_done = kernel.run(kernel.tell_all(&told));
            kernel.kill();
            if is_done {
                break;
            }
        }
        let kernel = Kernel::open(folder.path(), &clock, usize::MAX, true);
        assert!(kernel.run(kernel.tell_all(&told)), "seed {seed}, done before: {is_done}");
        let heard = kernel.runtime.block_on(kernel.heard());
        let numbers: Vec<usize> = heard
            .split('m')
            .skip(1)
            .map(|rest| rest.split(';').next().unwrap().parse().unwrap())
            .filter(|number| *number < MESSAGES)
            .collect();
        assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>(), "seed {seed}: {heard}");
        kernel.kill();
    }
}
