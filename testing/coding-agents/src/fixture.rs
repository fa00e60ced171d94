//! The fixture of a check: an agent with a home, a project and a model of its own, and the server that hosts it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agents_tests::{Installed, User, homes};
use fake_model::{FakeModel, Seen};
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use switchboard_a2a::Version;
use tempfile::TempDir;
use url::Url;

use crate::caller::Caller;
use crate::processes::{self, Process};
use crate::run;
use crate::server::Server;
use crate::subject::Subject;

/// A hang guard: what has not happened after so long never will. It says nothing about speed: agents take long to begin,
/// and longer on a busy machine. What models and tools do while a check waits takes far longer.
pub(crate) const HANG_GUARD: Duration = Duration::from_secs(300);
/// A check that hangs must not stop the others. More than for one wait, so that the wait says what it was for.
const CHECK_GUARD: Duration = Duration::from_secs(900);

pub(crate) struct Fixture<'a> {
    pub(crate) model: FakeModel,
    pub(crate) project: PathBuf,
    pub(crate) subject: &'a Subject,
    variables: Vec<(String, String)>,
    server: Option<Server>,
    folder: TempDir,
    /// How often the model was asked before this check.
    asked_before: usize,
}

/// A check that can follow others in the same fixture.
pub(crate) type Step = for<'fixture, 'a> fn(&'fixture mut Fixture<'a>) -> LocalBoxFuture<'fixture, anyhow::Result<()>>;

/// What is not as usual in a fixture, for one check.
#[derive(Default)]
pub(crate) struct Unusual {
    /// Further keys of the agent in `agents.yaml`.
    pub(crate) keys: Value,
    /// Further agents. Each has a folder of its own.
    pub(crate) others: Vec<Value>,
    /// What `switchboard.yaml` says.
    pub(crate) settings: &'static str,
    /// Where the agent finds its model, if not where there is one.
    pub(crate) endpoint: Option<Url>,
    /// Whose the home and the project are, if not ours.
    pub(crate) user: Option<User>,
}

/// Does a check in a fixture of its own, and sees that nothing is left of it.
pub(crate) async fn within(
    installed: &Installed,
    subject: &Subject,
    unusual: Unusual,
    check: impl AsyncFnOnce(&mut Fixture<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut fixture = Fixture::new(installed, subject, unusual)?;
    let checked = async {
        fixture.start().await?;
        check(&mut fixture).await?;
        fixture.leave().await
    };
    let checked = in_time(checked).await;
    checked.with_context(|| fixture.told())
}

/// Does checks one after the other with one server, because each start of it costs a start of the agent for its version.
/// Each finds an empty project and leaves nothing; after one that fails the others begin in a new fixture. How many failed.
pub(crate) async fn in_turn(installed: &Installed, subject: &Subject, steps: Vec<(String, Step)>) -> usize {
    let (mut shared, mut failed) = (None, 0);
    let count = steps.len();
    for (number, (name, step)) in steps.into_iter().enumerate() {
        let is_last = number + 1 == count;
        let check = async {
            let mut fixture = match shared.take() {
                Some(fixture) => fixture,
                None => Fixture::new(installed, subject, Unusual::default())?,
            };
            let checked = in_time(async {
                fixture.prepare().await?;
                step(&mut fixture).await?;
                if is_last { fixture.leave().await } else { fixture.settle().await }
            });
            checked.await.with_context(|| fixture.told())?;
            shared = Some(fixture);
            Ok(())
        };
        failed += run::one(name, check).await;
    }
    failed
}

async fn in_time(check: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let checked = tokio::time::timeout(CHECK_GUARD, check).await;
    checked.with_context(|| format!("it took longer than {CHECK_GUARD:?}")).flatten()
}

impl<'a> Fixture<'a> {
    fn new(installed: &Installed, subject: &'a Subject, unusual: Unusual) -> anyhow::Result<Self> {
        let model = FakeModel::start()?;
        let folder = tempfile::tempdir()?;
        let (home, project) = (folder.path().join("home"), folder.path().join("project"));
        for made in [&home, &project] {
            std::fs::create_dir(made)?;
        }
        let endpoint = unusual.endpoint.as_ref().unwrap_or(model.url());
        let mut variables = subject.agent.prepare(&home, endpoint)?;
        let own = subject.variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables.extend(own);
        let path = match unusual.user {
            Some(_) => installed.copied(subject.agent, &folder.path().join("programs"))?,
            None => installed.path(),
        };
        for (name, value) in [("PATH", path), ("NODE_COMPILE_CACHE", installed.compile_cache().into_os_string())] {
            let value = value.into_string().map_err(|value| anyhow::anyhow!("{value:?} is not text"))?;
            variables.push((name.to_owned(), value));
        }
        if let Some(user) = unusual.user {
            // A user's own home is not ours to choose.
            let config = home.to_str().context("the home is not text")?;
            variables.push(("CLAUDE_CONFIG_DIR".to_owned(), config.to_owned()));
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
            user.own(&home)?;
            user.own(&project)?;
        }
        let mut agent = json!({ "name": "coder", "cwd": "project", "repoLock": false });
        agent["env"] = variables.iter().map(|(name, _)| name.as_str()).collect();
        for keys in [&subject.keys, &unusual.keys] {
            for (key, value) in keys.as_object().into_iter().flatten() {
                agent[key] = value.clone();
            }
        }
        let mut agents = vec![agent];
        for other in unusual.others {
            std::fs::create_dir(folder.path().join(other["cwd"].as_str().context("an agent without a folder")?))?;
            agents.push(other);
        }
        std::fs::write(folder.path().join("agents.yaml"), json!({ "agents": agents }).to_string())?;
        if !unusual.settings.is_empty() {
            std::fs::write(folder.path().join("switchboard.yaml"), unusual.settings)?;
        }
        Ok(Self { model, project, subject, variables, server: None, folder, asked_before: 0 })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server.
    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        let (data, log) = (self.path().join("data"), self.path().join("log"));
        self.server = Some(Server::start(self.path(), &data, &log, &self.variables).await?);
        Ok(())
    }

    /// Makes the fixture as a check expects it: with a server, an empty project, and a model that was asked nothing.
    async fn prepare(&mut self) -> anyhow::Result<()> {
        if self.server.is_none() {
            return self.start().await;
        }
        std::fs::remove_dir_all(&self.project)?;
        std::fs::create_dir(&self.project)?;
        self.asked_before = self.model.requests().len();
        Ok(())
    }

    /// Kills the server, and starts another once nothing of the first is left.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        self.server.take().context("there is no server")?.kill().await?;
        self.start().await?;
        Ok(())
    }

    pub(crate) fn caller(&self) -> anyhow::Result<Caller> {
        self.caller_in(Version::V1)
    }

    pub(crate) fn caller_in(&self, version: Version) -> anyhow::Result<Caller> {
        self.caller_of("coder", version)
    }

    pub(crate) fn caller_of(&self, agent: &str, version: Version) -> anyhow::Result<Caller> {
        Caller::new(&self.server()?.address, agent, version)
    }

    /// What the server answers to a GET.
    pub(crate) async fn api(&self, path: &str) -> anyhow::Result<Value> {
        self.server()?.get(path).await
    }

    fn server(&self) -> anyhow::Result<&Server> {
        self.server.as_ref().context("there is no server")
    }

    /// What runs here besides the server.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let server = self.server.as_ref().map(|server| server.pid);
        let mut found = processes::of(&self.path().join("home"), self.path());
        found.retain(|process| Some(process.pid) != server);
        found
    }

    /// The program that the server has started for a task. At first it also asks every program for its version.
    pub(crate) fn program(&self) -> anyhow::Result<Process> {
        let server = self.server()?.pid;
        let is_program = |process: &Process| process.parent == server && !process.command.contains(" --version");
        self.processes().into_iter().find(is_program).context("the server has started nothing")
    }

    /// Waits until nothing of what the server has started is left, and no request to the model is open.
    pub(crate) async fn quiet(&self) -> anyhow::Result<()> {
        processes::gone(HANG_GUARD, || self.processes()).await?;
        anyhow::ensure!(self.model.wait_until_idle(HANG_GUARD).await, "a request to the model is still open");
        Ok(())
    }

    /// Waits for a file that a tool writes into the project.
    pub(crate) async fn written(&self, name: &str) -> anyhow::Result<()> {
        let until = Instant::now() + HANG_GUARD;
        while !self.project.join(name).exists() {
            anyhow::ensure!(Instant::now() < until, "no tool has written {name}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// A file of the project.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.join(name)).unwrap_or_default().trim_end().to_owned()
    }

    /// What the agent asked its model for the user. An error if it asked anything it should not have.
    pub(crate) fn asked(&self) -> anyhow::Result<Vec<Seen>> {
        let (mut requests, agent) = (self.model.requests(), self.subject.agent);
        requests.drain(..self.asked_before);
        for seen in &requests {
            let is_known = seen.wire == Some(agent.wire()) && seen.key.as_deref() == Some(homes::KEY);
            let is_pinned = seen.is_side || seen.model == agent.model();
            anyhow::ensure!(is_known && is_pinned, "the agent should not have asked {seen:?}");
        }
        Ok(requests.into_iter().filter(|seen| !seen.is_side).collect())
    }

    /// The check is done: it must leave nothing but the server.
    async fn settle(&self) -> anyhow::Result<()> {
        self.quiet().await.context("when all was done")?;
        self.asked().map(drop)
    }

    /// The same after the last check: the server must stop in order, and leave nothing.
    async fn leave(&mut self) -> anyhow::Result<()> {
        self.settle().await?;
        self.server.take().context("there is no server")?.stop().await?;
        processes::gone(Duration::ZERO, || self.processes()).await.context("after the server")?;
        self.asked().map(drop)
    }

    /// What may explain a failure.
    fn told(&self) -> String {
        let log = std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default().join(" | ");
        let asked: Vec<String> =
            self.model.requests().iter().map(|seen| seen.prompt.chars().take(200).collect()).collect();
        format!("[asked {asked:?}; the server's log ends with: {last}]")
    }
}

impl Drop for Fixture<'_> {
    fn drop(&mut self) {
        // Whatever a check that failed has left.
        self.server.take();
        for process in self.processes() {
            let _ = processes::kill(process.pid);
        }
    }
}
