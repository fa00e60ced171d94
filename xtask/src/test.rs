//! `cargo xtask test`: lints and every test, in one command that works on a fresh machine. All steps run even if
//! one fails; the last line says how many checks passed and failed, and a failure names its step.

mod outcome;

use std::process::Command;

use crate::coding_agents;
use crate::docs;
use crate::fleet;
use crate::fuzz;
use crate::interop;
use crate::lint;
use crate::program;
use crate::steps::{self, Counts, Step};
use crate::test::outcome::Outcome;
use crate::torture;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the steps whose name contains this
    #[arg(long)]
    only: Option<String>,
}

/// In the order they run. A new kind of test is one line here.
const STEPS: &[Step] = &[
    Step { name: "build", run: build },
    Step { name: "tests", run: workspace_tests },
    Step { name: "library alone", run: library_tests },
    Step { name: "doc tests", run: doc_tests },
    Step { name: "configuration page", run: docs::check },
    Step { name: "load generator", run: load_tests },
    Step { name: "interop", run: interop::step },
    Step { name: "fleet example", run: fleet::step },
    Step { name: "coding agents", run: coding_agents::step },
    Step { name: "torture", run: torture::step },
    Step { name: "fuzz", run: fuzz::step },
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let wanted = |step: &&Step| arguments.only.as_deref().is_none_or(|part| step.name.contains(part));
    let steps: Vec<&Step> = lint::CHECKS.iter().chain(STEPS).filter(wanted).collect();
    anyhow::ensure!(!steps.is_empty(), "no step has {:?} in its name", arguments.only.as_deref().unwrap_or_default());
    steps::run(steps)
}

/// A step of its own, so that the summary says what is compiling and what is testing.
fn build() -> anyhow::Result<Counts> {
    program::build_workspace()?;
    Ok(Counts::ONE)
}

fn workspace_tests() -> anyhow::Result<Counts> {
    tests_of(&["--workspace"])
}

/// What the author of an agent builds: without the features that the binary switches on for the whole workspace.
fn library_tests() -> anyhow::Result<Counts> {
    tests_of(&["--package", "switchboard-egress", "--package", "switchboard-host", "--package", "hello-agent"])
}

fn tests_of(packages: &[&str]) -> anyhow::Result<Counts> {
    let is_installed = program::succeeds(&mut program::cargo(&["nextest", "--version"]));
    // Not installed: building it would take longer than what it saves.
    let plain: &[&str] = &["test", "--lib", "--bins", "--tests", "--examples"];
    let command = if is_installed { &["nextest", "run"] } else { plain };
    count(program::cargo(&[command, packages, &["--no-fail-fast"]].concat()))
}

fn doc_tests() -> anyhow::Result<Counts> {
    count(program::cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]))
}

fn load_tests() -> anyhow::Result<Counts> {
    count(program::bench_cargo(&["test", "--package", "load"]))
}

/// Runs a test command and adds up what it reports.
fn count(mut command: Command) -> anyhow::Result<Counts> {
    let mut outcome = Outcome::default();
    let succeeded = program::watch(&mut command, |line| outcome.read(line))?;
    Ok(outcome.counts(succeeded))
}
