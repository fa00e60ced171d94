//! Starts a server for a measurement, with a data directory of its own, and ends it when the measurement is over.

use anyhow::Context;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::Programs;

/// A server that needs longer than this to answer is not going to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Thousands of tasks have begun elsewhere within this time, or will not.
const GAUGE_PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Where the time in user mode stands in `/proc/PID/stat`, counted after the name; that in the kernel follows.
const USER_TIME: usize = 11;
/// The same on every Linux, whatever its timers do.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Plain axum, the ceiling
    Axum,
    /// The official Rust SDK
    Official,
    /// Switchboard with `durability: process`
    Process,
    /// Switchboard with `durability: full`
    Full,
    /// The same agent with `durability: process` on a server without the hub
    #[value(skip)]
    WithoutHub,
    /// The same with a reader of the feed that takes every row and does nothing with it
    #[value(skip)]
    FeedReader,
    /// The binary of `--against` with `durability: process`
    #[value(skip)]
    ProcessBefore,
    /// The binary of `--against` with `durability: full`
    #[value(skip)]
    FullBefore,
}

/// Where server and load run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The server on the first core, the load on the second.
    #[default]
    Pinned,
    /// Both wherever the system puts them.
    Unpinned,
}

impl Placement {
    /// What a command line begins with to run on one core.
    pub(crate) fn command(self, core: &'static str) -> Vec<String> {
        match self {
            Self::Pinned => ["taskset", "-c", core].map(str::to_owned).into(),
            Self::Unpinned => Vec::new(),
        }
    }
}

/// What a measurement needs beyond the defaults.
#[derive(Clone, Copy, Default)]
pub(crate) struct ServerOptions {
    /// Webhooks to loopback are delivered.
    pub(crate) webhooks: bool,
    /// More tasks run at once than the default limits allow.
    pub(crate) many_running: bool,
    pub(crate) placement: Placement,
}

/// How long the official SDK waits for a webhook; its default of 30 s would only make the bench longer.
pub(crate) const OFFICIAL_WEBHOOK_TIMEOUT_MS: u64 = 1000;

impl Kind {
    pub(crate) fn is_switchboard(self) -> bool {
        !matches!(self, Kind::Axum | Kind::Official)
    }

    /// The same server as the other binary runs it; nothing for the peers.
    pub(crate) fn before(self) -> Option<Self> {
        match self {
            Kind::Process => Some(Kind::ProcessBefore),
            Kind::Full => Some(Kind::FullBefore),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Axum => "bare axum",
            Kind::Official => "official Rust SDK",
            Kind::Process => "Switchboard, process",
            Kind::Full => "Switchboard, full",
            Kind::WithoutHub => "without the hub",
            Kind::FeedReader => "with a reader of the feed",
            Kind::ProcessBefore => "before, process",
            Kind::FullBefore => "before, full",
        }
    }

    fn path(self) -> &'static str {
        if self.is_switchboard() { "/a2a/probe" } else { "/a2a" }
    }

    /// The command line; `address` and `directory` may be placeholders for the load generator to fill in.
    pub(crate) fn command_line(
        self,
        programs: &Programs,
        address: &str,
        directory: &str,
        options: ServerOptions,
    ) -> Vec<String> {
        let program = match self {
            Kind::Axum => programs.target.join("bench/release/peer-axum"),
            Kind::Official => programs.target.join("bench/release/peer-official"),
            Kind::Process | Kind::Full => programs.built().join("switchboard"),
            Kind::WithoutHub | Kind::FeedReader => programs.built().join("without-hub"),
            Kind::ProcessBefore | Kind::FullBefore => programs.against.clone().unwrap_or_default(),
        };
        let mut words = options.placement.command("0");
        words.push(program.display().to_string());
        match self {
            Kind::Axum => words.extend(["--bind", address].map(str::to_owned)),
            Kind::Official => {
                words.extend(["--bind", address].map(str::to_owned));
                if options.webhooks {
                    words.extend(["--push-timeout-ms".to_owned(), OFFICIAL_WEBHOOK_TIMEOUT_MS.to_string()]);
                }
            }
            Kind::WithoutHub => words.extend(["--bind", address, "--workspace", directory].map(str::to_owned)),
            Kind::FeedReader => {
                words.extend(["--feed-reader", "--bind", address, "--workspace", directory].map(str::to_owned));
            }
            Kind::Process | Kind::Full | Kind::ProcessBefore | Kind::FullBefore => {
                words.extend(["serve", "--bind", address, "--workspace", directory].map(str::to_owned));
            }
        }
        words
    }

    /// Ours logs every request unless told not to; the peers log nothing.
    pub(crate) fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Process | Kind::WithoutHub | Kind::FeedReader | Kind::ProcessBefore => {
                &[("SWITCHBOARD_STORE_DURABILITY", "process"), ("SWITCHBOARD_LOG_LEVEL", "warn")]
            }
            Kind::Full | Kind::FullBefore => {
                &[("SWITCHBOARD_STORE_DURABILITY", "full"), ("SWITCHBOARD_LOG_LEVEL", "warn")]
            }
            Kind::Axum | Kind::Official => &[],
        }
    }
}

pub(crate) struct Server {
    child: Child,
    kind: Kind,
    address: SocketAddr,
    /// Removed with the server, so that every measurement begins empty.
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts it and waits until it answers.
    pub(crate) fn start(kind: Kind, programs: &Programs, options: ServerOptions) -> anyhow::Result<Self> {
        Self::start_in(tempfile::tempdir_in(programs.scratch())?, kind, programs, options)
    }

    /// Starts one that serves another's agent as a remote one, under the same name.
    pub(crate) fn start_hub(remote: &Self, programs: &Programs, options: ServerOptions) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(programs.scratch())?;
        let entry = format!("agents:\n  - name: probe\n    url: {}\n    maxParallel: 10000\n", remote.url());
        std::fs::write(directory.path().join("agents.yaml"), entry)?;
        Self::start_in(directory, remote.kind, programs, options)
    }

    fn start_in(
        directory: tempfile::TempDir,
        kind: Kind,
        programs: &Programs,
        options: ServerOptions,
    ) -> anyhow::Result<Self> {
        if kind.is_switchboard()
            && let Some(configuration) = configuration(options)
        {
            std::fs::write(directory.path().join("switchboard.yaml"), configuration)?;
        }
        let address = free_address()?;
        let words = kind.command_line(programs, &address.to_string(), &directory.path().display().to_string(), options);
        let (program, arguments) = words.split_first().context("empty command line")?;
        let log = std::fs::File::create(programs.scratch().join(format!("{kind:?}.log")))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(kind.environment().iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", words.join(" ")))?;
        let mut server = Self { child, kind, address, directory };
        server.wait_until_healthy().with_context(|| {
            let log = programs.scratch().join(format!("{kind:?}.log"));
            format!("{} did not start, see {}; `--only axum,official` leaves it out", kind.name(), log.display())
        })?;
        Ok(server)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.address, self.kind.path())
    }

    /// The server's own process: taskset replaces itself with it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The memory that it holds, in MiB.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("it has no resident memory")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }

    /// What all its threads have computed, in seconds, to a hundredth.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        // The name before them may hold spaces.
        let (_, fields) = stat.rsplit_once(')').context("its state cannot be read")?;
        let ticks = fields.split_whitespace().skip(USER_TIME).take(2).map(str::parse::<f64>);
        Ok(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND)
    }

    /// The size of Switchboard's database file, once its write-ahead log is moved into it, which an idle server does.
    pub(crate) fn stored_bytes(&self) -> anyhow::Result<u64> {
        let data = self.directory.path().join(".switchboard");
        let start = Instant::now();
        while std::fs::metadata(data.join("switchboard.db-wal"))?.len() > 0 {
            anyhow::ensure!(start.elapsed() < PATIENCE, "the write-ahead log was not emptied within {PATIENCE:?}");
            std::thread::sleep(PAUSE);
        }
        Ok(std::fs::metadata(data.join("switchboard.db"))?.len())
    }

    /// Waits until a gauge of `/metrics` has come to a value, all its labels together.
    pub(crate) fn wait_for_gauge(&self, name: &str, value: u64) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let metrics = get(self.address, "/metrics")?;
            let of_gauge = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let numbers =
                metrics.lines().filter(of_gauge).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            let found: f64 = numbers.sum();
            if found as u64 == value {
                return Ok(());
            }
            anyhow::ensure!(
                start.elapsed() < GAUGE_PATIENCE,
                "{name} is {found}, not {value}, after {GAUGE_PATIENCE:?}"
            );
            std::thread::sleep(PAUSE);
        }
    }

    fn wait_until_healthy(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while !healthy(self.address) {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("it ended with {status}");
            }
            anyhow::ensure!(start.elapsed() < PATIENCE, "no answer on /healthz within {PATIENCE:?}");
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(options: ServerOptions) -> Option<String> {
    let mut text = String::new();
    if options.webhooks {
        text.push_str("webhooks: { allowedHosts: [\"127.0.0.1\"], allowedCidrs: [\"127.0.0.0/8\"] }\n");
    }
    if options.many_running {
        text.push_str(
            "limits: { runningTasks: 10000, runningPerCaller: 10000, runningPerAgent: 10000, streamsPerCaller: 5000, parkedPerCaller: 100000 }\n",
        );
    }
    (!text.is_empty()).then_some(text)
}

fn free_address() -> anyhow::Result<SocketAddr> {
    // Free again as soon as this listener is dropped.
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn healthy(address: SocketAddr) -> bool {
    get(address, "/healthz").is_ok_and(|answer| answer.get(..12).is_some_and(|start| start.ends_with(" 200")))
}

/// The whole answer to a GET.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
