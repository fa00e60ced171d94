//! `cargo xtask interop`: the published SDKs of other languages as clients of the real server. Each SDK has a folder in
//! `interop/` with its pins and one test program, which gets two fresh servers: an open one, and one with a key for
//! what only callers with a key are given. interop/README.md says what is covered.

mod environment;
mod results;
mod server;
mod table;

use anyhow::Context;
use std::collections::BTreeSet;
use std::process::Command;

use crate::interop::environment::{Environments, Python};
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
    let counts = clients(arguments.only.as_deref())?;
    println!("{} passed, {} failed", counts.passed, counts.failed);
    anyhow::ensure!(counts.failed == 0, "{} checks failed", counts.failed);
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    clients(None)
}

fn clients(only: Option<&str>) -> anyhow::Result<Counts> {
    let wanted = |folder: &str| only.is_none_or(|part| folder.contains(part));
    let sdks: Vec<_> = SDKS.iter().filter(|(folder, _)| wanted(folder)).collect();
    anyhow::ensure!(!sdks.is_empty(), "no SDK has {:?} in its folder name", only.unwrap_or_default());
    let sources = program::root().join("interop");
    let readme = sources.join("README.md");
    let readme = std::fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let environments = Environments::new(&sources, program::root().join("target/interop"), Python::find()?)?;
    program::run(&mut program::cargo(&["build", "--package", "switchboard"]))?;

    let mut total = Counts::default();
    for (folder, language) in sdks {
        let client = || match language {
            Language::Python => environments.python_client(folder),
            Language::JavaScript => environments.javascript_client(folder),
        };
        let mut ran = Results::default();
        talk(client()?, &Server::open(&environments.log(folder))?, &mut ran)?;
        talk(client()?, &Server::keyed(&environments.log(&format!("{folder}-keyed")))?, &mut ran)?;
        let mut counts = ran.counts();
        for difference in table::differences(&table::tests(&readme, folder), ran.names()) {
            println!("not ok {folder}: {difference}");
            counts.failed += 1;
        }
        total.add(counts);
    }
    Ok(total)
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
