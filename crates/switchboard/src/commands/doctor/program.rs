//! One program as a child of one agent would find it: where it is, whether it starts, and whether it is logged in.

use std::ffi::OsString;
use std::path::PathBuf;

use switchboard_cli_agents::adapters::{Binary, Launch, cut};
use switchboard_cli_agents::{ProgramError, Settings, Version, Worker, environment, find, is_tested};

use super::finding::{Finding, Level};
use super::login::Login;
use super::probe_runner::ProbeRunner;

/// The most of what a program says of its version that is shown.
const LONGEST: usize = 100;

pub(super) struct Program {
    pub(super) path: PathBuf,
    /// What it says, or why it cannot be used. Nothing if it cannot be asked.
    pub(super) version: Option<Result<Version, String>>,
    /// Whether that version was tested; nothing if that is not known, or any will do.
    pub(super) is_tested: Option<bool>,
    pub(super) login: Login,
}

impl Program {
    /// Finds a worker's program, and asks it for its version.
    pub(super) async fn look(probes: &ProbeRunner, settings: &Settings, worker: &Worker) -> Result<Self, ProgramError> {
        let about = worker.adapter.about();
        let env = child_environment(settings, worker);
        let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let path = find(worker, path, &settings.cwd)?;
        let login = Login::of(&about.binary, &env);
        if about.binary.version_args.is_empty() {
            // Without arguments it would begin to work.
            return Ok(Self { path, version: None, is_tested: None, login });
        }
        let version = probes.version(settings, worker).await.map(|version| match version {
            Version::Said(said) => Version::Said(cut(&said, LONGEST).into_owned()),
            other => other,
        });
        let mut program = Self { path, version: Some(version), is_tested: None, login };
        let said = program.said().filter(|_| !about.binary.tested.is_empty());
        program.is_tested = said.map(|version| is_tested(about, version));
        Ok(program)
    }

    pub(super) fn said(&self) -> Option<&str> {
        match &self.version {
            Some(Ok(Version::Said(said))) => Some(said),
            _ => None,
        }
    }

    /// Whether it was started and ended well.
    pub(super) fn starts(&self) -> bool {
        matches!(self.version, Some(Ok(Version::Said(_) | Version::Silent)))
    }

    /// The findings. A program that does not start has the level `broken`.
    pub(super) fn findings(&self, binary: &Binary, broken: Level) -> Vec<Finding> {
        let path = self.path.display();
        let command = format!("{path} {}", binary.version_args.join(" "));
        let first = match (&self.version, self.is_tested) {
            (None, _) => Finding::ok(format!("{path} is there")),
            (Some(Ok(Version::Silent)), _) if binary.tested.is_empty() => {
                Finding::ok(format!("{path} starts; its version is unknown: it says nothing of it"))
            }
            (Some(Ok(Version::Silent)), _) => {
                let text = format!("{path} starts; its version is unknown: it says nothing of it");
                Finding::warning(text, format!("run {command} to see whether this is the program that is meant"))
            }
            (Some(Ok(Version::NotTaken { how })), _) => {
                let text = format!("{path} is there; its version is unknown: it {how}");
                Finding::warning(text, format!("if its tasks fail, run {command} to see why"))
            }
            (Some(Err(problem)), _) => {
                let text = format!("{path} does not start: {problem}");
                Finding::new(broken, text, format!("run {command} to see why, or install it again: {}", binary.install))
            }
            (Some(Ok(Version::Said(version))), Some(false)) => {
                let tested = binary.tested.iter().map(|tested| format!("{tested}x")).collect::<Vec<_>>().join(" or ");
                let text = format!("{path} starts; its version, {version}, was not tested");
                Finding::warning(text, format!("if it does not work, install a version {tested}"))
            }
            (Some(Ok(Version::Said(version))), Some(true)) => {
                Finding::ok(format!("{path} starts; its version, {version}, was tested"))
            }
            (Some(Ok(Version::Said(version))), None) => Finding::ok(format!("{path} starts; its version is {version}")),
        };
        // A plain command may have no login at all.
        let login = matches!(self.version, Some(Ok(_))).then(|| self.login.finding(&binary.login));
        std::iter::once(first).chain(login).collect()
    }
}

/// A program that lacks only the leave to be run.
pub(super) fn not_executable(level: Level, path: &str) -> Finding {
    Finding::new(level, format!("{path} is there and is not executable"), format!("run chmod +x {path}"))
}

/// The environment of a child of this agent, without the variables of a launch.
pub(super) fn child_environment(settings: &Settings, worker: &Worker) -> Vec<(OsString, OsString)> {
    let (about, launch) = (worker.adapter.about(), Launch::default());
    environment(settings.env.as_deref(), about, &launch, settings.user.as_ref(), |name| std::env::var_os(name))
}
