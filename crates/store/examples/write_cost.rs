//! What a task costs to write: 32 callers at a time create tasks that are done in one append, first with `process`, then
//! with `full` durability; then what each index adds, by writing without it.
//!
//! `taskset -c 0 cargo run --release --package switchboard-store --example write_cost [tasks]`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement that prints its result and may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use switchboard_a2a::{ContextId, TaskId, TaskState, Timestamp};
use switchboard_engine::ids::Fence;
use switchboard_engine::store::lineage::Lineage;
use switchboard_engine::store::{
    Append, AppendGuard, ListFilter, ListQuery, Phase, RowPatch, RowState, SideWrites, Store, TaskIdentity,
};
use switchboard_store::{Durability, Options, SqliteStore, database_path};

const CALLERS: usize = 32;
/// The last ones hold no ended root, so they should cost nothing here.
const INDEXES: [&[&str]; 3] =
    [&["task_listing"], &["task_context"], &["task_parent", "task_root", "task_via", "task_waiting"]];

fn main() {
    let tasks = std::env::args().nth(1).map_or(200_000, |text| text.parse().unwrap());
    let quick = std::env::args().nth(2).is_some();
    // One worker, as the server has on one core.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    print("process", tasks, runtime.block_on(measure(Durability::Process, tasks, &[])));
    if quick {
        return;
    }
    print("full", tasks / 10, runtime.block_on(measure(Durability::Full, tasks / 10, &[])));
    for indexes in INDEXES {
        let without = runtime.block_on(measure(Durability::Process, tasks, indexes));
        print(&format!("process, without {}", indexes.join(", ")), tasks, without);
    }
}

/// Time that passed, and time that the process had a core: what counts where the core is shared with others.
struct Cost {
    wall: Duration,
    cpu: Duration,
}

fn print(what: &str, tasks: usize, cost: Cost) {
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / tasks as f64;
    println!("{what}: {:.2} µs a task, {:.2} µs of them on a core", micros(cost.wall), micros(cost.cpu));
}

/// User and system time of the whole process.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// What `tasks` tasks cost, after a tenth of them as a warm-up.
async fn measure(durability: Durability, tasks: usize, dropped_indexes: &[&str]) -> Cost {
    let directory = tempfile::tempdir_in(std::env::var("WRITE_COST_DIR").unwrap_or_else(|_| ".".to_owned())).unwrap();
    let options = || Options { durability, ..Options::default() };
    if !dropped_indexes.is_empty() {
        SqliteStore::open(directory.path(), options()).unwrap().close().await.unwrap();
        let connection = rusqlite::Connection::open(database_path(directory.path())).unwrap();
        for index in dropped_indexes {
            connection.execute_batch(&format!("DROP INDEX {index}")).unwrap();
        }
    }
    let store = Arc::new(SqliteStore::open(directory.path(), options()).unwrap());
    run(&store, tasks / 10).await;
    let (begun, cpu_before) = (Instant::now(), cpu_time());
    run(&store, tasks).await;
    let cost = Cost { wall: begun.elapsed(), cpu: cpu_time() - cpu_before };
    if dropped_indexes.is_empty() {
        read(&store).await;
    }
    store.close().await.unwrap();
    cost
}

/// A page of 50 and the total of all tasks; then each of the page by itself.
async fn read(store: &SqliteStore) {
    let filter = ListFilter { page_size: 50, ..ListFilter::default() };
    let query = ListQuery { owner: "caller".into(), agents: None, parent: None, filter };
    let begun = Instant::now();
    let page = store.list(query).await.unwrap();
    let keys: Vec<_> = page.places.iter().map(|(_, key)| *key).collect();
    let tasks = store.load_some(keys, usize::MAX).await.unwrap();
    println!("a page of {} and the total of {}: {:.2?}", tasks.len(), page.total, begun.elapsed());
    let begun = Instant::now();
    for task in &tasks {
        store.load(&task.row.task.id).await.unwrap();
    }
    println!("one task: {:.2?}", begun.elapsed() / 50);
}

async fn run(store: &Arc<SqliteStore>, tasks: usize) {
    let left = Arc::new(AtomicUsize::new(tasks));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (store, left) = (Arc::clone(store), Arc::clone(&left));
            tokio::spawn(async move {
                let events = Bytes::from(vec![b'x'; 900]);
                let snapshot = Bytes::from(vec![b'y'; 700]);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    store.append(task(events.clone(), snapshot.clone())).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

fn task(events: Bytes, snapshot: Bytes) -> Append {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let new = TaskIdentity {
        id: TaskId::generate(),
        owner: "caller".into(),
        agent: "echo".into(),
        context: ContextId::generate(),
        lineage: Lineage::default(),
    };
    Append {
        guard: AppendGuard::Create(Arc::new(new)),
        events,
        count: 1,
        row: RowPatch::between(
            &RowState::default(),
            &RowState {
                state: TaskState::Completed,
                status_at: Timestamp(i64::try_from(now.as_millis()).unwrap()),
                phase: Phase::Done,
                fence: Fence(1),
                expires_at: None,
                hidden: false,
                recoveries: 0,
            },
        ),
        snapshot: Some(snapshot),
        note: None,
        sides: SideWrites::default(),
        refusable: true,
    }
}
