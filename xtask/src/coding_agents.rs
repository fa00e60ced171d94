//! `cargo xtask coding-agents`: the server with the real command-line agents, pinned, against a fake model. The work is in
//! the package `coding-agents-tests`; this installs the agents, and builds it and the server.

mod install;

use std::process::Command;

use crate::program;
use crate::results::Results;
use crate::steps::Counts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the checks whose name contains this
    #[arg(long)]
    only: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let counts = checks(arguments.only.as_deref())?;
    println!("{} passed, {} failed", counts.passed, counts.failed);
    anyhow::ensure!(counts.failed == 0, "{} checks failed", counts.failed);
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    checks(None)
}

fn checks(only: Option<&str>) -> anyhow::Result<Counts> {
    let installed = install::install()?;
    let built = program::build_workspace()?;
    let mut command = Command::new(built.join("coding-agents-tests"));
    command.args(only).env("CODING_AGENTS", installed).env("SWITCHBOARD", built.join("switchboard"));
    let mut results = Results::default();
    results.watch(&mut command)?;
    Ok(results.counts())
}
