//! `torture kill`, `webhooks`, `hub`, `disk`, `programs`, `overhead` and `unread-responses`: see the library. `cargo xtask torture`
//! builds and calls them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a development command talks to the terminal it runs in"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use torture::disk;
use torture::hub;
use torture::kill::{self, Plan};
use torture::programs::{self, overhead, timestamps};
use torture::unread_responses;
use torture::webhooks;

/// So many of many problems tell the story.
const SHOWN: usize = 10;

#[derive(Parser)]
#[command(about = "Tortures the real server")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Kill it under load and compare what it acknowledged with what is there afterwards
    Kill {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// How many times to kill it at most
        #[arg(long, default_value_t = 50)]
        rounds: u64,
        /// Begin no more rounds after so many seconds
        #[arg(long)]
        time_box: Option<u64>,
        /// Decides operations and moments; the moments are as exact as the machine
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Put a proxy in front that acknowledges too early: succeeds only if the loss is found
        #[arg(long)]
        planted: bool,
    },
    /// Kill it while it delivers webhooks to receivers that cannot be relied on, and compare what they received
    Webhooks {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// How many times to kill it at most
        #[arg(long, default_value_t = 20)]
        rounds: u64,
        /// How many tasks with webhooks in all rounds together
        #[arg(long, default_value_t = 1000)]
        tasks: usize,
        /// Make the next round the last after so many seconds
        #[arg(long)]
        time_box: Option<u64>,
        /// Decides operations, moments and what receivers do
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Kill a hub and the servers behind it, and look for tasks that are lost, doubled or left behind
    Hub {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// How many times to kill one of them at most
        #[arg(long, default_value_t = 50)]
        rounds: u64,
        /// Begin no more rounds after so many seconds
        #[arg(long)]
        time_box: Option<u64>,
        /// Decides operations, moments and which one is killed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Let the hub send messages again to an agent that does not recognise them: succeeds only if that is found
        #[arg(long)]
        planted: bool,
        /// A server of another SDK, as JSON, in place of the hub's own kind
        #[arg(long, conflicts_with = "planted")]
        foreign: Option<String>,
    },
    /// Fill its disk, and make it read-only
    Disk {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// Already in a mount namespace of its own
        #[arg(long, hide = true)]
        inside: bool,
    },
    /// Let command-line agents work, cancel and kill them and the server, and look at what is left of them
    Programs {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// How many tasks at most
        #[arg(long, default_value_t = 200)]
        tasks: u64,
        /// Begin no more rounds of tasks after so many seconds
        #[arg(long)]
        time_box: Option<u64>,
        /// Decides what they do and what is done to them
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Measure how long an event of a command-line agent takes to its caller
    Overhead {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
        /// Print what was measured as JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask for many large responses and read none, and measure what another caller notices
    UnreadResponses {
        /// The server's program
        #[arg(long)]
        binary: PathBuf,
    },
    /// Be a command-line agent that says what time it is
    #[command(hide = true)]
    Speak {
        /// How many times
        #[arg(long)]
        count: u64,
        /// How long to wait before each
        #[arg(long)]
        pause_ms: u64,
    },
}

fn main() -> ExitCode {
    let start = Instant::now();
    let done = match Arguments::parse().command {
        Command::Speak { count, pause_ms } => {
            // What stands on its output is for its server alone.
            let is_told = timestamps::speak(count, Duration::from_millis(pause_ms)).is_ok();
            return if is_told { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Command::Programs { binary, tasks, time_box, seed } => {
            programs(&programs::Plan { binary, tasks, time_box: time_box.map(Duration::from_secs), seed })
        }
        Command::Overhead { binary, json } => overhead(&binary, json),
        Command::UnreadResponses { binary } => unread_responses(&binary),
        Command::Kill { binary, rounds, time_box, seed, planted } => {
            kill(&Plan { binary, rounds, time_box: time_box.map(Duration::from_secs), seed, planted })
        }
        Command::Webhooks { binary, rounds, tasks, time_box, seed } => {
            let (rounds, time_box) = (rounds.max(1), time_box.map(Duration::from_secs));
            webhooks(&webhooks::Plan { binary, rounds, tasks, time_box, seed })
        }
        Command::Hub { binary, rounds, time_box, seed, planted, foreign } => {
            let plan = hub::Plan { binary, rounds, time_box: time_box.map(Duration::from_secs), seed, planted };
            match foreign {
                Some(foreign) => hub_of_foreign(&plan, &foreign),
                None => hub(&plan),
            }
        }
        Command::Disk { binary, inside: false } => disk::in_namespace(&binary),
        Command::Disk { binary, inside: true } => disk::run(&binary).and_then(verdict),
    };
    match done {
        Ok(()) => {
            eprintln!("done in {:.1} s", start.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn kill(plan: &Plan) -> anyhow::Result<()> {
    let outcome = kill::run(plan)?;
    let (rounds, seed) = (plan.rounds, plan.seed);
    println!("{} acknowledgements compared, {} of {rounds} kills, seed {seed}", outcome.acknowledged, outcome.rounds);
    if plan.planted {
        let Some(found) = outcome.problems.first() else {
            anyhow::bail!(
                "answers were acknowledged before they were committed, and the comparison did not notice: seed {seed}"
            );
        };
        println!("the planted loss was found: {found}");
        return Ok(());
    }
    verdict(outcome.problems).map_err(|error| error.context(format!("again with --rounds {rounds} --seed {seed}")))
}

fn webhooks(plan: &webhooks::Plan) -> anyhow::Result<()> {
    let outcome = webhooks::run(plan)?;
    let (rounds, seed, count) = (plan.rounds, plan.seed, outcome.count);
    let webhooks::judge::Tally { events, deliveries, requests, after_acceptance, merged } = count.tally;
    let killed = outcome.rounds;
    println!("{} tasks with {} webhooks over {killed} of {rounds} kills, seed {seed}", count.tasks, count.hooks);
    println!("{events} committed events asked for, told in {deliveries} deliveries ({merged} events merged)");
    let repeated = requests.saturating_sub(deliveries);
    println!(
        "{requests} whole requests received, {repeated} of them repetitions, {after_acceptance} after they had been accepted"
    );
    println!("receivers: {}", outcome.conducts);
    verdict(outcome.problems).map_err(|error| error.context(format!("again with --rounds {rounds} --seed {seed}")))
}

fn hub(plan: &hub::Plan) -> anyhow::Result<()> {
    let outcome = hub::run(plan)?;
    let (rounds, seed) = (plan.rounds, plan.seed);
    print_hub(&outcome, plan);
    if plan.planted {
        let found = outcome.problems.iter().find(|problem| problem.contains("worked on twice"));
        let Some(found) = found else {
            anyhow::bail!(
                "messages were sent again that are not recognised, and the judge did not notice: seed {seed}"
            );
        };
        println!("the planted repetition was found: {found}");
        return Ok(());
    }
    verdict(outcome.problems).map_err(|error| error.context(format!("again with --rounds {rounds} --seed {seed}")))
}

/// Prints `ok NAME` or `not ok NAME: why` for each check, as the interop tests do.
fn hub_of_foreign(plan: &hub::Plan, foreign: &str) -> anyhow::Result<()> {
    let foreign: hub::Foreign = serde_json::from_str(foreign)?;
    let mut outcome = hub::run_foreign(plan, &foreign)?;
    print_hub(&outcome, plan);
    for hub::Check { interface, name, problems } in outcome.checks {
        match problems.first() {
            None => println!("ok {interface}-{name}"),
            Some(first) => println!("not ok {interface}-{name}: {first}"),
        }
        outcome.problems.extend(problems);
    }
    let (rounds, seed) = (plan.rounds, plan.seed);
    verdict(outcome.problems).map_err(|error| error.context(format!("again with --rounds {rounds} --seed {seed}")))
}

fn print_hub(outcome: &hub::Outcome, plan: &hub::Plan) {
    let hub::Outcome { tally, rounds, .. } = outcome;
    println!("{} tasks through a hub, {rounds} of {} kills, seed {}: {tally}", outcome.tasks(), plan.rounds, plan.seed);
}

fn programs(plan: &programs::Plan) -> anyhow::Result<()> {
    let outcome = programs::run(plan)?;
    let (tasks, seed) = (plan.tasks, plan.seed);
    let ended = outcome.tasks;
    println!("{ended} of {tasks} tasks of command-line agents over 2 kills, seed {seed}: {}", outcome.endings);
    for check in &outcome.checks {
        println!("{check}");
    }
    verdict(outcome.problems).map_err(|error| error.context(format!("again with --tasks {tasks} --seed {seed}")))
}

fn overhead(binary: &Path, json: bool) -> anyhow::Result<()> {
    let outcome = overhead::run(binary)?;
    if json {
        println!("{}", serde_json::to_string(&outcome.measured)?);
        // The program that reads the JSON judges by it.
        return Ok(());
    }
    println!("from the moment a program writes an event to the moment its caller has read it:");
    for measured in &outcome.measured {
        println!("{measured}");
    }
    verdict(outcome.problems)
}

fn unread_responses(binary: &Path) -> anyhow::Result<()> {
    let outcome = unread_responses::run(binary)?;
    for measured in &outcome.measured {
        println!("{measured}");
    }
    verdict(outcome.problems)
}

fn verdict(problems: Vec<String>) -> anyhow::Result<()> {
    for problem in problems.iter().take(SHOWN) {
        println!("{problem}");
    }
    anyhow::ensure!(problems.is_empty(), "{} things do not hold", problems.len());
    Ok(())
}
