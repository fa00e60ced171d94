//! Every development command of Switchboard, in plain Rust so that a checkout and a toolchain are all one needs.
//! `cargo xtask --help` lists them; each has its own file.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development command talks to the terminal it runs in"
)]

mod bench;
mod coding_agents;
mod dist;
mod docs;
mod fleet;
mod fuzz;
mod interop;
mod lint;
mod node;
mod pinned;
mod program;
mod python;
mod results;
mod steps;
mod test;
mod tools;
mod torture;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Development commands of Switchboard")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check formatting and lints, then run every test
    Test(test::Arguments),
    /// Check formatting, lints and the dependency tree
    Lint,
    /// Run the published SDKs of other languages against the server
    Interop(interop::Arguments),
    /// Start the fleet of examples/fleet: four agents, two of them built with other SDKs
    Fleet(fleet::Arguments),
    /// Run the real command-line agents against a fake model
    CodingAgents(coding_agents::Arguments),
    /// Try every decoder on mutations of what real peers sent
    Fuzz(fuzz::Arguments),
    /// Kill the server under load, fill its disk, and look for anything lost
    Torture(torture::Arguments),
    /// Write docs/configuration.md from the program's own schema, and interop/RESULTS.md with its current notes
    Docs,
    /// Build the release archive and its checksum under target/dist
    Dist,
    /// Measure against bare axum and the official Rust SDK
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Lint => lint::run(),
        Command::Interop(arguments) => interop::run(&arguments),
        Command::Fleet(arguments) => fleet::run(&arguments),
        Command::CodingAgents(arguments) => coding_agents::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Torture(arguments) => torture::run(&arguments),
        Command::Docs => docs::run(),
        Command::Dist => dist::run(),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace: it would bury the one line that says which step failed.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
