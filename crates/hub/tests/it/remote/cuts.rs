//! Connections to a remote agent that break anywhere, beside push notifications and polls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use switchboard_a2a::{Task, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::clock::SimulatedClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::crashes::texts;
use super::owed::ends;
use super::world::{Worker, caller, hub, passing, say, worker_behind};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Random numbers that are the same in every run.
struct Random(AtomicU64);

impl Random {
    fn next(&self) -> u64 {
        let seed = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }
}

/// Forwards connections, and breaks one in three somewhere in what is answered.
async fn forward(listener: TcpListener, to: SocketAddr, random: Arc<Random>) {
    while let Ok((mut from, _)) = listener.accept().await {
        let most = if random.next().is_multiple_of(3) { random.next() % 4_000 } else { u64::MAX };
        tokio::spawn(async move {
            let mut to = TcpStream::connect(to).await?;
            let (mut asks, mut answers) = from.split();
            let (answered, mut asked) = to.split();
            let mut answered = answered.take(most);
            tokio::select! {
                copied = tokio::io::copy(&mut answered, &mut answers) => copied.map(drop)?,
                copied = async {
                    tokio::io::copy(&mut asks, &mut asked).await?;
                    asked.shutdown().await?;
                    std::future::pending::<std::io::Result<()>>().await
                } => copied?,
            }
            std::io::Result::Ok(())
        });
    }
}

async fn sent(client: Client, text: &'static str) -> Task {
    let stream = client.stream(&CallContext::default(), say(text)).await.unwrap();
    stream.finish().await.unwrap().task().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_and_ours_end_alike_and_once_wherever_connections_break() {
    for seed in 1..=4 {
        let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let agent = Worker::new();
        agent.gate.add_permits(100);
        let remote = tokio::task::block_in_place(|| worker_behind(there.path(), &agent, base.clone()));
        let forwarding = tokio::spawn(forward(listener, remote.address, Arc::new(Random(seed.into()))));
        let clock = SimulatedClock::at(Timestamp(1_000));
        let url = format!("{base}/a2a/worker");
        let front = tokio::task::block_in_place(|| {
            hub(here.path(), &url, |parts| {
                parts.clock = Arc::new(clock.clone());
                parts.settings.lost_after = NEVER;
                parts.settings.connect_within = NEVER;
                parts.settings.deadline = None;
            })
        });
        let client = caller(&front, Version::V1);
        let all = futures_util::future::join_all(
            ["go", "fail", "go", "go", "fail", "go"].map(|text| sent(client.clone(), text)),
        );
        let tasks = passing(&clock, Duration::from_millis(5), all).await;
        for (task, text) in tasks.iter().zip(["go", "fail", "go", "go", "fail", "go"]) {
            let ends = ends(&front, &task.id).await;
            assert_eq!(ends.len(), 1, "seed {seed}: {ends:?}");
            match text {
                "go" => {
                    assert_eq!(task.status.state, TaskState::Completed, "seed {seed}: {task:?}");
                    assert_eq!(texts(task), ["one two"], "seed {seed}");
                }
                _ => assert_eq!(task.status.state, TaskState::Failed, "seed {seed}: {task:?}"),
            }
            let state = ends[0].metadata.as_ref().unwrap().get(switchboard_hub::remote::REMOTE_KEY);
            assert!(state.is_some(), "seed {seed}: it is the end that the agent has told: {:?}", ends[0]);
        }
        assert_eq!(agent.runs.load(Ordering::SeqCst), 6, "seed {seed}: each message was executed once");
        forwarding.abort();
        tokio::task::block_in_place(|| {
            front.kill();
            remote.kill();
        });
    }
}
