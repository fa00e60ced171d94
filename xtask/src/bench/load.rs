//! Calls the load generator and reads its one line of JSON.

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::process::Command;

use crate::bench::Programs;
use crate::bench::server::Placement;
use crate::program;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Rate {
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Fill {
    pub(crate) resident_kib: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Subscriptions {
    pub(crate) kib_per_stream: f64,
}

#[derive(Deserialize)]
pub(crate) struct First200 {
    pub(crate) median_ms: f64,
}

/// Runs one mode of the load generator to its end, which its own deadlines bound, on the second core.
pub(crate) fn run<T: DeserializeOwned>(programs: &Programs, mode: &str, options: &[String]) -> anyhow::Result<T> {
    run_placed(programs, Placement::Pinned, mode, options, &[])
}

/// The same on any core, and with variables in the environment for the servers that the load generator starts itself.
pub(crate) fn run_placed<T: DeserializeOwned>(
    programs: &Programs,
    placement: Placement,
    mode: &str,
    options: &[String],
    environment: &[(&str, &str)],
) -> anyhow::Result<T> {
    let mut words = placement.command("1");
    words.push(programs.load().display().to_string());
    let (program, arguments) = words.split_first().context("empty command line")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(mode).arg("--json").args(options).envs(environment.iter().copied());
    let text = program::output(&mut command)?;
    serde_json::from_str(text.trim()).with_context(|| format!("the load generator printed {text:?}"))
}
