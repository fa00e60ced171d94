//! Where a program is, and which version of it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard_adapters::{About, Exit, Launch};

use super::environment::environment;
use super::process::{Child, ChildCommand, Children, Output, OutputLimits};
use super::settings::{Settings, Worker};

/// How long a program may take to say its version: some take seconds to start.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

/// A program that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not there.
    #[error("{title} is not installed here: {names} is not on the path of this server. To install it: {install}")]
    NotFound {
        /// What people call it.
        title: String,
        /// What was looked for.
        names: String,
        /// How to install it.
        install: String,
    },
    /// The operator named a program that is not there.
    #[error("{path} is not a program that can be started: check `program` or `command` of this agent")]
    NoSuchProgram {
        /// What was named.
        path: String,
    },
}

/// Finds a worker's program as its child would: on the path that the child sees, or relative to its folder.
pub fn find(worker: &Worker, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, ProgramError> {
    let about = worker.adapter.about();
    if let Some(program) = &worker.program {
        let found = look(program, path, cwd);
        return found.ok_or_else(|| ProgramError::NoSuchProgram { path: program.display().to_string() });
    }
    let found = about.binary.names.iter().find_map(|name| look(Path::new(name), path, cwd));
    found.ok_or_else(|| ProgramError::NotFound {
        title: about.title.clone(),
        names: about.binary.names.join(" or "),
        install: about.binary.install.clone(),
    })
}

fn look(program: &Path, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(cwd.join(program)).filter(|program| is_program(program));
    }
    std::env::split_paths(path?).map(|folder| cwd.join(folder).join(program)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A worker's program as a child: found, with what it may see, in a folder.
pub(super) fn command(
    settings: &Settings,
    worker: &Worker,
    launch: &Launch,
    cwd: &Path,
    label: String,
) -> Result<ChildCommand, ProgramError> {
    let read = |name: &str| std::env::var_os(name);
    let env = environment(settings.env.as_deref(), worker.adapter.about(), launch, settings.user.as_ref(), read);
    Ok(ChildCommand {
        program: find(worker, variable(&env, "PATH"), &settings.cwd)?,
        args: launch.args.iter().map(OsString::from).collect(),
        env,
        cwd: cwd.to_owned(),
        user: settings.user.clone(),
        input: launch.input,
        label,
    })
}

/// What a worker's program says of its version, or why it says nothing.
pub async fn version(children: &Children, settings: &Settings, worker: &Worker) -> Result<String, String> {
    let about = worker.adapter.about();
    let launch = Launch { args: about.binary.version_args.clone(), ..Launch::default() };
    let label = format!("{} --version", about.name);
    let command = command(settings, worker, &launch, &settings.cwd, label).map_err(|error| error.to_string())?;
    let limits = OutputLimits { line: 4 << 10, stderr: 4 << 10, output: 64 << 10 };
    let child = children.spawn(command, limits).await.map_err(|error| error.to_string())?;
    match tokio::time::timeout(VERSION_PATIENCE, first_line(child)).await {
        Ok(said) => said,
        Err(_) => Err(format!("it did not say its version within {} s", VERSION_PATIENCE.as_secs())),
    }
}

async fn first_line(mut child: Child) -> Result<String, String> {
    let mut said = None;
    loop {
        match child.next().await {
            Output::Line(line) if said.is_none() && !line.trim().is_empty() => said = Some(line.trim().to_owned()),
            Output::Ended(Exit { code: Some(0), .. }) if said.is_some() => return Ok(said.unwrap_or_default()),
            Output::Ended(exit) => return Err(format!("it {}", exit.describe())),
            _ => {}
        }
    }
}

/// Whether a version that a program printed is one that was tested.
#[must_use]
pub fn is_tested(about: &About, printed: &str) -> bool {
    let tested = &about.binary.tested;
    let numbers = printed.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    tested.is_empty() || numbers.into_iter().any(|number| tested.iter().any(|tested| number.starts_with(tested)))
}

/// A variable among those of a child.
fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}
