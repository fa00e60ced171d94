//! `cargo xtask fuzz`: every decoder against mutations of what real peers sent, on stable and without an external
//! fuzzer. fuzz/README.md says what the targets are and how to run them under cargo-fuzz.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::program;
use crate::steps::Counts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long to try each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Decides the inputs; another one at every call if it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// Only the targets whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Try this file instead, on the targets chosen with --only
    #[arg(long)]
    replay: Option<PathBuf>,
}

/// The test command tries each target for so long, two at a time on two cores.
const TEST_SECONDS: u64 = 8;
const TEST_SEED: u64 = 1;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = build()?;
    let targets = targets(&program, arguments.only.as_deref())?;
    if let Some(file) = &arguments.replay {
        let file = std::path::absolute(file)?;
        for target in &targets {
            program::run(Command::new(&program).args(["replay", target]).arg(&file))?;
        }
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let counts = all(&program, targets, arguments.seconds, arguments.seed.unwrap_or(now))?;
    anyhow::ensure!(counts.failed == 0, "{} targets found something", counts.failed);
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    // Slower than the optimized build, but that would compile the whole tree a second time.
    let program = program::build_workspace()?.join("fuzz");
    let targets = targets(&program, None)?;
    all(&program, targets, TEST_SECONDS, TEST_SEED)
}

/// Findings and records.
fn folder() -> PathBuf {
    program::root().join("target/fuzz")
}

fn build() -> anyhow::Result<PathBuf> {
    program::run(&mut program::cargo(&["build", "--profile", "fuzz", "--package", "switchboard-fuzz"]))?;
    Ok(program::root().join("target/fuzz/fuzz"))
}

fn targets(program: &Path, only: Option<&str>) -> anyhow::Result<Vec<String>> {
    let names = program::output(Command::new(program).arg("list"))?;
    let wanted = |name: &&str| only.is_none_or(|part| name.contains(part));
    let targets: Vec<String> = names.lines().filter(wanted).map(str::to_owned).collect();
    anyhow::ensure!(!targets.is_empty(), "no target has {:?} in its name", only.unwrap_or_default());
    Ok(targets)
}

/// As many targets at a time as there are cores.
fn all(program: &Path, targets: Vec<String>, seconds: u64, seed: u64) -> anyhow::Result<Counts> {
    std::fs::create_dir_all(folder().join("found"))?;
    let waiting = Mutex::new(targets);
    let counts = Mutex::new(Counts::default());
    let work = || {
        loop {
            let Some(target) = waiting.lock().ok().and_then(|mut waiting| waiting.pop()) else { return };
            let passed = one(program, &target, seconds, seed).unwrap_or_else(|error| {
                println!("{target}: {error:#}");
                false
            });
            if let Ok(mut counts) = counts.lock() {
                counts.add(Counts { passed: u64::from(passed), failed: u64::from(!passed) });
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    counts.into_inner().ok().context("a target's thread panicked")
}

/// One target in a process of its own; whatever ends that process is a finding, and its input is kept.
fn one(program: &Path, target: &str, seconds: u64, seed: u64) -> anyhow::Result<bool> {
    let record = folder().join(format!("{target}.record"));
    let mut command = Command::new(program);
    command.args(["run", target, "--seconds", &seconds.to_string(), "--seed", &seed.to_string(), "--record"]);
    let output = command.arg(&record).output().with_context(|| format!("cannot start {}", program.display()))?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    if output.status.success() {
        return Ok(true);
    }
    let mut keep = Command::new(program);
    keep.args(["keep", target, "--record"]).arg(&record).arg("--folder").arg(folder().join("found"));
    let kept = program::output(&mut keep)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(4).collect();
    println!("{target}: {} with seed {seed}\n{}", output.status, said.join("\n"));
    println!("again: cargo xtask fuzz --only {target} --replay {}", kept.trim());
    Ok(false)
}
