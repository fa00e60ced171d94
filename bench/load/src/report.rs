//! Prints results, for people or as one line of JSON for `cargo xtask bench`.

use serde::Serialize;
use std::time::Duration;

use crate::drive::Outcome;
use crate::subscriptions::Opened;

#[derive(Serialize)]
struct Rate {
    mode: &'static str,
    connections: u32,
    /// Requests, or events of a stream, per second.
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    completed: usize,
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
}

pub(crate) fn rate(mode: &'static str, connections: u32, outcome: Outcome, json: bool) -> anyhow::Result<()> {
    let mut latencies = outcome.latencies_us;
    latencies.sort_unstable();
    let rate = Rate {
        mode,
        connections,
        rate: outcome.units as f64 / outcome.elapsed.as_secs_f64(),
        p50_ms: f64::from(percentile(&latencies, 0.50)) / 1000.0,
        p99_ms: f64::from(percentile(&latencies, 0.99)) / 1000.0,
        completed: latencies.len(),
        errors: outcome.errors,
        first_error: outcome.first_error,
    };
    if json {
        return print_json(&rate);
    }
    println!(
        "{}: {:.0}/s over {} connections, p50 {:.3} ms, p99 {:.3} ms, {} completed, {} errors",
        rate.mode, rate.rate, rate.connections, rate.p50_ms, rate.p99_ms, rate.completed, rate.errors
    );
    if let Some(error) = rate.first_error {
        println!("first error: {error}");
    }
    Ok(())
}

#[derive(Serialize)]
struct Fill {
    tasks: u64,
    rate: f64,
    resident_kib: Option<u64>,
}

pub(crate) fn fill(tasks: u64, elapsed: Duration, resident_kib: Option<u64>, json: bool) -> anyhow::Result<()> {
    let fill = Fill { tasks, rate: tasks as f64 / elapsed.as_secs_f64(), resident_kib };
    if json {
        return print_json(&fill);
    }
    println!("filled with {tasks} tasks at {:.0}/s", fill.rate);
    if let Some(resident_kib) = resident_kib {
        println!("resident memory {:.1} MiB", resident_kib as f64 / 1024.0);
    }
    Ok(())
}

#[derive(Serialize)]
struct Subscriptions {
    streams: u64,
    before_kib: u64,
    after_kib: u64,
    kib_per_stream: f64,
}

pub(crate) fn subscriptions(opened: &Opened, json: bool) -> anyhow::Result<()> {
    let growth = opened.after_kib.saturating_sub(opened.before_kib);
    let report = Subscriptions {
        streams: opened.streams,
        before_kib: opened.before_kib,
        after_kib: opened.after_kib,
        kib_per_stream: growth as f64 / opened.streams.max(1) as f64,
    };
    if json {
        return print_json(&report);
    }
    println!(
        "{} open streams: {} KiB before, {} KiB after, {:.1} KiB each",
        report.streams, report.before_kib, report.after_kib, report.kib_per_stream
    );
    Ok(())
}

#[derive(Serialize)]
struct First200 {
    runs: usize,
    median_ms: f64,
    slowest_ms: f64,
}

pub(crate) fn first_200(mut times: Vec<Duration>, json: bool) -> anyhow::Result<()> {
    times.sort_unstable();
    let milliseconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
    let report = First200 {
        runs: milliseconds.len(),
        median_ms: percentile(&milliseconds, 0.50),
        slowest_ms: percentile(&milliseconds, 1.0),
    };
    if json {
        return print_json(&report);
    }
    println!("{} starts: median {:.1} ms, slowest {:.1} ms", report.runs, report.median_ms, report.slowest_ms);
    Ok(())
}

fn print_json(report: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(report)?);
    Ok(())
}

/// The nearest-rank percentile of sorted values; the default of an empty list.
fn percentile<T: Copy + Default>(sorted: &[T], share: f64) -> T {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<u32> = (1..=100).collect();
        assert_eq!((percentile(&values, 0.5), percentile(&values, 0.99), percentile(&values, 1.0)), (50, 99, 100));
        assert_eq!((percentile(&[7u32], 0.5), percentile::<u32>(&[], 0.5)), (7, 0));
    }
}
