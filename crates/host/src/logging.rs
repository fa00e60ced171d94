//! The log, set up once from the configuration: to standard error, as text or as JSON.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use std::panic::PanicHookInfo;

use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::log::{Log, LogFormat, LogLevel};
use crate::printer;

/// This process already has a subscriber.
#[derive(Debug, thiserror::Error)]
#[error("the log of this process is already set up: start it once only")]
pub struct AlreadyStarted;

/// Starts logging to standard error for the rest of the process.
pub fn start(log: &Log) -> Result<(), AlreadyStarted> {
    subscriber(log, io::stderr, printer::colors_on_stderr()).try_init().map_err(|_| AlreadyStarted)?;
    // A panic is a log event too: a JSON log must hold nothing but JSON.
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => tracing::error!(panic = what, place, thread, %trace, "something panicked"),
        _ => tracing::error!(panic = what, place, thread, "something panicked"),
    }
}

fn subscriber<W>(log: &Log, writer: W, colors: bool) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colors)
        // A line that cannot be written would otherwise be reported to the same standard error, by a macro that panics
        // if that fails too: a full disk below the log would end the turn or the thread that logged.
        .log_internal_errors(false);
    let filtered = tracing_subscriber::registry().with(filter(log.level));
    match log.format {
        LogFormat::Text => Box::new(filtered.with(lines)),
        LogFormat::Json => Box::new(filtered.with(lines.json().flatten_event(true))),
    }
}

/// Only the crates of Switchboard log at `debug`: the events of libraries at that level would bury theirs.
fn filter(level: LogLevel) -> Targets {
    let (own, libraries) = match level {
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
        LogLevel::Warn => (LevelFilter::WARN, LevelFilter::WARN),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::INFO),
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::INFO),
        LogLevel::Trace => (LevelFilter::TRACE, LevelFilter::INFO),
    };
    Targets::new().with_default(libraries).with_target("switchboard", own)
}
