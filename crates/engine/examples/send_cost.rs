//! What the feed costs a message: 32 callers at a time send to an agent that answers at once, without a reader of the
//! feed, with one that only keeps the ring buffer filled, with one that reads all rows at once, and with one that lets them
//! gather. Rounds are interleaved.
//!
//! `taskset -c 0 cargo run --release --package switchboard-engine --example send_cost [messages] [rounds] [KiB of the ring buffer]`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement that prints its result and may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use rustix::time::{ClockId, clock_gettime};
use switchboard_a2a::{Message, Role};
use switchboard_engine::clock::SystemClock;
use switchboard_engine::store::feed::{FeedContent, FeedStart};
use switchboard_engine::*;
use switchboard_store::{Durability, Options, SqliteStore};

/// As the binary has it: what a row costs is mostly its memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALLERS: usize = 32;
/// How long the projector lets commits gather.
const GATHER: Duration = Duration::from_millis(1);

struct Greeter;

impl Agent for Greeter {
    fn manifest(&self) -> Manifest {
        Manifest::new("Greeter", "Answers at once")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.text(turn.text()).await?;
        Ok(task.complete_with("done").await?)
    }
}

/// Which reader of the feed there is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    None,
    Idle,
    Reading,
    /// As the projector does.
    Gathering,
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let (messages, rounds) = (numbers.next().unwrap_or(100_000), numbers.next().unwrap_or(5));
    // One worker, as the server has on one core.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir_in(".").unwrap();
    let options = Options { durability: Durability::Process, ..Options::default() };
    let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
    let directory = FixedDirectory::new(vec![Hosted::new("greeter", Greeter)], None);
    let feed_ring_bytes = numbers.next().map_or(Settings::default().feed_ring_bytes, |kib| kib << 10);
    let settings = Settings { feed_ring_bytes, ..Settings::default() };
    let started = Engine::start(store, Arc::new(directory), Arc::new(SystemClock), settings);
    let engine = runtime.block_on(started).unwrap();
    runtime.block_on(send(&engine, messages / 10));
    for round in 1..=rounds {
        for reader in [Reader::None, Reader::Idle, Reader::Reading, Reader::Gathering] {
            let took = runtime.block_on(measure(&engine, reader, messages));
            let micros = |took: Duration| took.as_secs_f64() * 1e6 / messages as f64;
            println!(
                "round {round}, {reader:?}: {:.2} µs a message, {:.2} of a core",
                micros(took.wall),
                micros(took.cpu)
            );
        }
    }
}

/// What passed: other work of the machine counts in the former alone.
struct Took {
    wall: Duration,
    cpu: Duration,
}

/// What the threads of this process have computed.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

async fn measure(engine: &Engine, reader: Reader, messages: usize) -> Took {
    let mut idle = match reader {
        Reader::None => None,
        Reader::Idle | Reader::Reading | Reader::Gathering => Some(engine.feed(FeedStart::Now).await.unwrap()),
    };
    let reading = match reader {
        Reader::Reading => idle.take().map(|feed| tokio::spawn(read(feed, None))),
        Reader::Gathering => idle.take().map(|feed| tokio::spawn(read(feed, Some(GATHER)))),
        _ => None,
    };
    let (begun, before) = (Instant::now(), cpu_time());
    send(engine, messages).await;
    let took = Took { wall: begun.elapsed(), cpu: cpu_time() - before };
    if let Some(reading) = reading {
        reading.abort();
    }
    took
}

/// Takes of each row what was decoded of it, as the projector does.
async fn read(mut feed: FeedReader, gather: Option<Duration>) {
    while let Ok(true) = feed.take_more().await {
        while let Some(item) = feed.next_taken() {
            if let FeedItem::Row { row, .. } = item
                && let FeedContent::Events { written, .. } = &row.content
            {
                drop(written.take());
            }
        }
        if let Some(gather) = gather {
            tokio::time::sleep(gather).await;
        }
    }
}

async fn send(engine: &Engine, messages: usize) {
    let left = Arc::new(AtomicUsize::new(messages));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (engine, left) = (engine.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                let caller = Caller::local();
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let routed = engine.route(&caller, message()).await.unwrap();
                    engine.send(routed).await.unwrap().answer().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

fn message() -> IncomingMessage {
    IncomingMessage {
        address: Address::Root,
        message: Message::text(Role::User, "hello"),
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: None,
        trace: None,
        push_config: None,
        webhook: None,
        return_immediately: false,
        streaming: false,
    }
}
