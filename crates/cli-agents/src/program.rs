//! Where a program is, and which version of it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::environment;
use super::process::{Child, ChildCommand, Children, Output, OutputLimits};
use super::settings::{Settings, Worker};
use crate::adapters::{About, Exit, Launch};

/// How long a program may take to say its version: some take seconds to start.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

/// Exit codes of `exec-child`, as of shells, if the program could not be executed.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// A program that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not there.
    #[error("{title} is not installed here: {names} is not on the path of this server. To install it: {install}")]
    NotFound { title: String, names: String, install: String },
    /// It is there, and may not be run.
    #[error("{path} is there and is not executable: run chmod +x {path}")]
    NotExecutable { path: String },
    /// The operator named a program that is not there.
    #[error("{path} is not a program that can be started: check `program` or `command` of this agent")]
    NoSuchProgram { path: String },
}

/// The version that a program prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    Said(String),
    /// Nothing, and it ended well: it starts, and does not know the question.
    Silent,
    /// It failed, and its adapter does not promise a version argument.
    NotTaken {
        /// How it ended, as the rest of a sentence that begins with the program.
        how: String,
    },
}

/// Finds a worker's program as its child would: on the path that the child sees, or relative to its folder.
pub fn find(worker: &Worker, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, ProgramError> {
    let about = worker.adapter.about();
    let names: Vec<&Path> = match &worker.program {
        Some(program) => vec![program],
        None => about.binary.names.iter().map(Path::new).collect(),
    };
    let places: Vec<PathBuf> = names.into_iter().flat_map(|name| places(name, path, cwd)).collect();
    if let Some(found) = places.iter().find(|place| is_program(place)) {
        return Ok(found.clone());
    }
    if let Some(file) = places.iter().find(|place| place.is_file()) {
        return Err(ProgramError::NotExecutable { path: file.display().to_string() });
    }
    Err(match &worker.program {
        Some(program) => ProgramError::NoSuchProgram { path: program.display().to_string() },
        None => ProgramError::NotFound {
            title: about.title.clone(),
            names: about.binary.names.join(" or "),
            install: about.binary.install.clone(),
        },
    })
}

/// Where a program may be.
fn places(program: &Path, path: Option<&OsStr>, cwd: &Path) -> Vec<PathBuf> {
    if program.components().count() > 1 {
        return vec![cwd.join(program)];
    }
    let folders = path.into_iter().flat_map(std::env::split_paths);
    folders.map(|folder| cwd.join(folder).join(program)).collect()
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
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    Ok(ChildCommand {
        program: find(worker, path, &settings.cwd)?,
        args: launch.args.iter().map(OsString::from).collect(),
        env,
        cwd: cwd.to_owned(),
        user: settings.user.clone(),
        input: launch.input,
        label,
    })
}

/// The version of a worker's program, or why it cannot be used.
pub async fn version(children: &Children, settings: &Settings, worker: &Worker) -> Result<Version, String> {
    let about = worker.adapter.about();
    let launch = Launch { args: about.binary.version_args.clone(), ..Launch::default() };
    let label = format!("{} --version", about.name);
    let command = command(settings, worker, &launch, &settings.cwd, label).map_err(|error| error.to_string())?;
    let limits = OutputLimits { line: 4 << 10, stderr: 4 << 10, output: 64 << 10 };
    let child = children.spawn(command, limits).await.map_err(|error| error.to_string())?;
    let may_not_know = !worker.adapter.knows_its_version();
    match tokio::time::timeout(VERSION_PATIENCE, first_line(child)).await {
        Ok((Some(said), Exit { code: Some(0), .. })) => Ok(Version::Said(said)),
        Ok((None, Exit { code: Some(0), .. })) => Ok(Version::Silent),
        Ok((_, exit)) if may_not_know && exit.code.is_some_and(|code| !CANNOT_RUN.contains(&code)) => {
            Ok(Version::NotTaken { how: exit.describe() })
        }
        Ok((_, exit)) => Err(format!("it {}", exit.describe())),
        Err(_) if may_not_know => Ok(Version::NotTaken { how: late() }),
        Err(_) => Err(format!("it {}", late())),
    }
}

fn late() -> String {
    format!("did not say its version within {} s", VERSION_PATIENCE.as_secs())
}

/// The first line that is not empty, and how it ended.
async fn first_line(mut child: Child) -> (Option<String>, Exit) {
    let mut said = None;
    loop {
        match child.next().await {
            Output::Line(line) if said.is_none() && !line.trim().is_empty() => said = Some(line.trim().to_owned()),
            Output::Ended(exit) => return (said, exit),
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
