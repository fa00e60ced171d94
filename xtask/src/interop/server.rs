//! A server for one test program: the debug build, with the demo agents, in a workspace that is removed with it.

use anyhow::Context;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::program;

/// A server that needs longer than this to greet, or to listen, is not going to.
pub(super) const HANG_GUARD: Duration = Duration::from_secs(300);

/// Any free port of this machine.
const ANY_PORT: &str = "127.0.0.1:0";

/// Lets it call webhooks on this machine.
const LOCAL_WEBHOOKS: (&str, &str) = ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");

/// A task that waits is not looked at before long: that it has gone on elsewhere has to be pushed.
const PUSHED: &str = "hub:\n  remotePoll: { first: 10m }\n";

/// Ports that were free a moment before; all of them taken in between is no accident.
const PORTS_TRIED: usize = 5;

pub(crate) struct Server {
    child: Child,
    url: String,
    key: Option<String>,
    _workspace: tempfile::TempDir,
}

/// The part of what `serve` prints as JSON that is of use here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Greeting {
    pub(crate) base_url: String,
}

/// The same of what `keys create` prints.
#[derive(Deserialize)]
struct Created {
    key: Secret,
}

#[derive(Deserialize)]
struct Secret {
    secret: String,
}

impl Server {
    /// One that any caller may call, and that calls webhooks on this machine.
    pub(crate) fn open(log: &Path) -> anyhow::Result<Self> {
        Self::start(tempfile::tempdir()?, None, ANY_PORT, LOCAL_WEBHOOKS, log)
    }

    /// One whose agents are elsewhere, by name and address, and may push to it.
    pub(crate) fn hub(agents: &[(String, String)], log: &Path) -> anyhow::Result<Self> {
        let entries: Vec<String> =
            agents.iter().map(|(name, url)| format!("  - name: {name}\n    url: {url}\n")).collect();
        let mut tried = 0;
        loop {
            let workspace = tempfile::tempdir()?;
            // It has to say where it is before it listens there, and the port may be taken in between.
            let bind = TcpListener::bind(ANY_PORT)?.local_addr()?.to_string();
            std::fs::write(workspace.path().join("agents.yaml"), format!("agents:\n{}", entries.concat()))?;
            let settings = format!("server:\n  publicBaseUrl: http://{bind}\n{PUSHED}");
            std::fs::write(workspace.path().join("switchboard.yaml"), settings)?;
            tried += 1;
            match Self::start(workspace, None, &bind, LOCAL_WEBHOOKS, log) {
                Err(error) if tried == PORTS_TRIED => return Err(error),
                Err(_) => {}
                started => return started,
            }
        }
    }

    /// One that wants its key, and has no webhooks.
    pub(crate) fn keyed(log: &Path) -> anyhow::Result<Self> {
        let workspace = tempfile::tempdir()?;
        let printed = program::output(&mut switchboard(workspace.path(), &["keys", "create"]))?;
        let created: Created = serde_json::from_str(&printed).context("the new key cannot be read")?;
        let setting = ("SWITCHBOARD_WEBHOOKS_ENABLED", "false");
        Self::start(workspace, Some(created.key.secret), ANY_PORT, setting, log)
    }

    /// Starts it. It accepts connections once it has said where.
    fn start(
        workspace: tempfile::TempDir,
        key: Option<String>,
        bind: &str,
        (setting, value): (&str, &str),
        log: &Path,
    ) -> anyhow::Result<Self> {
        let mut child = switchboard(workspace.path(), &["serve", "--bind", bind])
            .env(setting, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(log).with_context(|| format!("cannot create {}", log.display()))?)
            .spawn()
            .context("cannot start target/debug/switchboard")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut server = Self { child, url: String::new(), key, _workspace: workspace };
        server.url =
            greeting(output).with_context(|| format!("the server did not start, see {}", log.display()))?.base_url;
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command of the debug build on this workspace, which answers in JSON.
fn switchboard(workspace: &Path, words: &[&str]) -> Command {
    let mut command = command(words);
    command.arg("--workspace").arg(workspace);
    command
}

/// A command of the debug build, which answers in JSON.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(program::root().join("target/debug/switchboard"));
    // The settings of the user who runs the tests are not for this server.
    for (name, _) in std::env::vars_os() {
        if ["SWITCHBOARD_", "PUSH_NOTIFICATION_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    command.args(["--output", "json"]).args(words);
    command
}

pub(crate) fn greeting(mut output: impl Read + Send + 'static) -> anyhow::Result<Greeting> {
    let (sender, greetings) = mpsc::channel();
    std::thread::spawn(move || {
        let mut values = serde_json::Deserializer::from_reader(&mut output).into_iter::<Greeting>();
        let greeting = values.next();
        // The receiver is gone if the hang guard is over.
        let _ = sender.send(greeting);
        // What it prints later goes nowhere, but must not fail.
        let _ = std::io::copy(&mut output, &mut std::io::sink());
    });
    match greetings.recv_timeout(HANG_GUARD) {
        Ok(Some(greeting)) => greeting.context("its greeting cannot be read"),
        Ok(None) => anyhow::bail!("it ended without a greeting"),
        Err(_) => anyhow::bail!("no greeting within {HANG_GUARD:?}"),
    }
}
