//! A server for one test program: the debug build, with the demo agents, in a workspace that is removed with it.

use anyhow::Context;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::program;

/// A server that needs longer than this to greet is not going to.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    child: Child,
    url: String,
    _workspace: tempfile::TempDir,
}

/// The part of what `serve` prints as JSON that is of use here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Greeting {
    base_url: String,
}

impl Server {
    /// Starts it on a free port. It accepts connections once it has said which.
    pub(crate) fn start(log: &Path) -> anyhow::Result<Self> {
        let workspace = tempfile::tempdir()?;
        let mut command = Command::new(program::root().join("target/debug/switchboard"));
        // The settings of whoever runs the tests are not for this server.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SWITCHBOARD_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["--output", "json", "serve", "--bind", "127.0.0.1:0", "--workspace"])
            .arg(workspace.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(log).with_context(|| format!("cannot create {}", log.display()))?)
            .spawn()
            .context("cannot start target/debug/switchboard")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut server = Self { child, url: String::new(), _workspace: workspace };
        server.url =
            greeting(output).with_context(|| format!("the server did not start, see {}", log.display()))?.base_url;
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn greeting(mut output: impl Read + Send + 'static) -> anyhow::Result<Greeting> {
    let (sender, greetings) = mpsc::channel();
    std::thread::spawn(move || {
        let mut values = serde_json::Deserializer::from_reader(&mut output).into_iter::<Greeting>();
        let greeting = values.next();
        // Nobody waits any more if the patience is over.
        let _ = sender.send(greeting);
        // What it prints later goes nowhere, but must not fail.
        let _ = std::io::copy(&mut output, &mut std::io::sink());
    });
    match greetings.recv_timeout(PATIENCE) {
        Ok(Some(greeting)) => greeting.context("its greeting cannot be read"),
        Ok(None) => anyhow::bail!("it ended without a greeting"),
        Err(_) => anyhow::bail!("no greeting within {PATIENCE:?}"),
    }
}
