//! What schedules do where the clocks of a zone change, and far ahead.

use switchboard_a2a::Timestamp;
use switchboard_hub::ceremonies::schedule::{ClockChange, Schedule};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|| panic!("{text}"))
}

/// The next runs with their wall-clock times.
fn runs(expression: &str, zone: &str, after: &str, count: usize) -> Vec<(String, Option<ClockChange>)> {
    let schedule = Schedule::cron(expression, zone).unwrap();
    let runs = schedule.occurrences(at(after), count);
    runs.into_iter().map(|run| (run.local, run.clock_change)).collect()
}

fn plain(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    runs(expression, zone, after, count).into_iter().map(|(local, _)| local).collect()
}

/// The clocks of Berlin go from 02:00 to 03:00.
const BEFORE_GAP: &str = "2026-03-28T22:00:00Z";
/// They go from 03:00 back to 02:00.
const BEFORE_FOLD: &str = "2026-10-24T22:00:00Z";

#[test]
fn a_skipped_time_comes_at_once_after_the_gap() {
    let found = runs("30 2 * * *", "Europe/Berlin", BEFORE_GAP, 2);
    assert_eq!(found[0], ("2026-03-29T03:00:00+02:00".to_owned(), Some(ClockChange::Skipped)));
    assert_eq!(found[1], ("2026-03-30T02:30:00+02:00".to_owned(), None));
    let several = plain("*/15 2,3 * * *", "Europe/Berlin", BEFORE_GAP, 2);
    assert_eq!(several, ["2026-03-29T03:00:00+02:00", "2026-03-29T03:15:00+02:00"], "once, however many are skipped");
}

#[test]
fn a_repeated_time_comes_once() {
    let found = runs("30 2 * * *", "Europe/Berlin", BEFORE_FOLD, 2);
    assert_eq!(found[0], ("2026-10-25T02:30:00+02:00".to_owned(), Some(ClockChange::Repeated)));
    assert_eq!(found[1], ("2026-10-26T02:30:00+01:00".to_owned(), None));
    // Asked within the second time.
    assert_eq!(plain("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["2026-10-26T02:30:00+01:00"]);
}

#[test]
fn every_hour_runs_in_real_time() {
    let hourly = plain("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 4);
    let expected = [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
        "2026-10-25T04:00:00+01:00",
    ];
    assert_eq!(hourly, expected);
    let hourly = plain("0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", 3);
    assert_eq!(hourly, ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"]);
    let minutes = Schedule::cron("*/10 * * * *", "Europe/Berlin").unwrap().occurrences(at(BEFORE_FOLD), 60);
    assert!(minutes.windows(2).all(|pair| pair[1].at.0 - pair[0].at.0 == 600_000), "{minutes:?}");
}

#[test]
fn far_dates_and_single_ones_end() {
    let leap = Schedule::cron("0 12 29 2 *", "Europe/Berlin").unwrap();
    assert_eq!(leap.next_after(at("2096-03-01T00:00:00Z")), Some(at("2104-02-29T11:00:00Z")), "2100 is no leap year");
    let last = Schedule::cron("0 0 1 1 *", "UTC").unwrap();
    assert_eq!(last.next_after(at("9999-06-01T00:00:00Z")), None, "the calendar ends");
    for every in ["* * * * * *", "0 9 * * *"] {
        assert_eq!(Schedule::cron(every, "Europe/Berlin").unwrap().next_after(Timestamp(i64::MAX)), None);
    }
    let once = Schedule::once("2027-12-24T18:00:00+01:00", "UTC").unwrap();
    assert_eq!(once.next_after(at("2026-11-19T00:00:00Z")), Some(at("2027-12-24T17:00:00Z")), "400 days ahead");
    assert_eq!(once.next_after(at("2027-12-24T17:00:00Z")), None);
    let local = |text: &str| Schedule::once(text, "Europe/Berlin").unwrap().next_after(Timestamp(0)).unwrap();
    assert_eq!(local("2026-07-01T09:00"), at("2026-07-01T07:00:00Z"));
    assert_eq!(local("2026-03-29T02:30:00"), at("2026-03-29T01:00:00Z"), "after the gap");
    assert_eq!(local("2026-10-25T02:30:00"), at("2026-10-25T00:30:00Z"), "the first time");
    assert_eq!(Schedule::once("tomorrow", "UTC").unwrap_err().to_string(), "\"tomorrow\" is no time");
    let unknown = Schedule::cron("0 9 * * *", "Europe/Bärlin").unwrap_err().to_string();
    assert_eq!(unknown, "\"Europe/Bärlin\" is no time zone that this machine knows");
}
