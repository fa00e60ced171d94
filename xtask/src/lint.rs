//! `cargo xtask lint`: everything that can be said about the code without running it.

use std::process::Command;

use crate::program;
use crate::steps::{self, Counts, Step};
use crate::tools::CARGO_DENY;

/// Also the opening steps of `cargo xtask test`.
pub(crate) const CHECKS: &[Step] = &[Step { name: "format", run: format }, Step { name: "clippy", run: clippy }];

const MORE: &[Step] =
    &[Step { name: "bench clippy", run: bench_clippy }, Step { name: "dependencies", run: dependencies }];

pub(crate) fn run() -> anyhow::Result<()> {
    steps::run(CHECKS.iter().chain(MORE))
}

fn format() -> anyhow::Result<Counts> {
    program::run(&mut program::cargo(&["fmt", "--all", "--check"]))?;
    program::run(&mut program::bench_cargo(&["fmt", "--all", "--check"]))?;
    Ok(Counts::ONE)
}

fn clippy() -> anyhow::Result<Counts> {
    program::run(&mut program::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Counts::ONE)
}

/// Apart from `clippy`, because it builds the peers: a minute or two that only a change in `bench/` is worth.
fn bench_clippy() -> anyhow::Result<Counts> {
    program::run(&mut program::bench_cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Counts::ONE)
}

/// Advisories need a database from the network, so they are a command of their own: see CONTRIBUTING.md.
fn dependencies() -> anyhow::Result<Counts> {
    let deny = CARGO_DENY.ensure()?;
    let mut command = Command::new(deny);
    program::run(
        command.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).current_dir(program::root()),
    )?;
    Ok(Counts::ONE)
}
