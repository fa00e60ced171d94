//! `cargo xtask fleet`: the fleet of `examples/fleet`, started whole. Two of its agents are built with SDKs of other
//! languages, so they are installed with the pins of the interop tests, started on free ports, and served as remote
//! agents by the program itself, whose banner says the rest. [`step`] starts it too and talks to every agent.

mod check;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::interop::environment::Environments;
use crate::interop::foreign::Foreign;
use crate::program;
use crate::python::Python;

pub(crate) use check::step;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the server listens
    #[arg(long, default_value = "127.0.0.1:41242")]
    bind: String,
}

/// The server and the two agents that it serves as remote ones. All end with it.
struct Fleet {
    server: Child,
    reviewer: Foreign,
    titler: Foreign,
}

/// Ends with the server, or with ^C, and the agents with it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    program::run(&mut program::cargo(&["build", "--package", "switchboard"]))?;
    let mut server = Command::new(program::root().join("target/debug/switchboard"));
    server.args(["serve", "--bind", &arguments.bind]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before anything is started, so that nothing is left behind by an early ^C.
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let mut fleet = Fleet::start(server, &program::root().join("target/fleet"))?;
    println!("reviewer, built with Python's a2a-sdk, runs at {}", fleet.reviewer.url());
    println!("titler, built with @a2a-js/sdk, runs at {}", fleet.titler.url());
    println!("^C stops all of them\n");
    let server = Pid::from_child(&fleet.server);
    let waiting = std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        // It may have ended by itself in the same moment.
        let _ = kill_process(server, Signal::TERM);
    });
    let status = fleet.server.wait().context("cannot wait for the server")?;
    anyhow::ensure!(status.success() || waiting.is_finished(), "the server ended with {status}");
    Ok(())
}

impl Fleet {
    /// Starts the agents, then the server with their addresses in its environment. Each is in a process group of its own:
    /// ^C reaches this command alone, which stops the server first, as long as its agents are there to finish.
    fn start(mut server: Command, data: &Path) -> anyhow::Result<Self> {
        let folder = program::root().join("examples/fleet");
        let sources = program::root().join("interop");
        let environments = Environments::new(&sources, program::root().join("target/interop"), Python::find()?)?;
        let mut reviewer = environments.python_program("python-1.3.0", &folder.join("reviewer.py"))?;
        let mut titler = environments.javascript_program("js-1.3.0", &folder.join("titler.mjs"))?;
        reviewer.process_group(0);
        titler.process_group(0);
        let reviewer = Foreign::start(reviewer, &environments.log("reviewer"))?;
        let titler = Foreign::start(titler, &environments.log("titler"))?;
        server.arg("--workspace").arg(&folder).arg("--data-dir").arg(data);
        server.env("REVIEWER_URL", reviewer.url()).env("TITLER_URL", titler.url());
        let server = server.stdin(Stdio::null()).process_group(0).spawn().context("cannot start the server")?;
        Ok(Self { server, reviewer, titler })
    }

    /// Lets the server shut down gracefully, as ^C does.
    fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        kill_process(Pid::from_child(&self.server), Signal::TERM).context("the server has ended before")?;
        self.server.wait().context("cannot wait for the server")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
