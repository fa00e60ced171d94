//! Connections to a remote agent that break anywhere, beside polls, and push notifications that are lost or come twice.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::{Task, TaskId, TaskState, TaskStatus, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::Seq;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::crashes::{ended, texts};
use super::owed::{begun, ends};
use super::world::{Running, Worker, caller, hub, passing, say, worker_behind};

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

/// Forwards push notifications, each one not at all, once or twice; their sender hears that all were taken.
async fn push_on(listener: TcpListener, to: SocketAddr, random: Arc<Random>, pushes: Arc<AtomicUsize>) {
    while let Ok((mut from, _)) = listener.accept().await {
        let times = random.next() % 3;
        let pushes = Arc::clone(&pushes);
        tokio::spawn(async move {
            let request = read_request(&mut from).await?;
            for _ in 0..times {
                let mut to = TcpStream::connect(to).await?;
                to.write_all(&request).await?;
                // It was taken once there is an answer.
                to.read_u8().await?;
            }
            pushes.fetch_add(1, Ordering::SeqCst);
            from.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await?;
            from.shutdown().await
        });
    }
}

/// The bytes of one request.
async fn read_request(socket: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return Ok(bytes);
        }
    }
}

/// Sends a message, answers what is asked, and cancels what has no end; the task once it has ended.
async fn carried_out(client: Client, text: &'static str) -> Task {
    let context = CallContext::default();
    if text == "hold" {
        let id = begun(&client, text).await;
        // How it has ended is seen below.
        let _ = client.cancel(&context, &id, None).await;
        return ended(&client, &id).await;
    }
    let asked = client.stream(&context, say(text)).await.unwrap().finish().await.unwrap().task().unwrap().clone();
    if asked.status.state != TaskState::InputRequired {
        return asked;
    }
    let mut answer = say("Oslo");
    answer.message.task_id = Some(asked.id);
    client.stream(&context, answer).await.unwrap().finish().await.unwrap().task().unwrap().clone()
}

/// The statuses in the log of a task that say something, by the ids of their messages, and how many of them ask.
async fn statuses(front: &Running, id: &TaskId) -> (Vec<String>, usize) {
    let row = front.store.row(id).await.unwrap().unwrap();
    let log = front.engine.log(id, row.key).after(Seq(0), usize::MAX).await.unwrap();
    let statuses = log.iter().filter_map(|event| match Event::decode(&event.line) {
        Ok(Event::StatusUpdate(update)) => Some(update.status),
        _ => None,
    });
    let statuses: Vec<TaskStatus> = statuses.collect();
    let questions = statuses.iter().filter(|status| status.state.is_interrupted()).count();
    let said = statuses.into_iter().filter_map(|status| Some(status.message?.message_id.to_string()));
    (said.collect(), questions)
}

/// What callers say at the same time.
const TEXTS: [&str; 7] = ["go", "fail", "ask", "hold", "go", "fail", "ask"];

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_and_ours_end_alike_and_once_wherever_connections_break() {
    for seed in 1..=4 {
        let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let pushed_to = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let callbacks = format!("http://{}", pushed_to.local_addr().unwrap());
        let agent = Worker::new();
        agent.gate.add_permits(100);
        let remote = tokio::task::block_in_place(|| worker_behind(there.path(), &agent, base.clone()));
        let random = Arc::new(Random(seed.into()));
        let forwarding = tokio::spawn(forward(listener, remote.address, Arc::clone(&random)));
        let clock = SimulatedClock::at(Timestamp(1_000));
        let url = format!("{base}/a2a/worker");
        let front = tokio::task::block_in_place(|| {
            hub(here.path(), &url, |parts| {
                parts.clock = Arc::new(clock.clone());
                parts.settings.lost_after = NEVER;
                parts.settings.connect_within = NEVER;
                parts.settings.deadline = None;
                if let Some(pushed) = &mut parts.callbacks {
                    pushed.base.clone_from(&callbacks);
                }
            })
        });
        let pushes = Arc::new(AtomicUsize::new(0));
        let pushing = tokio::spawn(push_on(pushed_to, front.address, random, Arc::clone(&pushes)));
        let client = caller(&front, Version::V1);
        let all = futures_util::future::join_all(TEXTS.map(|text| carried_out(client.clone(), text)));
        let tasks = passing(&clock, Duration::from_millis(5), all).await;
        for (task, text) in tasks.iter().zip(TEXTS) {
            let ends = ends(&front, &task.id).await;
            assert_eq!(ends.len(), 1, "seed {seed}: {ends:?}");
            let expected = match text {
                "fail" => TaskState::Failed,
                "hold" => TaskState::Canceled,
                _ => TaskState::Completed,
            };
            assert_eq!(task.status.state, expected, "seed {seed}, {text}: {task:?}");
            match text {
                "go" => assert_eq!(texts(task), ["one two"], "seed {seed}"),
                "ask" => assert!(format!("{task:?}").contains("city: Oslo"), "seed {seed}: {task:?}"),
                _ => {}
            }
            let state = ends[0].metadata.as_ref().unwrap().get(switchboard_hub::remote::REMOTE_KEY);
            assert!(state.is_some(), "seed {seed}: it is the end that the agent has told: {:?}", ends[0]);
            let (said, questions) = statuses(&front, &task.id).await;
            let once: HashSet<&String> = said.iter().collect();
            assert_eq!(said.len(), once.len(), "seed {seed}, {text}: no status is told twice: {said:?}");
            assert_eq!(questions, usize::from(text == "ask"), "seed {seed}, {text}");
        }
        assert_eq!(agent.runs.load(Ordering::SeqCst), TEXTS.len(), "seed {seed}: each message was executed once");
        assert_eq!(agent.stopped.load(Ordering::SeqCst), 1, "seed {seed}: what was canceled has stopped");
        let pushed = async {
            while pushes.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::HANG_GUARD, pushed).await.expect("there are push notifications");
        forwarding.abort();
        pushing.abort();
        tokio::task::block_in_place(|| {
            front.kill();
            remote.kill();
        });
    }
}
