//! Every supported program, whether or not an agent uses it.

use std::path::Path;

use serde::Serialize;
use switchboard_cli_agents::adapters::{ClaudeCode, Codex, Cursor, Gemini, Opencode};
use switchboard_cli_agents::{ProgramError, Settings, Worker};

use super::finding::{Finding, Level};
use super::login::Login;
use super::probe_runner::ProbeRunner;
use super::program::{Program, not_executable};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProgramReport {
    /// What `cli` calls it.
    pub(super) name: String,
    title: String,
    installed: bool,
    path: Option<String>,
    version: Option<String>,
    /// Nothing if it is not installed, or if any version will do.
    tested: Option<bool>,
    starts: bool,
    login: Option<Login>,
    pub(super) findings: Vec<Finding>,
}

pub(super) fn all() -> [Worker; 5] {
    [Worker::new(ClaudeCode), Worker::new(Codex), Worker::new(Gemini), Worker::new(Opencode), Worker::new(Cursor)]
}

/// Checks one with the default settings of an agent.
pub(super) async fn look(probes: &ProbeRunner, folder: &Path, worker: Worker) -> ProgramReport {
    let about = worker.adapter.about().clone();
    let settings = Settings::new(&about.name, worker.clone(), folder);
    let program = Program::look(probes, &settings, &worker).await;
    let findings = match &program {
        Err(ProgramError::NotExecutable { path }) => vec![not_executable(Level::Warning, path)],
        // No agent may need it; one that does reports it as a problem.
        Err(_) => {
            vec![Finding::new(Level::Missing, "not installed", format!("to install it: {}", about.binary.install))]
        }
        Ok(program) => program.findings(&about.binary, Level::Warning),
    };
    let program = program.ok();
    ProgramReport {
        name: about.name,
        title: about.title,
        installed: program.is_some(),
        path: program.as_ref().map(|program| program.path.display().to_string()),
        starts: program.as_ref().is_some_and(Program::starts),
        version: program.as_ref().and_then(Program::said).map(str::to_owned),
        tested: program.as_ref().and_then(|program| program.is_tested),
        login: program.map(|program| program.login),
        findings,
    }
}
