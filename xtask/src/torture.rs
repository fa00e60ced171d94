//! `cargo xtask torture`: kill -9 under load, kill -9 with webhooks to flaky receivers, kill -9 of a hub and the servers
//! behind it, planted bugs that must be found, a full and a read-only disk, command-line agents that are canceled and
//! killed, how late their events are, and clients that read none of their responses, all on the real binary. The work is
//! in the package `torture`; this builds it and says how long and how often.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::program;
use crate::steps::Counts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times to kill the server
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Decides operations and moments; another one at every call if it is not given
    #[arg(long)]
    seed: Option<u64>,
}

const TEST_ROUNDS: u64 = 50;
const TEST_SEED: u64 = 1;
/// As many as the promise about webhooks names.
const WEBHOOK_ROUNDS: &str = "20";
const WEBHOOK_TASKS: &str = "1000";
/// Every server of a hub is killed several times.
const HUB_ROUNDS: &str = "20";
/// With each kill of the hub some message is under way.
const PLANTED_HUB_ROUNDS: &str = "6";
/// As many as the promise about command-line agents names.
const PROGRAM_TASKS: &str = "200";
/// In seconds: after so long a test of `cargo xtask test` begins no more rounds. A slow machine does fewer of them.
const TEST_TIME_BOX: &str = "60";
/// Each of these loses something with near certainty; one loss that is found is enough, and is the
/// last round. So they have no time box.
const PLANTED_ROUNDS: u64 = 10;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let counts = all(arguments.rounds, &[], arguments.seed.unwrap_or(now))?;
    anyhow::ensure!(counts.failed == 0, "{} of {} failed", counts.failed, counts.passed + counts.failed);
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    all(TEST_ROUNDS, &["--time-box", TEST_TIME_BOX], TEST_SEED)
}

/// All tests. The disk is looked at once, and delays are measured again only where a measurement was disturbed, so only those
/// with rounds have a time box.
fn all(rounds: u64, time_box: &[&str], seed: u64) -> anyhow::Result<Counts> {
    let programs = program::build_workspace()?;
    let (rounds, seed, planted) = (rounds.to_string(), seed.to_string(), PLANTED_ROUNDS.to_string());
    let mut counts = Counts::default();
    for arguments in [
        &[&["kill", "--rounds", &rounds, "--seed", &seed], time_box].concat()[..],
        &["kill", "--planted", "--rounds", &planted, "--seed", &seed],
        &[&["webhooks", "--rounds", WEBHOOK_ROUNDS, "--tasks", WEBHOOK_TASKS, "--seed", &seed], time_box].concat(),
        &[&["hub", "--rounds", HUB_ROUNDS, "--seed", &seed], time_box].concat(),
        &["hub", "--planted", "--rounds", PLANTED_HUB_ROUNDS, "--seed", &seed],
        &["disk"],
        &[&["programs", "--tasks", PROGRAM_TASKS, "--seed", &seed], time_box].concat(),
        &["overhead"],
        &["unread-responses"],
    ] {
        let mut command = Command::new(programs.join("torture"));
        command.args(arguments).arg("--binary").arg(programs.join("switchboard"));
        match program::run(&mut command) {
            Ok(()) => counts.add(Counts::ONE),
            Err(error) => {
                println!("error: {error:#}");
                counts.add(Counts { passed: 0, failed: 1 });
            }
        }
    }
    Ok(counts)
}
