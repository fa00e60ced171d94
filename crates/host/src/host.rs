//! Hosts agents of your own in one call, with everything `switchboard serve` offers.

use std::collections::HashSet;

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
struct HostArguments {
    #[command(flatten)]
    flags: ConfigFlags,
}

/// Hosts one agent under a name until Ctrl-C, and says on standard output where it is.
///
/// The settings are those of `switchboard.yaml` in the current folder and of the environment, if there are any: without
/// them it listens on `127.0.0.1:41242` and keeps its tasks in `.switchboard`. A file of agents is not read. The
/// arguments of the program override both: `--bind`, `--data-dir` and `--workspace` as `switchboard serve` takes
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
    let stop = stop_signal(signals, serving.reloader(), move || printer.line("stopping; Ctrl-C again stops at once"));
    serving.run(stop).await
}

async fn start(agents: Vec<Hosted>, flags: ConfigFlags) -> Result<Serving, StartError> {
    let workspace = flags.load_settings()?;
    // A program that logs in its own way has set that up already, and keeps it.
    let _ = logging::start(&workspace.config.log);
    let fleet = Fleet::of(agents);
    Serving::start(Plan { workspace, fleet, read_again: Box::new(move || flags.load_settings()) }).await
}

#[cfg(test)]
mod tests {
    use switchboard_engine::{AgentError, Manifest, TaskHandle, Turn};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// Says its name before the message.
    struct Named(&'static str);

    impl Agent for Named {
        fn manifest(&self) -> Manifest {
            Manifest::new(self.0, "Says its name")
        }

        async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
            Ok(task.complete_with(format!("{}: {}", self.0, turn.text())).await?)
        }
    }

    async fn post(address: &str, path: &str) -> String {
        let body = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn several_agents_of_one_program_each_answer_at_an_address_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let workspace = folder.path().to_str().unwrap();
        let line = ["x", "--bind", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--workspace", workspace];
        let agents = Host::new().agent("ann", Named("Ann")).agent("bob", Named("Bob")).checked().unwrap();
        let serving = start(agents, HostArguments::parse_from(line).flags).await.unwrap();
        let address = serving.banner.address.clone();
        let stop = CancellationToken::new();
        let served = tokio::spawn(serving.run(stop.clone()));
        for (path, answer) in [("ann", "Ann: hi"), ("bob", "Bob: hi")] {
            let got = post(&address, &format!("/a2a/{path}/message:send")).await;
            assert!(got.contains(answer) && got.contains("TASK_STATE_COMPLETED"), "{got}");
        }
        let got = post(&address, "/a2a/message:send").await;
        assert!(got.starts_with("HTTP/1.1 404") && got.contains("name one: ann, bob"), "{got}");
        stop.cancel();
        served.await.unwrap().unwrap();
    }

    #[test]
    fn a_name_that_no_agent_can_have_or_that_two_have_is_refused() {
        let problem = |host: Host| host.checked().unwrap_err().to_string();
        assert!(problem(Host::new()).contains("no agent to host"));
        assert!(problem(Host::new().agent("Ann", Named("Ann"))).contains("Ann"));
        let twice = Host::new().agent("ann", Named("Ann")).agent("bob", Named("Bob")).agent("ann", Named("Ann"));
        assert_eq!(problem(twice), "two agents are called ann: give each a name of its own");
    }
}
