//! Hosts agents of your own in one call, with everything `switchboard serve` offers.

use std::collections::HashSet;
use std::sync::Arc;

use clap::Parser;
use switchboard_engine::{Agent, Hosted};

use crate::config::agent_name::AgentName;
use crate::config::value::Scalar;
use crate::flags::ConfigFlags;
use crate::logging;
use crate::printer::{Output, Printer};
use crate::serve::{Fleet, Plan, Serving, Signals, StartError, stop_signal};

/// Hosts agents behind A2A, with durable tasks.
#[derive(Debug, Parser)]
#[command(name = "switchboard")]
#[command(mut_arg("workspace", |workspace| workspace.help("Workspace folder, which holds switchboard.yaml")))]
struct HostArguments {
    #[command(flatten)]
    flags: ConfigFlags,
}

/// Hosts one agent under a name until Ctrl-C, and says on standard output where it is.
///
/// The settings are those of `switchboard.yaml` in the current folder and of the environment, if there are any: without
/// them it listens on `127.0.0.1:41242` and keeps its tasks in `.switchboard`. Files of agents are not read, and are
/// warned of. The arguments of the program override both: `--bind`, `--data-dir` and `--workspace` as `switchboard serve` takes
/// them. SIGHUP and `switchboard config reload` have it read its settings again. On `--help`, and on an argument that is
/// none of these, it says so and ends the process.
///
/// ```no_run
/// # use switchboard_host as switchboard;
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
    Host::new().agent(name, agent).run().await
}

/// Hosts several agents in one program, each at an address of its own: `/a2a/NAME`. At the root answers the one that
/// `server.defaultAgent` names in `switchboard.yaml`; without that setting a request there has to name an agent.
///
/// ```no_run
/// # use switchboard_host as switchboard;
/// # use switchboard::{Agent, AgentError, Host, Manifest, StartError, TaskHandle, Turn};
/// # struct Shout;
/// # struct Whisper;
/// # impl Agent for Shout {
/// #     fn manifest(&self) -> Manifest { Manifest::new("Shout", "Says it louder") }
/// #     async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
/// #         Ok(task.complete_with(turn.text().to_uppercase()).await?)
/// #     }
/// # }
/// # impl Agent for Whisper {
/// #     fn manifest(&self) -> Manifest { Manifest::new("Whisper", "Says it quietly") }
/// #     async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
/// #         Ok(task.complete_with(turn.text().to_lowercase()).await?)
/// #     }
/// # }
/// # async fn example() -> Result<(), StartError> {
/// Host::new().agent("shout", Shout).agent("whisper", Whisper).run().await
/// # }
/// ```
#[derive(Default)]
#[must_use]
pub struct Host {
    agents: Vec<(String, Hosted)>,
}

impl Host {
    /// Without agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// With an agent under a name.
    pub fn agent(mut self, name: &str, agent: impl Agent) -> Self {
        self.agents.push((name.to_owned(), Hosted::new(name, agent)));
        self
    }

    /// Hosts them until Ctrl-C, as [`host()`] does with one.
    ///
    /// # Errors
    /// Whatever keeps them from starting, with what to do about it; a name that no agent can have, or that two have.
    pub async fn run(self) -> Result<(), StartError> {
        run(self.checked()?).await
    }

    fn checked(self) -> Result<Vec<Hosted>, StartError> {
        if self.agents.is_empty() {
            return Err(StartError::AgentName("there is no agent to host: name one with Host::agent".to_owned()));
        }
        let mut taken = HashSet::new();
        for (name, _) in &self.agents {
            AgentName::from_text(name)
                .map_err(|mismatch| StartError::AgentName(format!("{}: {}", mismatch.wrong, mismatch.right)))?;
            if !taken.insert(name) {
                let problem = format!("two agents are called {name}: give each a name of its own");
                return Err(StartError::AgentName(problem));
            }
        }
        Ok(self.agents.into_iter().map(|(_, hosted)| hosted).collect())
    }
}

async fn run(agents: Vec<Hosted>) -> Result<(), StartError> {
    let flags = HostArguments::parse().flags;
    let signals = Signals::take().map_err(StartError::Signals)?;
    let serving = start(agents, flags).await?;
    let printer = Printer::new(Output::Text);
    for warning in &serving.warnings {
        printer.warning(warning);
    }
    serving.banner.print(printer);
    let stop = stop_signal(signals, Arc::clone(&serving.reloader), move || {
        printer.line("stopping; Ctrl-C again stops at once")
    });
    serving.run(stop).await
}

async fn start(agents: Vec<Hosted>, flags: ConfigFlags) -> Result<Serving, StartError> {
    let workspace = flags.load_settings()?;
    // A program that logs in its own way has set that up already, and keeps it.
    let _ = logging::start(&workspace.config.log);
    let fleet = Fleet::of(agents);
    Serving::start(Plan { workspace, fleet, read_again: Box::new(move || flags.load_settings()) }).await
}
