//! SendMessage in a closed loop on one thread: through Switchboard's client, or with the same bytes through bare hyper or
//! bare reqwest. What the client adds is the difference; the bench runs the ways one after another.

mod bare;
mod through_client;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use tokio::task::JoinSet;

use crate::bare::{Connection, Hyper, Reqwest};
use crate::through_client::ThroughClient;

/// Calls before the measured ones: connections are open and the agent's card is known.
const WARM_UP: u32 = 200;

#[derive(Parser)]
#[command(about = "Measures SendMessage through Switchboard's client beside bare calls")]
struct Arguments {
    /// JSON-RPC endpoint, as in http://127.0.0.1:8080/a2a
    #[arg(long)]
    url: String,
    /// What the calls go through
    #[arg(long)]
    way: Way,
    /// Calls under way at the same time
    #[arg(long, default_value_t = 1)]
    concurrent: u32,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// One line of JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// One connection of hyper's for each loop: no pool, nothing to choose
    Connection,
    /// One pooled client of hyper's for all loops
    Hyper,
    /// One client of reqwest's for all loops
    Reqwest,
    /// One client of Switchboard's for all loops
    Client,
}

/// Something that can send one message and have its answer.
trait Caller: Clone + Send + 'static {
    fn call(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(&arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let url = &arguments.url;
    let mut latencies_us = match arguments.way {
        Way::Connection => measure(arguments, Connection::new(url)?).await?,
        Way::Hyper => measure(arguments, Hyper::new(url)?).await?,
        Way::Reqwest => measure(arguments, Reqwest::new(url)?).await?,
        Way::Client => measure(arguments, ThroughClient::new(url)?).await?,
    };
    let elapsed = Duration::from_micros(latencies_us.iter().sum()) / arguments.concurrent.max(1);
    latencies_us.sort_unstable();
    let completed = latencies_us.len();
    let rate = completed as f64 / elapsed.as_secs_f64();
    let [p50_ms, p99_ms] = [0.50, 0.99].map(|share| {
        let rank = (completed as f64 * share).ceil() as usize;
        latencies_us.get(rank.saturating_sub(1)).copied().unwrap_or_default() as f64 / 1000.0
    });
    if arguments.json {
        let rate = serde_json::json!({
            "rate": rate, "p50_ms": p50_ms, "p99_ms": p99_ms, "completed": completed, "errors": 0
        });
        println!("{rate}");
    } else {
        println!("{rate:.0}/s, {} at once, p50 {p50_ms:.3} ms, p99 {p99_ms:.3} ms", arguments.concurrent);
    }
    Ok(())
}

/// The time of every call in microseconds. One that fails ends it: there is nothing to compare then.
async fn measure(arguments: &Arguments, caller: impl Caller) -> anyhow::Result<Vec<u64>> {
    let loops = arguments.concurrent.max(1);
    let duration = Duration::from_secs_f64(arguments.seconds.clamp(0.1, 3600.0));
    let mut workers = JoinSet::new();
    for _ in 0..loops {
        let mut caller = caller.clone();
        workers.spawn(async move {
            for _ in 0..WARM_UP.div_ceil(loops) {
                caller.call().await?;
            }
            let mut latencies = Vec::new();
            let mut began = Instant::now();
            let end = began + duration;
            while began < end {
                caller.call().await?;
                let finished = Instant::now();
                latencies.push(u64::try_from((finished - began).as_micros()).unwrap_or(u64::MAX));
                began = finished;
            }
            anyhow::Ok(latencies)
        });
    }
    let mut all = Vec::new();
    while let Some(latencies) = workers.join_next().await {
        all.extend(latencies??);
    }
    Ok(all)
}
