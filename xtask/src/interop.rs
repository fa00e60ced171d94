//! `cargo xtask interop`: the published SDKs of other languages as clients of the real server, and their servers called by
//! our client. Each SDK has a folder in `interop/` with its pins and two programs. The client gets two fresh servers: an
//! open one, and one with a key for what only callers with a key are given. The server is called by `interop/callers`.
//! interop/README.md says what is covered.

mod environment;
mod foreign;
mod results;
mod server;
mod table;

use anyhow::Context;
use std::collections::BTreeSet;
use std::process::Command;

use crate::interop::environment::{Environments, Python};
use crate::interop::foreign::Foreign;
use crate::interop::results::Results;
use crate::interop::server::Server;
use crate::program;
use crate::steps::Counts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the SDKs whose folder name contains this
    #[arg(long)]
    only: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    Python,
    JavaScript,
}

impl Language {
    /// One of the programs of an SDK, in its environment.
    fn program(self, environments: &Environments<'_>, folder: &str, program: &str) -> anyhow::Result<Command> {
        match self {
            Self::Python => environments.python(folder, program),
            Self::JavaScript => environments.javascript(folder, program),
        }
    }
}

/// The folders in `interop/`, which are also the headings of its README.
const SDKS: [(&str, Language); 4] = [
    ("python-0.3.26", Language::Python),
    ("python-1.3.0", Language::Python),
    ("js-0.3.14", Language::JavaScript),
    ("js-1.3.0", Language::JavaScript),
];

/// Where the runners look for the server's key.
const KEY: &str = "INTEROP_KEY";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let counts = both_ways(arguments.only.as_deref())?;
    println!("{} passed, {} failed", counts.passed, counts.failed);
    anyhow::ensure!(counts.failed == 0, "{} checks failed", counts.failed);
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    both_ways(None)
}

fn both_ways(only: Option<&str>) -> anyhow::Result<Counts> {
    let wanted = |folder: &str| only.is_none_or(|part| folder.contains(part));
    let sdks: Vec<_> = SDKS.iter().filter(|(folder, _)| wanted(folder)).collect();
    anyhow::ensure!(!sdks.is_empty(), "no SDK has {:?} in its folder name", only.unwrap_or_default());
    let sources = program::root().join("interop");
    let readme = sources.join("README.md");
    let readme = std::fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let environments = Environments::new(&sources, program::root().join("target/interop"), Python::find()?)?;
    program::run(&mut program::cargo(&["build", "--package", "switchboard", "--package", "callers"]))?;

    let mut total = Counts::default();
    for (folder, language) in &sdks {
        let client = || language.program(&environments, folder, "client");
        let mut ran = Results::default();
        talk(client()?, &Server::open(&environments.log(folder))?, &mut ran)?;
        talk(client()?, &Server::keyed(&environments.log(&format!("{folder}-keyed")))?, &mut ran)?;
        total.add(compared(&readme, folder, &ran));
    }
    for (folder, language) in &sdks {
        let server = language.program(&environments, folder, "server")?;
        let server = Foreign::start(server, &environments.log(&format!("{folder}-server")))?;
        let mut ran = Results::default();
        let mut callers = Command::new(program::root().join("target/debug/callers"));
        let succeeded = program::watch(callers.arg(server.url()), |line| ran.read(line))?;
        ran.end(succeeded);
        total.add(compared(&readme, &format!("{folder} server"), &ran));
    }
    Ok(total)
}

/// The results, and one failure for each difference from the table under this heading.
fn compared(readme: &str, heading: &str, ran: &Results) -> Counts {
    let mut counts = ran.counts();
    for difference in table::differences(&table::tests(readme, heading), ran.names()) {
        println!("not ok {heading}: {difference}");
        counts.failed += 1;
    }
    counts
}

/// Runs the tests of one program that are for this kind of server.
fn talk(mut client: Command, server: &Server, results: &mut Results) -> anyhow::Result<()> {
    match server.key() {
        Some(key) => client.env(KEY, key),
        None => client.env_remove(KEY),
    };
    let succeeded = program::watch(client.arg(server.url()), |line| results.read(line))?;
    results.end(succeeded);
    Ok(())
}

/// The names of tests.
type Names = BTreeSet<String>;
