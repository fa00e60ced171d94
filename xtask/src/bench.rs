//! `cargo xtask bench`: Switchboard beside bare axum and the official Rust SDK, in one run on one machine. Servers
//! are pinned to one core and the load to another; rounds are interleaved and medians reported, because only
//! ratios within a run mean anything.

mod budget;
mod calls;
mod commit_latency;
mod comparison;
mod extras;
mod hub;
mod load;
mod number;
mod page;
mod plan;
mod programs;
mod report;
mod results;
mod rounds;
mod server;
mod webhooks;

use anyhow::Context;
use std::path::PathBuf;

use crate::bench::plan::Plan;
use crate::bench::server::Kind;
use crate::program;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Interleaved rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds per measurement
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// One short round over small stores: shows that everything works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Only these servers
    #[arg(long, value_delimiter = ',', default_values = ["axum", "official", "process", "full"])]
    only: Vec<Kind>,
    /// Only what webhooks add to the latency of their callers
    #[arg(long)]
    webhooks: bool,
    /// Only what the client adds to a call
    #[arg(long, conflicts_with = "webhooks")]
    client: bool,
    /// Only how late the events of command-line agents are
    #[arg(long, conflicts_with_all = ["webhooks", "client"])]
    programs: bool,
    /// Only what a hub in between adds to a call
    #[arg(long, conflicts_with_all = ["webhooks", "client", "programs"])]
    hub: bool,
    /// The profile that Switchboard is built with: release, as users build it, or dist, as it is handed out
    #[arg(long, default_value = "release")]
    profile: String,
    /// Measure the programs as they were built last
    #[arg(long)]
    no_build: bool,
    /// Measure this switchboard binary too, of an earlier commit or another profile, and compare line by line
    #[arg(long, value_name = "BINARY", conflicts_with_all = ["webhooks", "client", "programs", "hub", "write"])]
    against: Option<PathBuf>,
    /// Write the result to docs/performance.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    anyhow::ensure!(cores >= 2, "the bench needs one core for the server and one for the load; there is {cores}");
    let plan = Plan::new(arguments);
    let programs = Programs {
        target: program::root().join("target"),
        profile: arguments.profile.clone(),
        against: arguments.against.clone(),
    };
    if arguments.programs {
        return late_events(arguments, &plan, &programs);
    }
    if !arguments.no_build {
        programs.build(if arguments.client { &[] } else { &plan.kinds })?;
    }
    std::fs::create_dir_all(programs.scratch())?;

    if arguments.webhooks {
        let section = webhooks::run(&plan, &programs)?.section();
        return finish(arguments, &section, |before| page::replace(before, webhooks::HEADING, &section));
    }
    if arguments.client {
        let calls = calls::run(&plan, &programs)?;
        let section = calls.section();
        finish(arguments, &section, |before| page::replace(before, calls::HEADING, &section))?;
        anyhow::ensure!(plan.quick || calls.is_met(), "the client takes longer than its budget allows, see above");
        return Ok(());
    }
    if arguments.hub {
        let hub = hub::run(&plan, &programs)?;
        let section = hub.section();
        finish(arguments, &section, |before| page::replace(before, hub::HEADING, &section))?;
        anyhow::ensure!(plan.quick || hub.is_met(), "the hub adds more than its budget allows, see above");
        return Ok(());
    }
    let mut commit_latency = commit_latency::measure(&programs.scratch())?;
    let mut results = rounds::run(&plan, &programs)?;
    extras::run(&plan, &programs, &mut results);
    if arguments.against.is_some() {
        println!("\n{}", comparison::table(&plan, &results));
        anyhow::ensure!(results.failures.is_empty(), "{} measurements failed, see above", results.failures.len());
        return Ok(());
    }
    // Measured before and after, since a shared disk changes its mind.
    commit_latency = commit_latency.combine(&commit_latency::measure(&programs.scratch())?);

    let mut page = report::page(&plan, &results, &commit_latency);
    match webhooks::run(&plan, &programs) {
        Ok(webhooks) => page = page::replace(&page, webhooks::HEADING, &webhooks.section()),
        Err(error) => results.failures.push(format!("webhooks: {error:#}")),
    }
    match calls::run(&plan, &programs) {
        Ok(calls) => page = page::replace(&page, calls::HEADING, &calls.section()),
        Err(error) => results.failures.push(format!("calls: {error:#}")),
    }
    match hub::run(&plan, &programs) {
        Ok(hub) => page = page::replace(&page, hub::HEADING, &hub.section()),
        Err(error) => results.failures.push(format!("hub: {error:#}")),
    }
    programs::build(&programs)?;
    match programs::run(&plan, &programs) {
        Ok(lateness) => page = page::replace(&page, programs::HEADING, &lateness.section()),
        Err(error) => results.failures.push(format!("command-line agents: {error:#}")),
    }
    finish(arguments, &page, |_| page.clone())?;
    anyhow::ensure!(results.failures.is_empty(), "{} measurements failed, see above", results.failures.len());
    Ok(())
}

fn late_events(arguments: &Arguments, plan: &Plan, programs: &Programs) -> anyhow::Result<()> {
    if !arguments.no_build {
        programs::build(programs)?;
    }
    let section = programs::run(plan, programs)?.section();
    finish(arguments, &section, |before| page::replace(before, programs::HEADING, &section))
}

/// Shows what was found and, if that is wanted, writes it down.
fn finish(arguments: &Arguments, found: &str, page: impl FnOnce(&str) -> String) -> anyhow::Result<()> {
    println!("\n{found}");
    if arguments.write {
        let path = program::root().join("docs/performance.md");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, page(&before)).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// The built programs.
struct Programs {
    target: PathBuf,
    /// Of Switchboard; the load and the peers are always built as releases.
    profile: String,
    /// Another binary of Switchboard, to compare with.
    against: Option<PathBuf>,
}

impl Programs {
    fn load(&self) -> PathBuf {
        self.target.join("bench/release/load")
    }

    fn calls(&self) -> PathBuf {
        self.target.join("bench/release/calls")
    }

    /// Where this workspace's own programs are.
    fn built(&self) -> PathBuf {
        self.target.join(&self.profile)
    }

    /// Where servers keep their data: on the file system whose commit latency is measured.
    fn scratch(&self) -> PathBuf {
        self.target.join("bench/data")
    }

    fn build(&self, kinds: &[Kind]) -> anyhow::Result<()> {
        program::run(&mut program::bench_cargo(&["build", "--release", "--workspace"]))?;
        if kinds.iter().any(|kind| kind.is_switchboard()) {
            let build = ["build", "--profile", &self.profile, "--package", "switchboard", "--package", "without-hub"];
            program::run(program::cargo(&build).env_remove("CARGO_TARGET_DIR"))?;
        }
        Ok(())
    }
}
