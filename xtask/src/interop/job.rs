//! One program of an SDK, tested against ours from beginning to end.

use std::collections::BTreeMap;
use std::process::Command;

use crate::interop::environment::Environments;
use crate::interop::foreign::Foreign;
use crate::interop::server::Server;
use crate::program;
use crate::results::Results;

/// Where the runners look for the server's key.
const KEY: &str = "INTEROP_KEY";

/// Where they look for the folders of the SDKs whose agents it serves.
const REMOTES: &str = "INTEROP_REMOTES";

/// Results by SDK and part of interop/RESULTS.md: `python-1.3.0 server`.
pub(crate) type ByHeading = BTreeMap<String, Results>;

pub(crate) enum Job {
    /// Its client calls our server.
    Client { folder: &'static str, program: Command, is_keyed: bool },
    /// Our client and our commands call its server.
    Server { folder: &'static str, program: Command },
    /// The clients of all SDKs call the servers of all SDKs, which are remote agents of ours.
    Hub { remotes: Vec<(&'static str, Command)>, clients: Vec<(&'static str, Command)> },
}

impl Job {
    pub(crate) fn run(self, environments: &Environments<'_>, done: &mut ByHeading) -> anyhow::Result<()> {
        match self {
            Self::Client { folder, program, is_keyed } => client(environments, folder, program, is_keyed, done),
            Self::Server { folder, program } => server(environments, folder, program, done),
            Self::Hub { remotes, clients } => hub(environments, remotes, clients, done),
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
    done: &mut ByHeading,
) -> anyhow::Result<()> {
    let folders: Vec<&str> = remotes.iter().map(|(folder, _)| *folder).collect();
    let mut served = Vec::new();
    for (folder, program) in remotes {
        served.push((folder, Foreign::start(program, &environments.log(&format!("{folder}-remote")))?));
    }
    let agents: Vec<(String, &str)> =
        served.iter().map(|(folder, remote)| (folder.replace('.', "-"), remote.url())).collect();
    let server = Server::hub(&agents, &environments.log("hub"))?;
    for (folder, mut program) in clients {
        program.env_remove(KEY).env(REMOTES, folders.join(" ")).arg(server.url());
        done.entry(format!("{folder} hub")).or_default().hear(&format!("{folder}, through the hub"), &mut program)?;
    }
    Ok(())
}
