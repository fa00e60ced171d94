//! Ceremonies: runs by a schedule, through the public interface.

mod changes;
mod clocks;
mod crashes;
mod cron;
mod ends;
mod files;
mod firing;
mod overlaps;
mod schedule;
mod simulated_year;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;

use crate::running::{Running, START};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// What every server of these tests has: it writes what it reads at once.
fn configure(config: &mut Config) {
    config.hub.projector.flush = TimeSpan::ZERO;
}

async fn server(data: &Path) -> Running {
    server_at(data, START, |_| {}).await
}

async fn server_at(data: &Path, now: Timestamp, change: impl FnOnce(&mut Config)) -> Running {
    let change = |config: &mut Config| {
        configure(config);
        change(config);
    };
    Running::with(data, SimulatedClock::at(now), change, Settings::default()).await
}

/// A time after the start of every test, which is eight o'clock.
fn after(duration: Duration) -> Timestamp {
    switchboard_engine::clock::later(START, duration)
}

/// Creates a ceremony.
async fn create(running: &Running, key: &str, definition: Value) -> Value {
    let (status, answer) = running.post("/api/ceremonies/create", key, &definition).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

/// A ceremony that has an agent say the time of the schedule.
fn telling(id: &str, schedule: &str) -> Value {
    json!({ "id": id, "schedule": schedule, "targets": ["echo"], "content": "{{ id }} {{ scheduledAt }}" })
}

async fn shown(running: &Running, id: &str) -> Value {
    let (status, answer) = running.get(&format!("/api/ceremonies/{id}"), "ann").await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// Waits until something is so. The clock goes on by a little each time, so that jobs fall due.
async fn until<T>(running: &Running, found: impl AsyncFn() -> Option<T>) -> T {
    let asked = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            running.clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
    });
    asked.await.unwrap()
}

/// The runs of a ceremony, the oldest first, once there are so many and all have ended.
async fn runs(running: &Running, id: &str, count: usize) -> Vec<Value> {
    until(running, async || {
        let (status, page) = running.get(&format!("/api/ceremonies/{id}/runs?pageSize=100"), "ann").await;
        assert_eq!(status, 200, "{page}");
        let mut runs = page["data"]["items"].as_array().unwrap().clone();
        runs.reverse();
        let have_ended = runs.iter().all(|run| ["completed", "failed"].contains(&run["state"].as_str().unwrap()));
        (runs.len() >= count && have_ended).then_some(runs)
    })
    .await
}

/// What the runs say, which is when they were scheduled.
async fn told(running: &Running, id: &str, count: usize) -> Vec<String> {
    let titles = runs(running, id, count).await;
    // One that is evicted just now has no title any more.
    let titles = titles.iter().filter_map(|run| run["title"].as_str());
    titles.map(|title| title.rsplit(' ').next().unwrap().to_owned()).collect()
}

/// Payloads of lines of the journal, once there are so many.
async fn lines(running: &Running, topic: &str, count: usize) -> Vec<Value> {
    until(running, async || {
        let (_, page) = running.get(&format!("/api/feed?from=oldest&pageSize=100&topic={topic}"), "ann").await;
        let items = page["items"].as_array().unwrap();
        (items.len() >= count).then(|| items.iter().map(|item| item["payload"].clone()).collect())
    })
    .await
}
