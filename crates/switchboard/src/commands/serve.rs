//! `switchboard serve`: hosts the agents of a workspace until SIGTERM or Ctrl-C.

use std::process::ExitCode;
use std::sync::Arc;

use switchboard_host::flags::ConfigFlags;
use switchboard_host::logging;
use switchboard_host::printer::Printer;
use switchboard_host::serve::{Plan, Serving, Signals, StartError, stop_signal};

use crate::cli::DataFlags;
use crate::commands::{loaded, no_threads};
use switchboard_fleet::config::FleetConfig;
use switchboard_hub::configured;
use switchboard_hub::registry::AgentSources;
use tokio::sync::Notify;

/// Serves. Returns when it was stopped in order, or could not start.
pub(crate) fn run(flags: &ConfigFlags, printer: Printer) -> Result<(), ExitCode> {
    let fleet = loaded(FleetConfig::of(flags), printer)?;
    logging::start(&fleet.workspace.config.log).map_err(|error| printer.failure(&error.to_string(), ""))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| no_threads(&error, printer))?;
    let served = runtime.block_on(serve(fleet, flags.clone(), printer));
    served.map_err(|error| printer.failure(&error.to_string(), &data_flags(flags).in_commands(&error.next_step())))
}

/// The flags that other commands on the same data need.
fn data_flags(flags: &ConfigFlags) -> DataFlags {
    DataFlags { workspace: flags.workspace.clone(), data_dir: flags.data_dir.clone() }
}

async fn serve(fleet: FleetConfig, flags: ConfigFlags, printer: Printer) -> Result<(), StartError> {
    let signals = Signals::take().map_err(StartError::Signals)?;
    let FleetConfig { mut workspace, remotes, .. } = fleet;
    // The registry follows the files of agents by itself.
    workspace.agents.clear();
    let drain = workspace.config.tasks.drain;
    for agent in remotes.iter().filter(|agent| agent.serving.serve) {
        tracing::info!(agent = %agent.name, url = agent.url.as_str(), "an agent elsewhere is served here");
    }
    let data = data_flags(&flags);
    let reload_now = Arc::new(Notify::new());
    let sources = AgentSources {
        folder: flags.workspace.clone(),
        overrides: flags.overrides(),
        reload_now: Arc::clone(&reload_now),
        own: Vec::new(),
    };
    let read_again = Box::new(move || {
        let mut workspace = FleetConfig::of(&flags)?.workspace;
        workspace.agents.clear();
        reload_now.notify_one();
        Ok(workspace)
    });
    let serving = Serving::start(Plan { workspace, fleet: configured(sources), read_again });
    let serving = serving.await?;
    for warning in &serving.warnings {
        printer.warning(&data.in_commands(warning));
    }
    if printer.is_json() {
        printer.json(&serving.banner);
    } else {
        serving.banner.print(printer);
    }
    let stop = stop_signal(signals, Arc::clone(&serving.reloader), move || {
        if !printer.is_json() {
            printer.line(format!("stopping: running tasks have {drain} to end; Ctrl-C again stops at once"));
        }
    });
    serving.run(stop).await?;
    if !printer.is_json() {
        printer.line("stopped");
    }
    Ok(())
}
