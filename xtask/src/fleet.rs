//! `cargo xtask fleet`: the fleet of `examples/fleet`, started whole. Two of its agents are built with SDKs of other
//! languages, so they are installed with the pins of the interop tests, started on free ports, and served as remote
//! agents by the program itself, whose banner says the rest.

use std::process::Command;

use crate::interop::environment::Environments;
use crate::interop::foreign::Foreign;
use crate::program;
use crate::python::Python;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the server listens
    #[arg(long, default_value = "127.0.0.1:41242")]
    bind: String,
}

/// Ends with the server, and the agents with it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = program::root().join("examples/fleet");
    let sources = program::root().join("interop");
    let environments = Environments::new(&sources, program::root().join("target/interop"), Python::find()?)?;
    program::run(&mut program::cargo(&["build", "--release", "--package", "switchboard"]))?;
    let reviewer = environments.python_program("python-1.3.0", &folder.join("reviewer.py"))?;
    let titler = environments.javascript_program("js-1.3.0", &folder.join("titler.mjs"))?;
    let reviewer = Foreign::start(reviewer, &environments.log("reviewer"))?;
    let titler = Foreign::start(titler, &environments.log("titler"))?;
    println!("reviewer, built with Python's a2a-sdk, runs at {}, process {}", reviewer.url(), reviewer.pid());
    println!("titler, built with @a2a-js/sdk, runs at {}, process {}", titler.url(), titler.pid());
    let data = program::root().join("target/fleet");
    let mut server = Command::new(program::root().join("target/release/switchboard"));
    server.args(["serve", "--bind", &arguments.bind, "--workspace"]).arg(&folder).arg("--data-dir").arg(data);
    program::run(server.env("REVIEWER_URL", reviewer.url()).env("TITLER_URL", titler.url()))
}
