//! One program of an SDK, tested against ours from beginning to end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::interop::environment::Environments;
use crate::interop::foreign::Foreign;
use crate::interop::matrix::{Pair, interfaces};
use crate::interop::server::Server;
use crate::program;
use crate::results::Results;

/// Where the runners look for the server's key.
const KEY: &str = "INTEROP_KEY";

/// Where they look for the agents of SDKs that it serves.
const REMOTES: &str = "INTEROP_REMOTES";

/// How often servers are killed. Each time is as quick as they are to start.
const KILLS: &str = "8";
/// In seconds: after so long no more of them are begun.
const KILLS_TIME_BOX: &str = "20";

/// Results by SDK and part of interop/RESULTS.md: `python-1.3.0 server`.
pub(crate) type ByHeading = BTreeMap<String, Results>;

pub(crate) enum Job {
    /// Its client calls our server.
    Client { folder: &'static str, program: Command, is_keyed: bool },
    /// Our client and our commands call its server.
    Server { folder: &'static str, program: Command },
    /// The clients of all SDKs call the servers of all SDKs, which are remote agents of ours, in these pairs.
    Hub { remotes: Vec<(&'static str, Command)>, clients: Vec<(&'static str, Command)>, pairs: Vec<Pair> },
    /// Its server is a remote agent of ours, and both are killed.
    Kill { folder: &'static str, program: Command },
}

impl Job {
    pub(crate) fn run(self, environments: &Environments<'_>, done: &mut ByHeading) -> anyhow::Result<()> {
        match self {
            Self::Client { folder, program, is_keyed } => client(environments, folder, program, is_keyed, done),
            Self::Server { folder, program } => server(environments, folder, program, done),
            Self::Hub { remotes, clients, pairs } => hub(environments, remotes, clients, &pairs, done),
            Self::Kill { folder, program } => kill(environments, folder, &program, done),
        }
    }
}

/// Runs the tests of one program that are for this kind of server.
fn client(
    environments: &Environments<'_>,
    folder: &str,
    mut program: Command,
    is_keyed: bool,
    done: &mut ByHeading,
) -> anyhow::Result<()> {
    let server = match is_keyed {
        true => Server::keyed(&environments.log(&format!("{folder}-keyed")))?,
        false => Server::open(&environments.log(folder))?,
    };
    program.env_remove(REMOTES);
    match server.key() {
        Some(key) => program.env(KEY, key),
        None => program.env_remove(KEY),
    };
    let title = if is_keyed { format!("{folder}, with a key") } else { folder.to_owned() };
    done.entry(format!("{folder} client")).or_default().hear(&title, program.arg(server.url()))
}

/// A look at an agent by `switchboard conformance`: where it is, what it is told, and what is looked for, if not everything.
type Look = (&'static str, &'static str, &'static [&'static str]);

/// What is looked at with the agent of an SDK.
fn looks(folder: &str) -> &'static [Look] {
    match folder {
        "official-0.5.3" => &[
            ("", "echo hello", &[]),
            ("/plain", "burst 100", &["send-answered", "stream-whole"]),
            ("", "error", &["send-answered", "failed-task-ends", "subscribe-open"]),
            ("", "panic", &["send-in-time"]),
            ("", "work 40", &["cancel-final", "cancel-ends-streams", "subscribe-resumes"]),
        ],
        // A task that takes a moment shows the most, and one that asks how streams of version 0.3 end there.
        _ => &[("", "stream 200", &[]), ("", "ask", &["stream-final"])],
    }
}

fn server(environments: &Environments<'_>, folder: &str, program: Command, done: &mut ByHeading) -> anyhow::Result<()> {
    let server = Foreign::start(program, &environments.log(&format!("{folder}-server")))?;
    let built = program::root().join("target/debug");
    let callers = |part: &str, path: &str| {
        let mut command = Command::new(built.join("callers"));
        command.arg(part).arg(format!("{}{path}", server.url()));
        command
    };
    let mut hear = |heading: &str, command: &mut Command| {
        let heading = format!("{folder} {heading}");
        done.entry(heading.clone()).or_default().hear(&heading, command)
    };
    let switchboard = built.join("switchboard");
    // First, so that it finds the same whatever the others leave behind.
    for (path, text, checks) in looks(folder) {
        hear("conformance", callers("conformance", path).arg(&switchboard).arg(text).args(*checks))?;
    }
    hear("server", &mut callers("client", ""))?;
    hear("commands", callers("commands", "").arg(&switchboard))
}

fn hub(
    environments: &Environments<'_>,
    remotes: Vec<(&'static str, Command)>,
    clients: Vec<(&'static str, Command)>,
    pairs: &[Pair],
    done: &mut ByHeading,
) -> anyhow::Result<()> {
    let mut served = Vec::new();
    for (folder, program) in remotes {
        served.push((folder, Foreign::start(program, &environments.log(&format!("{folder}-remote")))?));
    }
    // One agent for each interface, by a card that has no other.
    let mut agents = Vec::new();
    for (folder, remote) in &served {
        for interface in interfaces(folder) {
            let name = format!("{folder}-{interface}").replace('.', "-");
            agents.push((name, format!("{}/only/{interface}", remote.url())));
        }
    }
    let server = Server::hub(&agents, &environments.log("hub"))?;
    for (folder, remote) in &served {
        let heading = format!("{folder} remote");
        let mut callers = Command::new(program::root().join("target/debug/callers"));
        callers.arg("behind").arg(remote.url()).arg(server.url()).arg(folder.replace('.', "-"));
        done.entry(heading.clone()).or_default().hear(&heading, &mut callers)?;
    }
    let call = |(folder, mut program): (&str, Command)| {
        let mut results = Results::default();
        let called: Vec<String> = pairs.iter().filter(|pair| pair.client == folder).map(Pair::told).collect();
        program.env_remove(KEY).env(REMOTES, called.join(" ")).arg(server.url());
        results.hear(&format!("{folder}, through the hub"), &mut program)?;
        anyhow::Ok((format!("{folder} hub"), results))
    };
    std::thread::scope(|scope| {
        let calls: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| call(client))).collect();
        for called in calls {
            let (heading, results) = called.join().map_err(|_| anyhow::anyhow!("a client's worker has panicked"))??;
            done.entry(heading).or_default().add(results);
        }
        Ok(())
    })
}

/// Lets the program that tortures a hub do so with an SDK's server behind it.
fn kill(environments: &Environments<'_>, folder: &str, program: &Command, done: &mut ByHeading) -> anyhow::Result<()> {
    let folder_of = program.get_current_dir().map_or_else(program::root, Path::to_path_buf);
    let arguments: Vec<_> = program.get_args().map(|argument| argument.to_string_lossy()).collect();
    let scratch = tempfile::tempdir()?;
    let foreign = json!({
        "program": program.get_program().to_string_lossy(),
        "arguments": arguments,
        "folder": folder_of,
        "log": environments.log(&format!("{folder}-killed")),
        "executions": scratch.path().join("executions"),
        "interfaces": interfaces(folder),
    });
    let built = program::root().join("target/debug");
    let mut torture = Command::new(built.join("torture"));
    torture.arg("hub").arg("--binary").arg(built.join("switchboard")).args(["--foreign", &foreign.to_string()]);
    torture.args(["--rounds", KILLS, "--time-box", KILLS_TIME_BOX]);
    for (name, value) in program.get_envs() {
        torture.env(name, value.unwrap_or_default());
    }
    done.entry(format!("{folder} remote")).or_default().hear(&format!("{folder}, killed"), &mut torture)
}
