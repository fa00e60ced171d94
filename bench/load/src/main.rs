//! The load generator: closed loops of HTTP/1.1 requests on one thread, every reply checked, time always bounded.
//! It must cost less than the server it measures, so HTTP is written by hand and replies are read in place.

mod connection;
mod drive;
mod event_stream;
mod failure;
mod fill;
mod first_200;
mod get;
mod list;
mod memory;
mod reply;
mod report;
mod request;
mod send;
mod stream;
mod subscriptions;
mod target;
mod webhook;
mod work;

use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;
use std::time::Duration;

use crate::drive::Pace;
use crate::fill::Filling;
use crate::target::Target;
use crate::webhook::Receiver;
use crate::work::Work;

/// How long a paced run goes on before it is measured: connections are open, and webhooks are under way.
const WARM_UP: Duration = Duration::from_secs(1);

#[derive(Parser)]
#[command(about = "Measures an A2A server: rate, latency and errors")]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// SendMessage; each reply must be a completed task with one artifact
    Send {
        #[command(flatten)]
        load: Load,
        #[arg(long, default_value = "hello")]
        text: String,
        /// Give every message a webhook with a receiver like this
        #[arg(long)]
        webhook: Option<Receiver>,
        /// Measure messages without a webhook, while those sent just before have one
        #[arg(long, requires = "webhook")]
        beside: bool,
        /// So many messages a second in all, after as many unmeasured ones, instead of as many as possible
        #[arg(long)]
        per_second: Option<f64>,
    },
    /// SendStreamingMessage; every chunk must arrive once and in order, then COMPLETED. Rate is in events
    Stream {
        #[command(flatten)]
        load: Load,
        /// `stream:N` or `streamy:N`
        #[arg(long, default_value = "stream:100")]
        text: String,
    },
    /// GetTask over one hot task, or at random over as many as `--tasks` creates first
    Get {
        #[command(flatten)]
        load: Load,
        #[arg(long, default_value_t = 1)]
        tasks: u64,
    },
    /// ListTasks, first page of 50
    List {
        #[command(flatten)]
        load: Load,
        /// With a `statusTimestampAfter`, as in 2020-01-01T00:00:00Z
        #[arg(long)]
        since: Option<String>,
    },
    /// Creates tasks as fast as it can: finished ones, or with another text as the agent leaves them
    Fill {
        #[command(flatten)]
        load: Load,
        #[arg(long)]
        tasks: u64,
        #[arg(long, default_value = fill::FINISHES)]
        text: String,
        /// Do not wait until a task ends or asks
        #[arg(long)]
        immediately: bool,
        /// Report this process's memory afterwards
        #[arg(long)]
        pid: Option<u32>,
    },
    /// Opens streams that stay open and reports the server's growth per stream
    Subscriptions {
        #[command(flatten)]
        load: Load,
        #[arg(long, default_value_t = 1000)]
        streams: u64,
        /// The server's process
        #[arg(long)]
        pid: u32,
        /// Subscribe to one held task instead of holding one task per stream
        #[arg(long)]
        one_task: bool,
    },
    /// Starts a command again and again and times it to its first 200 on /healthz
    #[command(name = "first-200")]
    First200 {
        #[arg(long, default_value_t = 20)]
        runs: u32,
        #[arg(long)]
        json: bool,
        /// The command; `{port}` and `{directory}` stand for a free port and a fresh empty directory
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
}

/// What every mode that talks to a running server takes.
#[derive(Args)]
struct Load {
    /// JSON-RPC endpoint, as in http://127.0.0.1:8080/a2a
    #[arg(long)]
    url: Target,
    #[arg(long, default_value_t = 32)]
    connections: u32,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// One line of JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Load {
    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.1, 3600.0))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(arguments.mode)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mode: Mode) -> anyhow::Result<()> {
    match mode {
        Mode::Send { load, text, webhook, beside, per_second } => {
            let webhook = match webhook {
                Some(receiver) => Some(receiver.start().await?),
                None => None,
            };
            let Some(per_second) = per_second else {
                return measure("send", &load, Work::Send { text, webhook }).await;
            };
            let pace = Pace::new(per_second, load.connections);
            let before = Work::Send { text: text.clone(), webhook: webhook.clone() };
            let warmed = drive::run(&load.url, before, load.connections, WARM_UP, Some(pace)).await?;
            anyhow::ensure!(warmed.errors == 0, "{}", warmed.first_error.unwrap_or_default());
            let webhook = webhook.filter(|_| !beside);
            let work = Work::Send { text, webhook };
            let outcome = drive::run(&load.url, work, load.connections, load.duration(), Some(pace)).await?;
            report::rate("send", load.connections, outcome, load.json)
        }
        Mode::Stream { load, text } => {
            let chunks = stream::chunks_of(&text)?;
            measure("stream", &load, Work::Stream { text, chunks }).await
        }
        Mode::Get { load, tasks } => {
            let ids = fill::run(&load.url, Filling::finished(), load.connections, tasks.max(1)).await?.ids;
            measure("get", &load, Work::Get { ids }).await
        }
        Mode::List { load, since } => measure("list", &load, Work::List { since }).await,
        Mode::Fill { load, tasks, text, immediately, pid } => {
            let filled = fill::run(&load.url, Filling { text, immediately }, load.connections, tasks).await?;
            let resident_kib = pid.map(memory::resident_kib).transpose()?;
            report::fill(tasks, filled.elapsed, resident_kib, load.json)
        }
        Mode::Subscriptions { load, streams, pid, one_task } => {
            let opened = subscriptions::run(&load.url, streams, pid, one_task).await?;
            report::subscriptions(&opened, load.json)
        }
        Mode::First200 { runs, json, command } => {
            let times = first_200::run(&command, runs).await?;
            report::first_200(times, json)
        }
    }
}

async fn measure(mode: &'static str, load: &Load, work: Work) -> anyhow::Result<()> {
    let outcome = drive::run(&load.url, work, load.connections, load.duration(), None).await?;
    report::rate(mode, load.connections, outcome, load.json)
}
