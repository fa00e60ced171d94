//! How long and how many dead letters are kept, under a clock that is turned by hand.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_a2a::{Message, PushConfig, Role, Timestamp, Version};
use switchboard_egress::{Allowlist, Egress};
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::{Address, Caller, Engine, FixedDirectory, Hosted, IncomingMessage, Settings};
use switchboard_host::demo::Echo;
use switchboard_store::SqliteStore;
use switchboard_webhooks::{Options, WebhookService, Webhooks};

use crate::http::PATIENCE;
use crate::receiver::Receiver;

/// A kernel whose one webhook is refused: a dead letter for every event of a task.
async fn refused(folder: &Path, options: Options) -> (SimulatedClock, WebhookService, usize) {
    let clock = SimulatedClock::at(Timestamp(1_800_000_000_000));
    // A busy disk is not what is tested here.
    let (durability, max_queue_delay) = (switchboard_store::Durability::Process, Duration::from_secs(3_600));
    let options_of_store = switchboard_store::Options { durability, max_queue_delay, ..Default::default() };
    let store = Arc::new(SqliteStore::open(folder, options_of_store).unwrap());
    let directory = Arc::new(FixedDirectory::new(vec![Hosted::new("echo", Echo)], None));
    let engine = Engine::start(store.clone(), directory, Arc::new(clock.clone()), Settings::default()).await.unwrap();
    let allowlist = Allowlist::parse([""; 0], ["127.0.0.1/32"]).unwrap();
    let egress = Egress::new(switchboard_egress::Options { allowlist, ..Default::default() }).unwrap();
    let webhooks = Webhooks::new(engine.clone(), store, egress, options).await.unwrap();
    webhooks.start();
    let receiver = Receiver::start();
    receiver.answers(400);
    let config: PushConfig = serde_json::from_value(receiver.config()).unwrap();
    let send = IncomingMessage {
        address: Address::Root,
        message: Message::text(Role::User, "hello"),
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: None,
        trace: None,
        webhook: Some(webhooks.prepare(&Caller::local(), Version::V1, &config).await.unwrap()),
        push_config: Some(config),
        return_immediately: false,
        streaming: false,
    };
    let routed = engine.route(&Caller::local(), send).await.unwrap();
    engine.send(routed).await.unwrap().answer().await;
    let service = webhooks.service();
    let began = Instant::now();
    loop {
        let list = service.list(None, None, 0, 1).await.unwrap();
        if list[0].state == "finished" {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the receiver was called {} times: {list:?}", receiver.count());
        // On a machine that stood still for long an attempt runs out of time, and the next one waits for this clock.
        let due = list[0].pending.as_ref().and_then(|pending| pending.next_attempt_at);
        let wait = due.map_or(0, |due| due.0 - clock.now().0);
        clock.advance(Duration::from_millis(u64::try_from(wait).unwrap_or(0)));
        tokio::task::yield_now().await;
    }
    let dead = service.dead_letters(0, 100).await.unwrap().len();
    (clock, service, dead)
}

/// Waits until so many dead letters are left, while the clock stands still.
async fn left(service: &WebhookService, count: usize) {
    let began = Instant::now();
    while service.dead_letters(0, 100).await.unwrap().len() != count {
        assert!(began.elapsed() < PATIENCE, "{:?}", service.dead_letters(0, 100).await);
        tokio::task::yield_now().await;
    }
}

/// Turns the clock, and waits until every task that it woke sleeps again.
async fn turn(clock: &SimulatedClock, duration: Duration) {
    let (sleepers, began) = (clock.sleepers(), Instant::now());
    clock.advance(duration);
    while clock.sleepers() < sleepers {
        assert!(began.elapsed() < PATIENCE, "{} of {sleepers} sleep", clock.sleepers());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dead_letters_of_an_age_go() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { dead_letter_age: Duration::from_secs(3_600), ..Options::default() };
    let (clock, service, dead) = refused(folder.path(), options).await;
    assert!(dead > 1);
    turn(&clock, Duration::from_secs(3_000)).await;
    assert_eq!(service.dead_letters(0, 100).await.unwrap().len(), dead, "their time has not come");
    // The upkeep may have been about to sleep when the clock was turned.
    let began = Instant::now();
    while !service.dead_letters(0, 100).await.unwrap().is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", service.dead_letters(0, 100).await);
        turn(&clock, Duration::from_secs(661)).await;
    }
}

#[tokio::test]
async fn so_many_dead_letters_are_kept_and_the_oldest_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, service, dead) = refused(folder.path(), Options { dead_letters: 1, ..Options::default() }).await;
    assert!(dead > 1);
    clock.advance(Duration::from_secs(61));
    left(&service, 1).await;
    assert_eq!(service.dead_letters(0, 100).await.unwrap()[0].about, "completed");
}

#[tokio::test]
async fn so_many_bytes_of_dead_letters_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, service, dead) = refused(folder.path(), Options { dead_letter_bytes: 1, ..Options::default() }).await;
    assert!(dead > 1);
    clock.advance(Duration::from_secs(61));
    left(&service, 0).await;
}
