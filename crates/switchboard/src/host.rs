//! An agent of your own behind A2A in one call, with everything `switchboard serve` does around it.

use clap::Parser;
use switchboard_engine::{Agent, Hosted};

use crate::cli::ConfigFlags;
use crate::config::agent_name::AgentName;
use crate::config::value::Scalar;
use crate::logging;
use crate::printer::{Output, Printer};
use crate::serve::{Fleet, Plan, Serving, Signals, StartError, stop_signal};

/// Hosts one agent behind A2A, with durable tasks.
#[derive(Debug, Parser)]
struct HostLine {
    #[command(flatten)]
    flags: ConfigFlags,
}

/// Hosts one agent under a name until Ctrl-C, and says on standard output where it is.
///
/// The settings are those of `switchboard.yaml` in the current folder and of the environment, if there are any: without
/// them it listens on `127.0.0.1:41242` and keeps its tasks in `.switchboard`. A file of agents is not read. The
/// arguments of the program stand above both: `--bind`, `--data-dir` and `--workspace` as `switchboard serve` takes
/// them. SIGHUP and `switchboard config reload` have it read its settings again. On `--help`, and on an argument that is
/// none of these, it says so and ends the process.
///
/// ```no_run
/// use switchboard::{Agent, AgentError, Manifest, StartError, TaskHandle, Turn};
///
/// struct Shout;
///
/// impl Agent for Shout {
///     fn manifest(&self) -> Manifest {
///         Manifest::new("Shout", "Says it louder")
///     }
///
///     async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
///         Ok(task.complete_with(turn.text().to_uppercase()).await?)
///     }
/// }
///
/// # async fn example() -> Result<(), StartError> {
/// switchboard::host("shout", Shout).await
/// # }
/// ```
///
/// # Errors
/// Whatever keeps it from starting, with what to do about it.
pub async fn host(name: &str, agent: impl Agent) -> Result<(), StartError> {
    let name = AgentName::from_text(name)
        .map_err(|mismatch| StartError::AgentName(format!("{}: {}", mismatch.wrong, mismatch.right)))?;
    let flags = HostLine::parse().flags;
    let workspace = flags.load_settings()?;
    // A program that logs in its own way has set that up already, and keeps it.
    let _ = logging::start(&workspace.config.log);
    let signals = Signals::take().map_err(StartError::Signals)?;
    let fleet = Fleet::of(vec![Hosted::new(name.as_str(), agent)]);
    let serving = Serving::start(Plan { workspace, fleet, read_again: Box::new(move || flags.load_settings()) });
    let serving = serving.await?;
    let printer = Printer::new(Output::Text);
    for warning in &serving.warnings {
        printer.warning(warning);
    }
    serving.greeting.print(printer);
    let stop = stop_signal(signals, serving.reloader(), move || printer.line("stopping; Ctrl-C again stops at once"));
    serving.run(stop).await
}
