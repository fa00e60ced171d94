//! The feed: every committed row once, in the order of the store, for readers that join anywhere.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::{FeedContent, FeedCursor, FeedRow, FeedStart, JournalLine, Position};
use switchboard_engine::store::hub::{Advance, HubStore};
use switchboard_engine::*;
use switchboard_store::SqliteStore;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;
use crate::races::Dice;

/// How many interleavings the test command tries; `RACE_ROUNDS` tries more.
const ROUNDS: u64 = 12;
const WRITERS: u64 = 12;
const READERS: u64 = 6;

/// Commits several times, as often as the text says.
fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let dice = Dice::seeded(turn.text().len() as u64);
        for _ in 0..turn.text().parse().unwrap_or(0) {
            task.working().await?;
            dice.dawdle().await;
            task.text("a piece of text ").await?;
        }
        Ok(task.complete_with("done").await?)
    })
}

fn line(number: u64) -> JournalLine {
    JournalLine {
        // Retention does not delete it.
        at: Timestamp(i64::MAX),
        owner: None,
        task: None,
        topic: format!("hub.test.{number}"),
        payload: Bytes::from_static(b"{}"),
    }
}

/// A row with its lines: those from memory and those from the store are the same.
fn content(row: &FeedRow) -> (i64, Bytes) {
    match &row.content {
        FeedContent::Events { events, .. } => (row.row, events.events.clone()),
        FeedContent::Journal(line) => (row.row, line.payload.clone()),
    }
}

/// A reader's rows until it has come to the end.
async fn read_until(reader: &mut FeedReader, end: FeedCursor, seen: &Mutex<Vec<FeedCursor>>) -> Vec<(i64, Bytes)> {
    let mut rows = Vec::new();
    while reader.cursor().position < end.position {
        let item = loop {
            // Asked for a moment at a time, as by a reader that has something else to do.
            tokio::select! {
                biased;
                item = reader.next() => break item,
                () = tokio::task::yield_now() => {}
            }
        };
        match item.unwrap().expect("the server runs") {
            FeedItem::Row { row, after } => {
                assert_eq!(row.cursor(), reader.cursor());
                seen.lock().push(row.cursor());
                assert_eq!(after, Seq(0), "cursors are at the ends of rows");
                rows.push(content(&row));
            }
            FeedItem::Gap => panic!("nothing was deleted, but after {:?} there is a gap", rows.last()),
        }
    }
    rows
}

struct Round {
    nodes: [Kernel; 2],
    store: Arc<SqliteStore>,
    seed: u64,
    seen: Mutex<Vec<FeedCursor>>,
}

impl Round {
    fn node(&self, dice: &Dice) -> &Kernel {
        &self.nodes[dice.roll(2) as usize]
    }

    async fn write(&self, number: u64) {
        let dice = Dice::seeded(self.seed ^ (number << 8));
        dice.dawdle().await;
        if dice.roll(3) == 0 {
            self.store.journal(vec![line(number), line(number + 100)]).await.unwrap();
        }
        let sent = self.node(&dice).send(&dice.roll(5).to_string()).await;
        self.node(&dice).ended(sent.id()).await;
    }

    /// Joins somewhere, now or later, and leaves; then goes on where it was. What it has read must be what there is.
    async fn read(&self, number: u64, end: tokio::sync::watch::Receiver<Option<FeedCursor>>) {
        let dice = Dice::seeded(self.seed ^ (number << 16) ^ 1);
        for _ in 0..dice.roll(20) {
            tokio::task::yield_now().await;
        }
        let known = self.seen.lock().clone();
        let start = match (dice.roll(3), known.len() as u64) {
            (0, _) | (1, 0) => FeedStart::Oldest,
            (1, count) => FeedStart::After(known[dice.roll(count) as usize]),
            _ => FeedStart::Now,
        };
        let mut reader = self.node(&dice).engine.feed(start).await.unwrap();
        let begun = reader.cursor();
        let some = begun.position.row + i64::try_from(dice.roll(30)).unwrap();
        let halfway = FeedCursor { position: Position { row: some, ..Position::default() }, ..begun };
        let mut end = end;
        // A part of it while there may be no more to come, then the rest.
        let part = tokio::select! {
            biased;
            part = read_until(&mut reader, halfway, &self.seen) => part,
            _ = end.wait_for(Option::is_some) => Vec::new(),
        };
        let end = end.wait_for(Option::is_some).await.unwrap().unwrap();
        let from = if part.is_empty() { begun } else { reader.cursor() };
        let mut reader = self.node(&dice).engine.feed(FeedStart::After(from)).await.unwrap();
        let rest = read_until(&mut reader, end, &self.seen).await;
        let rows: Vec<_> = part.into_iter().chain(rest).collect();
        let all = self.store.read_all(begun.position, usize::MAX, usize::MAX).await.unwrap().rows;
        let expected: Vec<_> = all.iter().map(content).collect();
        assert_eq!(rows, expected, "RACE_SEED={}: reader {number} from {start:?}", self.seed);
    }

    async fn play(&self) {
        let (ended, end) = tokio::sync::watch::channel(None);
        let writers = async {
            futures_util::future::join_all((0..WRITERS).map(|number| self.write(number))).await;
            ended.send_replace(Some(self.store.locate(FeedStart::Now).await.unwrap().cursor));
        };
        let readers = futures_util::future::join_all((0..READERS).map(|number| self.read(number, end.clone())));
        tokio::join!(writers, readers);
    }
}

#[test]
fn every_row_comes_once_and_in_order_whatever_the_interleaving() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let rounds = number("RACE_ROUNDS").unwrap_or(ROUNDS);
    for seed in number("RACE_SEED").map_or(0..rounds, |seed| seed..seed + 1) {
        let folder = tempfile::tempdir().unwrap();
        // Sometimes smaller than the traffic, so that readers fall behind it.
        let ring = [0, 4_000, 16 << 20][seed as usize % 3];
        let settings = Settings { feed_ring_bytes: ring, ..Settings::default() };
        let mut opened = None;
        let nodes = Kernel::two_nodes(folder.path(), &script(), &settings, |store| {
            let store = Arc::new(store);
            opened.get_or_insert_with(|| store.clone());
            Arc::new(FaultyStore { store, hooks: Faults::dawdle(seed) })
        });
        let round = Round { nodes, store: opened.unwrap(), seed, seen: Mutex::default() };
        let kernel = &round.nodes[0];
        kernel.run(kernel.while_time_passes(round.play()));
        let Round { nodes: [first, second], .. } = round;
        first.kill();
        second.kill();
    }
}

#[test]
fn a_reader_that_keeps_up_is_served_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let kernel = Kernel::with_faults(folder.path(), script(), Settings::default(), &faults);
    kernel.run(async {
        let mut reader = kernel.engine.feed(FeedStart::Now).await.unwrap();
        for _ in 0..20 {
            let sent = kernel.send("3").await;
            kernel.ended(sent.id()).await;
        }
        let mut row = 0;
        // Time stands still: a hole in the ring would be waited for for ever.
        for task in 1.. {
            let Some(FeedItem::Row { row: next, after: Seq(0) }) = reader.next().await.unwrap() else {
                panic!("{task}")
            };
            assert!(next.row == row + 1 || row == 0);
            row = next.row;
            if reader.cursor() == kernel.engine.feed(FeedStart::Now).await.unwrap().cursor() {
                break;
            }
        }
        assert!(row >= 20);
        assert_eq!(faults.feeds(), 1, "only to begin with");
    });
}

/// Replies at once, or works first if the text says so.
fn replier(replies: Replies) -> Script {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "work" {
            task.working().await?;
        }
        Ok(task.reply_message(message("done")).await?)
    });
    script.with(|manifest| manifest.replies = replies)
}

#[test]
fn a_reader_that_keeps_up_is_shown_what_a_later_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let agents = [("either", Replies::Either), ("message", Replies::Message), ("task", Replies::Task)];
    let hosted = agents.map(|(name, replies)| Hosted::new(name, replier(replies)));
    let kernel = Kernel::serving_all(folder.path(), hosted.into(), Settings::default());
    kernel.run(async {
        let mut live = kernel.engine.feed(FeedStart::Now).await.unwrap();
        let begun = live.cursor();
        for (name, _) in agents {
            let work = kernel.send_to(name, "work").await.unwrap();
            assert_eq!(answer_task(&work).await.status.state, TaskState::Completed);
            kernel.send_to(name, "reply").await.unwrap().answer().await;
        }
        let end = kernel.engine.feed(FeedStart::Now).await.unwrap().cursor();
        let mut later = kernel.engine.feed(FeedStart::After(begun)).await.unwrap();
        let of_live = shown_until(&mut live, end).await;
        assert_eq!(of_live, shown_until(&mut later, end).await);
        let received = |name: &str| of_live.iter().filter(|shown| **shown == format!("{name} received")).count();
        let statuses = |name: &str| of_live.iter().filter(|shown| **shown == format!("{name} statusUpdate")).count();
        assert_eq!(agents.map(|(name, _)| received(name)), [0, 0, 2], "a message that may be replied to is not shown");
        assert_eq!(agents.map(|(name, _)| statuses(name)), [2, 2, 3], "nor is a task that was replied to");
    });
}

/// The events of the rows that are not hidden: their agent and what they are.
async fn shown_until(reader: &mut FeedReader, end: FeedCursor) -> Vec<String> {
    let mut shown = Vec::new();
    while reader.cursor().position < end.position {
        let Some(FeedItem::Row { row, .. }) = reader.next().await.unwrap() else { panic!("after {shown:?}") };
        if let FeedContent::Events { task, events, .. } = &row.content
            && !row.is_hidden()
        {
            for (_, line) in events.lines() {
                let kind = line.split(|byte| *byte == b'"').nth(1).unwrap();
                shown.push(format!("{} {}", task.agent, String::from_utf8_lossy(kind)));
            }
        }
    }
    shown
}

#[test]
fn a_reader_is_told_of_rows_that_were_deleted_before_it_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { retention_tasks: 2, feed_ring_bytes: 0, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(), settings);
    kernel.run(kernel.while_time_passes(async {
        let send = async || {
            let sent = kernel.send("0").await;
            kernel.ended(sent.id()).await;
        };
        let mut slow = kernel.engine.feed(FeedStart::Now).await.unwrap();
        send().await;
        let Some(FeedItem::Row { .. }) = slow.next().await.unwrap() else { panic!("no first row") };
        let early = slow.cursor();
        for _ in 0..4 {
            send().await;
        }
        kernel.engine.sweep().await;
        let end = kernel.engine.feed(FeedStart::Now).await.unwrap().cursor();
        let mut late = kernel.engine.feed(FeedStart::After(early)).await.unwrap();
        assert!(matches!(late.next().await.unwrap(), Some(FeedItem::Gap)), "a reader that comes again");
        for (mut reader, expected) in [(slow, 1), (late, 0)] {
            let mut gaps = 0;
            while reader.cursor() != end {
                gaps += usize::from(matches!(reader.next().await.unwrap(), Some(FeedItem::Gap)));
            }
            assert_eq!(gaps, expected, "told once");
        }
        let mut current = kernel.engine.feed(FeedStart::After(end)).await.unwrap();
        send().await;
        assert!(matches!(current.next().await.unwrap(), Some(FeedItem::Row { .. })), "it has missed nothing");
        tokio::time::timeout(Duration::from_secs(60), kernel.engine.shutdown()).await.unwrap().unwrap();
        while let Some(item) = current.next().await.unwrap() {
            assert!(matches!(item, FeedItem::Row { .. }), "{item:?}");
        }
    }));
}

#[test]
fn tasks_that_wait_for_a_consumer_beyond_their_retention_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut below = None;
    let settings = Settings { retention_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with(folder.path(), script(), settings, |store| {
        let store = Arc::new(store);
        below = Some(store.clone());
        store
    });
    let store = below.unwrap();
    let send = || kernel.run(async { kernel.ended(kernel.send("0").await.id()).await });
    let consumer = kernel.run(store.take_consumer("projector")).unwrap();
    let read_all = || {
        let cursor = Some(kernel.run(store.locate(FeedStart::Now)).unwrap().cursor);
        let (consumer, fence, state) = ("projector".to_owned(), consumer.fence, Bytes::new());
        let (health, jobs, journal) = (Vec::new(), Vec::new(), Vec::new());
        kernel.run(store.advance(Advance { consumer, fence, cursor, state, health, jobs, journal })).unwrap();
    };
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let held = || {
        metrics::with_local_recorder(&recorder, || kernel.run(kernel.engine.measure()));
        let shown = recorder.handle().render();
        shown.lines().find_map(|line| line.strip_prefix("switchboard_eviction_held ")).unwrap().to_owned()
    };
    send();
    read_all();
    (0..3).for_each(|_| drop(send()));
    kernel.run(kernel.engine.sweep());
    assert_eq!(held(), "2", "the first was read and is gone, and one of the others may stay");
    read_all();
    assert_eq!(held(), "0", "they wait for the next sweep, and for no one");
}
