//! A run that is due while another one goes on is left out, waits, or runs beside it.

use serde_json::{Value, json};

use super::{MINUTE, after, create, lines, runs, server, shown};
use crate::running::{Running, folder};

/// Due each minute; a run takes two and a half, until its time is over.
fn slow(overlap: &str) -> Value {
    json!({
        "id": overlap, "schedule": "* * * * *", "targets": ["echo"], "content": "wait", "timeout": "150s",
        "overlap": overlap,
    })
}

async fn fired(running: &Running, id: &str, count: usize) -> Vec<String> {
    let lines = lines(running, &format!("ceremony.{id}.fired"), count).await;
    lines.iter().map(|line| line["scheduledAt"].as_str().unwrap()[14..19].to_owned()).collect()
}

#[tokio::test]
async fn runs_that_overlap_are_skipped_wait_in_line_or_run_beside_each_other() {
    let data = folder();
    let running = server(data.path()).await;
    for overlap in ["skip", "queue", "parallel"] {
        create(&running, "bob", slow(overlap)).await;
    }
    for minute in 1..=3 {
        running.clock.turn_to(after(minute * MINUTE));
        fired(&running, "parallel", minute as usize).await;
        if minute > 1 {
            lines(&running, "ceremony.skip.skipped", minute as usize - 1).await;
        }
    }
    assert_eq!(fired(&running, "parallel", 3).await, ["01:00", "02:00", "03:00"]);
    assert_eq!(fired(&running, "skip", 1).await, ["01:00"]);
    let skipped = lines(&running, "ceremony.skip.skipped", 2).await;
    assert!(skipped.iter().all(|line| line["reason"] == "overlap"), "{skipped:?}");
    assert_eq!(fired(&running, "queue", 1).await, ["01:00"]);
    // The first runs end: the one that has waited begins, and the one behind it is left out.
    running.clock.turn_to(after(3 * MINUTE + MINUTE / 2));
    assert_eq!(fired(&running, "queue", 2).await, ["01:00", "02:00"]);
    let skipped = lines(&running, "ceremony.queue.skipped", 1).await;
    assert_eq!(
        (&skipped[0]["scheduledAt"], &skipped[0]["reason"]),
        (&json!("2027-01-15T08:03:00.000Z"), &json!("overlap"))
    );
    running.clock.turn_to(after(4 * MINUTE));
    assert_eq!(fired(&running, "skip", 2).await, ["01:00", "04:00"]);
    // A server that stops waits for what runs.
    for id in ["skip", "queue", "parallel"] {
        let path = format!("/api/ceremonies/{id}/update");
        assert_eq!(running.post(&path, "bob", &json!({ "enabled": false })).await.0, 200);
    }
    running.clock.advance(3 * MINUTE);
    for id in ["skip", "queue", "parallel"] {
        assert!(runs(&running, id, 2).await.iter().all(|run| run["state"] == "failed"), "{id}");
    }
    running.stop().await;
}

#[tokio::test]
async fn jitter_puts_a_run_off_and_its_time_stays_the_same() {
    let data = folder();
    let running = server(data.path()).await;
    let definition = json!({
        "id": "spread", "schedule": "0 * * * *", "targets": ["echo"], "content": "x {{ scheduledAt }}",
        "jitter": "30m",
    });
    create(&running, "bob", definition).await;
    running.clock.turn_to(after(60 * MINUTE));
    while shown(&running, "spread").await["last"].is_null() {
        running.clock.advance(MINUTE / 30);
        tokio::task::yield_now().await;
    }
    let line = lines(&running, "ceremony.spread.fired", 1).await.remove(0);
    assert_eq!(line["scheduledAt"], "2027-01-15T09:00:00.000Z");
    assert!(line["lateMs"].as_u64().unwrap() < 60_000, "it is not late: {line}");
    assert_eq!(runs(&running, "spread", 1).await.len(), 1);
    assert_eq!(shown(&running, "spread").await["jitter"], "30m");
    running.stop().await;
}
