//! The seeded loop: tries mutations of a target's corpus for some seconds, one target per process, so that whatever
//! goes wrong ends that process only. What was being tried is on disk at that moment: see `record`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use switchboard_fuzz::random::Random;
use switchboard_fuzz::record::Record;
use switchboard_fuzz::targets::{self, Target};
use switchboard_fuzz::{corpus, mutate, record};

/// A hang guard, not a measure of speed: decoders are linear and inputs are small, so one that takes so long never ends, and
/// that is a finding too.
const HANG_GUARD: Duration = Duration::from_secs(300);
/// So many executions pass between two looks at the clock.
const BETWEEN_LOOKS: u64 = 64;

#[derive(Parser)]
#[command(about = "Runs one fuzz target")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the names of all targets
    List,
    /// Try mutations for some seconds
    Run {
        target: String,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Where the input under test is kept
        #[arg(long)]
        record: PathBuf,
    },
    /// Copy what was being tried when a run ended into a folder, and print the path
    Keep {
        target: String,
        #[arg(long)]
        record: PathBuf,
        #[arg(long)]
        folder: PathBuf,
    },
    /// Try one file
    Replay { target: String, file: PathBuf },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::List => {
            targets::ALL.iter().for_each(|target| println!("{}", target.name));
            Ok(())
        }
        Command::Run { target, seconds, seed, record } => {
            find(&target).and_then(|target| run(target, Duration::from_secs(seconds), seed, &record))
        }
        Command::Keep { target, record, folder } => keep(&target, &record, &folder),
        Command::Replay { target, file } => find(&target).and_then(|target| {
            let input = std::fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            (target.run)(&input);
            println!("{}: nothing found in {} bytes", target.name, input.len());
            Ok(())
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn find(name: &str) -> Result<&'static Target, String> {
    let found = targets::ALL.iter().find(|target| target.name == name);
    found.ok_or_else(|| format!("no target {name:?}, `fuzz list` names them"))
}

fn run(target: &Target, time: Duration, seed: u64, record: &Path) -> Result<(), String> {
    let inputs = corpus::load(target.name).map_err(|error| error.to_string())?;
    let said = |error: std::io::Error| format!("cannot write {}: {error}", record.display());
    let mut record = Record::create(record).map_err(said)?;
    watch();
    let mut random = Random::new(seed);
    let start = Instant::now();
    let mut executions = 0u64;
    let mut attempt = |input: &[u8]| -> Result<(), String> {
        record.write(input).map_err(said)?;
        (target.run)(input);
        executions += 1;
        EXECUTIONS.store(executions, Ordering::Relaxed);
        Ok(())
    };
    // What real peers sent comes first and as it is.
    for input in &inputs {
        attempt(input)?;
    }
    while start.elapsed() < time {
        for _ in 0..BETWEEN_LOOKS {
            attempt(&mutate::mutate(&mut random, &inputs))?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:<16} {executions:>9} executions in {seconds:.1} s, seed {seed}", target.name);
    Ok(())
}

fn keep(target: &str, record: &Path, folder: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("cannot keep {}: {error}", record.display());
    let input = record::read(record).map_err(said)?;
    let input = input.ok_or_else(|| format!("{} holds no input", record.display()))?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("{target}-{:016x}", hasher.finish()));
    std::fs::write(&path, &input).map_err(said)?;
    println!("{}", path.display());
    Ok(())
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Ends the process when one input takes too long; its parent then finds that input in the record.
fn watch() {
    std::thread::spawn(|| {
        let mut seen = 0;
        loop {
            std::thread::sleep(HANG_GUARD);
            let now = EXECUTIONS.load(Ordering::Relaxed);
            if now == seen {
                eprintln!("one input takes longer than {HANG_GUARD:?}");
                std::process::exit(3);
            }
            seen = now;
        }
    });
}
