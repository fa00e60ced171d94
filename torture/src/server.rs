//! The real binary as a child process: started on a folder, waited for, killed.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::HANG_GUARD;
use crate::http::Connection;

const PAUSE: Duration = Duration::from_millis(2);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// The program.
    pub binary: PathBuf,
    /// The workspace folder; the data is in it.
    pub workspace: PathBuf,
    /// `process` or `full`.
    pub durability: &'static str,
    /// Where the server's own log goes.
    pub log: PathBuf,
    /// Where it listens; port 0 for any free one.
    pub bind: SocketAddr,
}

/// Any free port of this machine.
pub const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A running server. Dropping it kills it.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl ServerSetup {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .arg("--workspace")
            .arg(&self.workspace)
            .env("SWITCHBOARD_STORE_DURABILITY", self.durability)
            .env("SWITCHBOARD_LOG_LEVEL", "warn")
            // The C library keeps freed memory for each of many arenas, and what is in use cannot be told from that.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::null());
        command
    }

    /// Starts a server and waits until it takes work.
    pub fn start(&self) -> anyhow::Result<Server> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut child = self
            .command(&["serve", "--bind", &self.bind.to_string()])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        let address = greeted(&mut child);
        let Some(address) = address else {
            let ended = child.kill().and_then(|()| child.wait());
            anyhow::bail!("the server did not start ({ended:?}), see {}", self.log.display());
        };
        let mut server = Server { child, address };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Runs the server in the expectation that it refuses to start: its exit code and what it said.
    pub fn refused(&self) -> anyhow::Result<(Option<i32>, String)> {
        let output = self.command(&["serve", "--bind", &self.bind.to_string()]).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// `switchboard keys create`: the secret of a new key.
    pub fn create_key(&self, name: &str, options: &[&str]) -> anyhow::Result<String> {
        let output = self.command(&[&["keys", "create", "-o", "json", "--name", name], options].concat()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "keys create: {said}");
        let created: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(created["key"]["secret"].as_str().context("a key without a secret")?.to_owned())
    }

    /// `switchboard db check`: nothing if all is well, else what it says.
    pub fn check(&self) -> anyhow::Result<Option<String>> {
        let output = self.command(&["db", "check"]).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned()))
    }
}

impl Server {
    /// Ends it with SIGKILL and waits until the system has taken it away.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What `/readyz` says now.
    pub fn ready(&self) -> std::io::Result<(u16, String)> {
        let mut connection = Connection::open(self.address)?;
        let response = connection.send("GET", "/readyz", &[("connection", "close")], "")?;
        Ok((response.status, response.text()?))
    }

    /// Asks until it is ready. There is nothing to be told by, so this asks again and again.
    pub fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let said = self.ready();
            if matches!(said, Ok((200, _))) {
                return Ok(());
            }
            anyhow::ensure!(self.is_alive(), "the server ended instead of getting ready");
            anyhow::ensure!(start.elapsed() < HANG_GUARD, "not ready within {HANG_GUARD:?}: {said:?}");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address from the first line of the greeting. The rest is read and dropped, so that the pipe never fills.
fn greeted(child: &mut Child) -> Option<SocketAddr> {
    let mut output = BufReader::new(child.stdout.take()?);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = output.read_line(&mut line);
        // The receiver is gone if it took too long.
        let _ = sender.send(read.map(|_| line));
        let _ = output.read_to_end(&mut Vec::new());
    });
    let line = receiver.recv_timeout(HANG_GUARD).ok()?.ok()?;
    let (_, address) = line.trim().rsplit_once("http://")?;
    address.parse().ok()
}

/// A folder for one test under the given one.
pub fn folder(scratch: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let folder = scratch.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// The last lines of a log, for a failure that has to be explained.
#[must_use]
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
