//! The real `switchboard serve`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::fixture::HANG_GUARD;

/// The last line of what it says when it is ready.
const READY: &str = "Ctrl-C stops it";

/// A server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) pid: i32,
    /// Where it listens.
    pub(crate) address: String,
}

impl Server {
    /// Starts the server of a workspace on a free port. What it logs is added to a file.
    pub(crate) async fn start(
        workspace: &Path,
        data: &Path,
        log: &Path,
        variables: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program()?);
        command.args(["serve", "--bind", "127.0.0.1:0", "--data-dir"]).arg(data).arg("--workspace").arg(workspace);
        command.env_clear().envs(variables.iter().cloned()).current_dir(workspace);
        let log = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the server")?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).context("the server has ended")?;
        let output = child.stdout.take().context("the server has no output")?;
        let address = tokio::time::timeout(HANG_GUARD, async {
            let mut lines = BufReader::new(output).lines();
            let mut address = None;
            while let Some(line) = lines.next_line().await? {
                address = address.or_else(|| Some(format!("http://{}", line.rsplit_once("://")?.1)));
                if line == READY {
                    // It must not lose whom it speaks to.
                    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                    return address.context("the server does not say where it listens");
                }
            }
            anyhow::bail!("the server ended at once")
        });
        let address = address.await.context("the server is not ready")??;
        Ok(Self { child, pid, address })
    }

    /// What it answers to a GET.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let authority = self.address.trim_start_matches("http://");
        let mut connection = TcpStream::connect(authority).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).with_context(|| format!("GET {path} was answered {answer:?}"))
    }

    /// Kills it as nothing can prevent.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Stops it in order.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_raw(self.pid).context("it has no number")?;
        kill_process(pid, Signal::TERM)?;
        let ended = tokio::time::timeout(HANG_GUARD, self.child.wait()).await;
        let status = ended.context("the server does not stop")??;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

/// The one that is tested.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::var_os("SWITCHBOARD").context(
        "the variable SWITCHBOARD must name the server's program: run `cargo xtask coding-agents`, which sets it",
    )?;
    Ok(program.into())
}
