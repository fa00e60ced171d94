//! From starting a process to its first 200 on /healthz, with an empty directory each time.

use anyhow::Context;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A start that takes longer is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts to connect: fine enough to measure milliseconds, rare enough not to disturb the start.
const PAUSE: Duration = Duration::from_micros(200);

pub(crate) async fn run(command: &[String], runs: u32) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        times.push(once(command).await?);
    }
    Ok(times)
}

async fn once(command: &[String]) -> anyhow::Result<Duration> {
    let directory = tempfile::tempdir()?;
    // The port is free again when the listener is dropped here.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let words: Vec<String> = command
        .iter()
        .map(|word| word.replace("{port}", &port.to_string()))
        .map(|word| word.replace("{directory}", &directory.path().display().to_string()))
        .collect();
    let (program, arguments) = words.split_first().context("no command given")?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut running = Running(child);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    while !healthy(address).await {
        if let Some(status) = running.0.try_wait()? {
            anyhow::bail!("{program} ended with {status} before it answered");
        }
        anyhow::ensure!(start.elapsed() < PATIENCE, "{program} did not answer /healthz within {PATIENCE:?}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(start.elapsed())
}

async fn healthy(address: SocketAddr) -> bool {
    let attempt = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut start = [0u8; 12];
        stream.read_exact(&mut start).await?;
        std::io::Result::Ok(start)
    };
    match tokio::time::timeout(PATIENCE, attempt).await {
        Ok(Ok(start)) => start.ends_with(b" 200"),
        _ => false,
    }
}

/// Ends its process when it goes out of scope, on every way out.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
