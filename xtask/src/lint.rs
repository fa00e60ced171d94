//! `cargo xtask lint`: everything that can be said about the code without running it.

use std::process::Command;

use crate::program;
use crate::steps::{self, Counts, Step};
use crate::tools::CARGO_DENY;

/// Also the opening steps of `cargo xtask test`.
pub(crate) const CHECKS: &[Step] = &[Step { name: "format", run: format }, Step { name: "clippy", run: clippy }];

const MORE: &[Step] =
    &[Step { name: "clippy apart", run: clippy_apart }, Step { name: "dependencies", run: dependencies }];

/// The workspaces that have lock files of their own, apart from `fuzz/`, which another compiler builds.
const APART: [&str; 2] = ["bench", "interop/official-0.5.3"];

pub(crate) fn run() -> anyhow::Result<()> {
    steps::run(CHECKS.iter().chain(MORE))
}

fn format() -> anyhow::Result<Counts> {
    program::run(&mut program::cargo(&["fmt", "--all", "--check"]))?;
    for folder in APART {
        program::run(&mut program::cargo_in(folder, &["fmt", "--all", "--check"]))?;
    }
    Ok(Counts::ONE)
}

fn clippy() -> anyhow::Result<Counts> {
    program::run(&mut program::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Counts::ONE)
}

/// Not with `clippy`, because it builds the peers: a minute or two that only a change to them is worth.
fn clippy_apart() -> anyhow::Result<Counts> {
    for folder in APART {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        program::run(&mut program::cargo_in(folder, &arguments))?;
    }
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
