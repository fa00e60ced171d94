//! `coding-agents-tests [PART OF A NAME]…`: runs the server with the real agents, in homes of their own, against fake
//! models. `cargo xtask coding-agents` installs the agents, builds the server and runs this.
//!
//! Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a check failed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the results are read from standard output")]

mod caller;
mod checks;
mod fixture;
mod processes;
mod run;
mod server;
mod subject;

use std::process::ExitCode;

use coding_agents_tests::Installed;

use crate::checks::Singles;
use crate::run::Run;
use crate::subject::Subject;

#[tokio::main]
async fn main() -> ExitCode {
    match all().await {
        Ok(code) => code,
        Err(error) => {
            // Without the backtrace: it would bury the one line that says what is missing.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn all() -> anyhow::Result<ExitCode> {
    let installed = Installed::from_environment()?;
    let (subjects, singles) = (Subject::all(), Singles::new());
    let mut run = Run::new(std::env::args().skip(1).collect());
    checks::plan(&mut run, &installed, &subjects)?;
    checks::plan_single(&mut run, &installed, &singles)?;
    let failed = run.work().await?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
