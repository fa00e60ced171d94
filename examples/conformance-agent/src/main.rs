//! The server that the public A2A conformance suites are run against: one ordinary agent, served at the root and at
//! `/a2a` exactly as `switchboard serve` serves. `docs/conformance.md` says how to run the suites and what they find.

mod agent;
mod behaviour;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use switchboard::StartError;
use switchboard::config::cards::CardForm;
use switchboard::flags::ConfigFlags;
use switchboard::logging;
use switchboard::printer::{Output, Printer};
use switchboard::serve::{Fleet, Plan, Serving};
use switchboard_engine::{Hosted, Served, Switches};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::agent::Conformance;
use crate::behaviour::Fallback;

/// Serves the agent that the public A2A conformance suites expect.
#[derive(Debug, Parser)]
struct Flags {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:41242")]
    bind: SocketAddr,
    /// Where to keep the tasks.
    #[arg(long, value_name = "DIR", default_value = ".switchboard")]
    data_dir: PathBuf,
    /// Card for those who do not say which version they read.
    #[arg(long, value_enum, default_value_t)]
    cards: Cards,
    /// What to do with a message whose id says nothing.
    #[arg(long, value_enum, default_value_t)]
    default: Fallback,
    /// Say on the card that it does not stream.
    #[arg(long)]
    no_streaming: bool,
    /// An extension that every caller must know.
    #[arg(long, value_name = "URI")]
    required_extension: Option<String>,
    /// What a 0.3 send does that does not say whether it waits.
    #[arg(long, value_enum, default_value_t)]
    v03_blocking: Blocking,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Cards {
    #[default]
    Hybrid,
    V1,
    V03,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Blocking {
    /// It waits.
    #[default]
    Block,
    /// It gets the task as it is.
    Return,
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let flags = Flags::parse();
    let settings = ConfigFlags {
        workspace: PathBuf::from("."),
        bind: Some(flags.bind.to_string()),
        data_dir: Some(flags.data_dir.clone()),
    };
    let mut workspace = settings.load_settings()?;
    workspace.config.cards.default = match flags.cards {
        Cards::Hybrid => CardForm::Hybrid,
        Cards::V1 => CardForm::V1,
        Cards::V03 => CardForm::V03,
    };
    let printer = Printer::new(Output::Text);
    if let Err(error) = logging::start(&workspace.config.log) {
        printer.warning(&error.to_string());
    }
    let agent = Conformance {
        fallback: flags.default,
        pause: Duration::from_millis(250),
        streaming: !flags.no_streaming,
        required_extension: flags.required_extension,
    };
    let switches = Switches { v03_blocking: flags.v03_blocking == Blocking::Block, ..Switches::default() };
    let stop = stop_signal().map_err(StartError::Signals)?;
    let serving = Serving::start(Plan {
        workspace,
        fleet: Fleet::of(vec![Hosted::serving("conformance", Served::new(agent).switches(switches))]),
        read_again: Box::new(move || settings.load_settings()),
    });
    let serving = serving.await?;
    for warning in &serving.warnings {
        printer.warning(warning);
    }
    serving.banner.print(printer);
    serving.run(stop).await
}

/// A token that Ctrl-C and SIGTERM cancel.
fn stop_signal() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopping.cancel();
    });
    Ok(stop)
}
