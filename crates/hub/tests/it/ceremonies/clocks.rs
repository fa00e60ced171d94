//! Clocks: those that are set back or forward, those of zones that change, and dates that are far away.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::Clock as _;
use switchboard_hub::ceremonies::schedule::Schedule;

use super::{HOUR, MINUTE, after, create, lines, runs, server, server_at, shown, telling, told, until};
use crate::running::folder;

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn a_time_has_one_run_though_the_clock_is_set_back() {
    let data = folder();
    let running = server(data.path()).await;
    create(&running, "bob", telling("hourly", "0 * * * *")).await;
    running.clock.advance(HOUR);
    assert_eq!(told(&running, "hourly", 1).await.len(), 1);
    running.clock.turn_to(after(30 * MINUTE));
    create(&running, "bob", telling("mark", "1 9 * * *")).await;
    running.clock.advance(31 * MINUTE);
    assert_eq!(told(&running, "mark", 1).await, ["2027-01-15T09:01:00.000Z"]);
    assert_eq!(told(&running, "hourly", 1).await.len(), 1, "nine o'clock has come twice");
    // Nor does a change of the schedule have it come again.
    running.clock.turn_to(after(30 * MINUTE));
    let patch = json!({ "schedule": "0 9-10 * * *" });
    let (status, changed) = running.post("/api/ceremonies/hourly/update", "bob", &patch).await;
    assert_eq!((status, &changed["data"]["last"]["at"]), (200, &json!("2027-01-15T09:00:00.000Z")), "{changed}");
    running.clock.turn_to(after(2 * HOUR));
    assert_eq!(told(&running, "hourly", 2).await, ["2027-01-15T09:00:00.000Z", "2027-01-15T10:00:00.000Z"]);
    running.stop().await;
}

#[tokio::test]
async fn dates_in_30_and_400_days_come_neither_early_nor_never() {
    let data = folder();
    let running = server(data.path()).await;
    for (id, days) in [("month", 30), ("year", 400)] {
        let at = after(days * DAY).to_string();
        create(&running, "bob", json!({ "id": id, "at": at, "targets": ["echo"], "content": "{{ scheduledAt }}" }))
            .await;
    }
    // 2^31 milliseconds are 24.8 days.
    create(&running, "bob", telling("mark", "0 8 10,14 2 *")).await;
    running.clock.turn_to(after(26 * DAY));
    assert_eq!(told(&running, "mark", 1).await.len(), 1);
    assert_eq!((runs(&running, "month", 0).await.len(), runs(&running, "year", 0).await.len()), (0, 0));
    running.clock.turn_to(after(30 * DAY));
    assert_eq!(told(&running, "month", 1).await, [after(30 * DAY).to_string()]);
    assert_eq!((told(&running, "mark", 2).await.len(), runs(&running, "year", 0).await.len()), (2, 0));
    running.stop().await;
    // The rest of it in another process.
    let running = server_at(data.path(), after(399 * DAY), |_| {}).await;
    create(&running, "bob", telling("other", "5 8 * * *")).await;
    running.clock.advance(5 * MINUTE);
    told(&running, "other", 1).await;
    assert_eq!(runs(&running, "year", 0).await.len(), 0);
    running.clock.turn_to(after(400 * DAY));
    assert_eq!(told(&running, "year", 1).await, [after(400 * DAY).to_string()]);
    running.stop().await;
}

/// The clocks of each zone change around one of these days.
const CHANGES: [&str; 4] =
    ["2027-03-13T06:00:00Z", "2027-03-27T06:00:00Z", "2027-04-02T20:00:00Z", "2027-10-30T06:00:00Z"];
const ZONES: [(&str, &str); 5] = [
    ("berlin", "Europe/Berlin"),
    ("york", "America/New_York"),
    ("cairo", "Africa/Cairo"),
    ("howe", "Australia/Lord_Howe"),
    ("chile", "America/Santiago"),
];

#[tokio::test]
async fn what_runs_around_the_changes_of_the_clocks_of_five_zones_is_what_the_schedules_say() {
    let (data, expression) = (folder(), "30 0,2 * * *");
    let begin = Timestamp::parse(CHANGES[0]).unwrap();
    let running = server_at(data.path(), begin, |_| {}).await;
    for (id, zone) in ZONES {
        let mut definition = telling(id, expression);
        definition["timezone"] = zone.into();
        // Months in between are left out.
        definition["missed"] = "skip".into();
        create(&running, "bob", definition).await;
    }
    for change in CHANGES {
        let mut expected: Vec<Vec<String>> = vec![Vec::new(); ZONES.len()];
        let from = Timestamp::parse(change).unwrap();
        running.clock.turn_to(from);
        let mut times: Vec<(Timestamp, usize)> = Vec::new();
        for (zone, (_, name)) in ZONES.iter().enumerate() {
            let schedule = Schedule::cron(expression, name).unwrap();
            let found = schedule.occurrences(from, 4).into_iter().map(|run| (run.at, zone));
            times.extend(found);
        }
        times.sort();
        for (at, zone) in times {
            // The clock has gone on a little, and is not set back.
            running.clock.turn_to(running.clock.now().max(at));
            expected[zone].push(at.to_string());
            // Those of months ago may have been evicted.
            let since = from.to_string();
            let found = until(&running, async || {
                let mut found = told(&running, ZONES[zone].0, 0).await;
                found.retain(|time| *time > since);
                (found.len() >= expected[zone].len()).then_some(found)
            })
            .await;
            assert_eq!(found, expected[zone], "{at}");
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn missed_times_are_run_once_skipped_or_caught_up_on_after_a_downtime() {
    let data = folder();
    let running = server(data.path()).await;
    for (id, missed) in [("once", Value::Null), ("skip", json!("skip")), ("catch", json!("catch_up"))] {
        let mut definition = telling(id, "0 * * * *");
        definition["missed"] = missed;
        create(&running, "bob", definition).await;
    }
    running.stop().await;
    // Ten past one: five times were missed, of which three are caught up on.
    let most = |config: &mut switchboard_host::config::Config| {
        config.hub.ceremonies.max_catch_up = switchboard_host::config::size::Count::new(3);
    };
    let running = server_at(data.path(), after(5 * HOUR + 10 * MINUTE), most).await;
    let time = |hour: u32| format!("2027-01-15T{hour:02}:00:00.000Z");
    assert_eq!(told(&running, "once", 1).await, [time(13)]);
    assert_eq!(told(&running, "catch", 3).await, [time(11), time(12), time(13)]);
    let passed = |line: &Value| (line["scheduledAt"].clone(), line["until"].clone(), line["reason"].clone());
    let skipped = lines(&running, "ceremony.skip.skipped", 1).await;
    assert_eq!(passed(&skipped[0]), (json!(time(9)), json!(time(13)), json!("missed")));
    let skipped = lines(&running, "ceremony.once.skipped", 1).await;
    assert_eq!(passed(&skipped[0]), (json!(time(9)), json!(time(12)), json!("missed")));
    let skipped = lines(&running, "ceremony.catch.skipped", 1).await;
    assert_eq!(passed(&skipped[0]), (json!(time(9)), json!(time(10)), json!("missed")));
    running.clock.turn_to(after(6 * HOUR));
    assert_eq!(told(&running, "skip", 1).await, [time(14)]);
    assert_eq!(told(&running, "once", 2).await, [time(13), time(14)]);
    running.stop().await;
}

#[tokio::test]
async fn a_disabled_ceremony_waits_and_misses_nothing() {
    let data = folder();
    let running = server(data.path()).await;
    let mut definition = telling("paused", "0 * * * *");
    definition["enabled"] = false.into();
    let created = create(&running, "bob", definition).await;
    assert_eq!((&created["enabled"], &created["next"]), (&json!(false), &json!([])));
    create(&running, "bob", telling("mark", "0 * * * *")).await;
    running.clock.advance(2 * HOUR);
    told(&running, "mark", 1).await;
    assert_eq!(runs(&running, "paused", 0).await.len(), 0);
    // A change of something else leaves it so, as does one that says nothing of it.
    let (status, changed) =
        running.post("/api/ceremonies/paused/update", "bob", &json!({ "description": "paused for now" })).await;
    assert_eq!((status, &changed["data"]["enabled"]), (200, &json!(false)), "{changed}");
    let (_, changed) = running.post("/api/ceremonies/paused/update", "bob", &json!({ "enabled": true })).await;
    assert_eq!(changed["data"]["description"], "paused for now");
    running.clock.turn_to(after(3 * HOUR));
    assert_eq!(told(&running, "paused", 1).await, ["2027-01-15T11:00:00.000Z"]);
    let seen = until(&running, async || Some(shown(&running, "paused").await).filter(|it| !it["last"].is_null())).await;
    assert_eq!(seen["last"]["state"], "completed");
    running.stop().await;
}
