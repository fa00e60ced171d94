//! A server that an SDK provides, for our client to call. It prints its port once it listens, and is gone with this.

use anyhow::Context;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::interop::server::HANG_GUARD;

pub(crate) struct Foreign {
    child: Child,
    url: String,
}

impl Foreign {
    /// Starts a program on a free port.
    pub(crate) fn start(mut program: Command, log: &Path) -> anyhow::Result<Self> {
        let mut child = program
            .arg("0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(log).with_context(|| format!("cannot create {}", log.display()))?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.get_program().display()))?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut server = Self { child, url: String::new() };
        let port = port(output).with_context(|| format!("the server did not start, see {}", log.display()))?;
        server.url = format!("http://127.0.0.1:{port}");
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number on the first line.
fn port(output: impl Read + Send + 'static) -> anyhow::Result<u16> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let read = output.read_line(&mut line).map(|_| line);
        // The receiver is gone if the hang guard is over.
        let _ = sender.send(read);
        // What it prints later goes nowhere, but must not fail.
        let _ = std::io::copy(&mut output, &mut std::io::sink());
    });
    let Ok(line) = lines.recv_timeout(HANG_GUARD) else { anyhow::bail!("no port within {HANG_GUARD:?}") };
    let line = line.context("its output cannot be read")?;
    line.trim().parse().with_context(|| format!("its first line is {:?}, and should be a port", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_port_whatever_follows() -> anyhow::Result<()> {
        assert_eq!(port("41242\nready\n".as_bytes())?, 41242);
        Ok(())
    }

    #[test]
    fn a_server_that_says_something_else_or_nothing_has_not_started() {
        for said in ["Traceback (most recent call last):\n", ""] {
            assert!(port(said.as_bytes()).is_err(), "{said:?}");
        }
    }
}
