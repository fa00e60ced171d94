//! `switchboard doctor`: whether everything is there that the agents of a workspace need, and how to get what is not.
//!
//! Checks the configuration, every supported program, and every agent that starts one. It makes no network call, needs no
//! server and changes nothing: it runs each program only to ask for its version.

mod account;
mod agent;
mod agent_programs;
mod finding;
mod folder;
mod known_programs;
mod login;
mod probe_runner;
mod program;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use switchboard_host::config::{Problem, Problems};
use switchboard_host::flags::ConfigFlags;
use switchboard_host::printer::Printer;
use tokio::task::JoinSet;

use crate::commands::calling::INTERRUPTED;
use crate::commands::{StatusLine, short};
use agent::AgentReport;
pub(crate) use agent_programs::{ProgramState, look as look_at_programs};
use finding::{Finding, Level};
use known_programs::ProgramReport;
use probe_runner::ProbeRunner;
use report::DoctorReport;
use switchboard_fleet::config::FleetConfig;
use switchboard_fleet::config::agents::Kind;

pub(crate) fn run(flags: &ConfigFlags, printer: Printer) -> Result<(), ExitCode> {
    let fleet = FleetConfig::of(flags);
    let folder = std::path::absolute(&flags.workspace).unwrap_or_else(|_| flags.workspace.clone());
    short(printer, async {
        let probes = ProbeRunner::open().map_err(|error| {
            let next = "check that the folder for temporary files can be written, or set TMPDIR to one that can";
            printer.failure(&format!("no program can be started: {error}"), next)
        })?;
        let report = tokio::select! {
            report = looked_at(&probes, &folder, fleet, printer) => Some(report),
            _ = tokio::signal::ctrl_c() => None,
        };
        probes.close().await;
        let report = report.ok_or_else(|| ExitCode::from(INTERRUPTED))?;
        report.print(printer);
        if report.count(Level::Problem) > 0 { Err(ExitCode::FAILURE) } else { Ok(()) }
    })?
}

enum Part {
    Program(usize, ProgramReport),
    Agent(usize, AgentReport),
}

async fn looked_at(
    probes: &ProbeRunner,
    folder: &Path,
    fleet: Result<FleetConfig, Problems>,
    printer: Printer,
) -> DoctorReport {
    let configuration = configuration(&fleet);
    let agents = fleet.map(|fleet| fleet.agents).unwrap_or_default();
    let mut parts: JoinSet<Part> = JoinSet::new();
    // A wrong workspace folder is reported, and the programs are checked nonetheless.
    let program_cwd = if folder.is_dir() { folder.to_owned() } else { PathBuf::from("/") };
    for (index, worker) in known_programs::all().into_iter().enumerate() {
        let (probes, program_cwd) = (probes.clone(), program_cwd.clone());
        parts.spawn(async move { Part::Program(index, known_programs::look(&probes, &program_cwd, worker).await) });
    }
    for (index, agent) in agents.into_iter().enumerate() {
        let Kind::Cli(cli) = agent.kind else { continue };
        let (probes, name) = (probes.clone(), agent.name.to_string());
        parts.spawn(async move { Part::Agent(index, agent::look(&probes, name, &cli).await) });
    }
    let mut progress = StatusLine::new(printer);
    let (mut programs, mut agents) = (BTreeMap::new(), BTreeMap::new());
    loop {
        progress.draw(&format!("looking at programs and agents, {} left", parts.len()));
        match parts.join_next().await {
            None => break,
            Some(Ok(Part::Program(index, report))) => drop(programs.insert(index, report)),
            Some(Ok(Part::Agent(index, report))) => drop(agents.insert(index, report)),
            // A check fails to join only by a panic, and dropping its report would read as success.
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    drop(progress);
    let (programs, agents) = (programs.into_values().collect(), agents.into_values().collect());
    DoctorReport { folder: folder.to_owned(), configuration, programs, agents }
}

/// The findings of `config check`.
fn configuration(fleet: &Result<FleetConfig, Problems>) -> Vec<Finding> {
    let workspace = match fleet {
        Ok(fleet) => &fleet.workspace,
        Err(problems) => {
            let finding = |problem: &Problem| {
                let key = if problem.key.is_empty() { String::new() } else { format!("{}: ", problem.key) };
                Finding::problem(format!("{}: {key}{}", problem.origin, problem.wrong), &problem.right)
            };
            return problems.0.iter().map(finding).collect();
        }
    };
    let good = match workspace.files.as_slice() {
        [] => Finding::new(Level::Missing, "there are no configuration files, so the demo agents are served", ""),
        files => Finding::ok(format!("{} can be read and nothing in it is wrong", files.join(", "))),
    };
    let warnings = workspace.warnings.iter().map(|warning| Finding::worded(Level::Warning, warning));
    std::iter::once(good).chain(warnings).collect()
}
