//! `cargo xtask interop`: the published SDKs as clients of the real server, and their servers called by our client and our
//! commands. Each SDK has a folder in `interop/` with its pins and programs. Its client gets two fresh servers: an open
//! one, and one with a key for what only callers with a key are given. Its server is called by `interop/callers`, and as a
//! remote agent of a hub by the clients of all SDKs, in the pairs of [`matrix`].
//! interop/README.md says how the tests run, the generated interop/RESULTS.md what works.

mod catalogue;
pub(crate) mod environment;
pub(crate) mod foreign;
mod job;
mod matrix;
mod results_page;
pub(crate) mod server;

use anyhow::Context;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::interop::catalogue::Catalogue;
use crate::interop::environment::Environments;
use crate::interop::job::Job;
use crate::interop::matrix::{Extent, Pair};
use crate::program;
use crate::python::Python;
use crate::steps::Counts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the SDKs whose folder name contains this; `hub`: all of them, through the hub
    #[arg(long)]
    only: Option<String>,
    /// Write interop/RESULTS.md from this run instead of comparing the run with it
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    /// Through the hub only as many pairs of client and server as show everything once, as `cargo xtask test` does
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    Python,
    JavaScript,
    Rust,
}

impl Language {
    /// The program of an SDK that calls our server, in its environment, if it has one.
    fn client(self, environments: &Environments<'_>, folder: &str) -> anyhow::Result<Option<Command>> {
        match self {
            Self::Python => environments.python(folder, "client").map(Some),
            Self::JavaScript => environments.javascript(folder, "client").map(Some),
            Self::Rust => Ok(None),
        }
    }

    /// The program of an SDK that calls other SDKs' agents through our server, if it has a client.
    fn hub_client(self, environments: &Environments<'_>, folder: &str) -> anyhow::Result<Option<Command>> {
        match self {
            Self::Python => environments.python(folder, "hub").map(Some),
            Self::JavaScript => environments.javascript(folder, "hub").map(Some),
            Self::Rust => Ok(None),
        }
    }

    /// The program of an SDK that our client calls.
    fn server(self, environments: &Environments<'_>, folder: &str) -> anyhow::Result<Command> {
        match self {
            Self::Python => environments.python(folder, "server"),
            Self::JavaScript => environments.javascript(folder, "server"),
            Self::Rust => environments.rust(folder),
        }
    }
}

/// The folders in `interop/`; what takes longest first.
const SDKS: [(&str, Language); 5] = [
    ("official-0.5.3", Language::Rust),
    ("python-0.3.26", Language::Python),
    ("python-1.3.0", Language::Python),
    ("js-0.3.14", Language::JavaScript),
    ("js-1.3.0", Language::JavaScript),
];

/// What [`Arguments::only`] names instead of a folder, and the end of the programs' names.
const HUB: &str = "hub";

/// How many programs are tested at a time. Most of the time they wait for each other.
const AT_ONCE: usize = 3;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let extent = if arguments.quick { Extent::Covering } else { Extent::Whole };
    let counts = both_ways(arguments.only.as_deref(), extent, arguments.write)?;
    println!("{} passed, {} failed", counts.passed, counts.failed);
    anyhow::ensure!(counts.failed == 0, "{} checks failed", counts.failed);
    Ok(())
}

/// Writes interop/RESULTS.md again with the titles and notes as they are now, and the results that it has.
pub(crate) fn update_page() -> anyhow::Result<()> {
    let path = program::root().join(results_page::PATH);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    write_page(&results_page::parse(&page), &Catalogue::read()?)
}

fn write_page(expected: &results_page::Expected, catalogue: &Catalogue) -> anyhow::Result<()> {
    let path = program::root().join(results_page::PATH);
    std::fs::write(&path, results_page::render(expected, catalogue)?)?;
    println!("wrote {}", path.display());
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    both_ways(None, Extent::Covering, false)
}

fn both_ways(only: Option<&str>, extent: Extent, is_written: bool) -> anyhow::Result<Counts> {
    let wanted = |folder: &str| only.is_none_or(|part| folder.contains(part));
    let sdks: Vec<_> = SDKS.iter().filter(|(folder, _)| wanted(folder)).collect();
    let is_empty = sdks.is_empty() && !wanted(HUB);
    anyhow::ensure!(!is_empty, "no SDK has {:?} in its folder name", only.unwrap_or_default());
    let sources = program::root().join("interop");
    let path = program::root().join(results_page::PATH);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut expected = results_page::parse(&page);
    let catalogue = Catalogue::read()?;
    let environments = Environments::new(&sources, program::root().join("target/interop"), Python::find()?)?;
    program::build_workspace()?;

    let (mut jobs, mut pairs) = (Vec::new(), Vec::new());
    if wanted(HUB) {
        pairs = matrix::pairs(extent, &clients(), &SDKS.map(|(folder, _)| folder), &expected);
        // It takes longest, so it is begun first.
        jobs.push(through_hub(&environments, pairs.clone())?);
        for (folder, language) in SDKS {
            jobs.push(Job::Kill { folder, program: language.server(&environments, folder)? });
        }
    }
    for (folder, language) in sdks {
        for is_keyed in [false, true] {
            if let Some(program) = language.client(&environments, folder)? {
                jobs.push(Job::Client { folder, program, is_keyed });
            }
        }
        jobs.push(Job::Server { folder, program: language.server(&environments, folder)? });
    }
    let results = at_once(jobs, &environments)?;
    let mut total = Counts::default();
    for (heading, results) in &results {
        total.add(results.counts());
        let names = expected.entry(heading.clone()).or_default();
        if is_written {
            *names = catalogue.expected(heading, results.names());
            continue;
        }
        let names = results_page::of_pairs(heading, names, &pairs);
        for difference in results_page::differences(&names, results.names()) {
            println!("not ok {heading}: {difference}");
            total.failed += 1;
        }
    }
    if is_written && total.failed == 0 {
        write_page(&expected, &catalogue)?;
    }
    Ok(total)
}

/// The SDKs whose clients call the others' agents.
fn clients() -> Vec<&'static str> {
    SDKS.iter().filter(|(_, language)| *language != Language::Rust).map(|(folder, _)| *folder).collect()
}

/// Every SDK's client calls every SDK's agent.
fn through_hub(environments: &Environments<'_>, pairs: Vec<Pair>) -> anyhow::Result<Job> {
    let (mut remotes, mut clients) = (Vec::new(), Vec::new());
    for (folder, language) in SDKS {
        remotes.push((folder, language.server(environments, folder)?));
        if let Some(program) = language.hub_client(environments, folder)? {
            clients.push((folder, program));
        }
    }
    Ok(Job::Hub { remotes, clients, pairs })
}

/// Does the jobs, a few at the same time, and returns the results by SDK and part of the page.
fn at_once(jobs: Vec<Job>, environments: &Environments<'_>) -> anyhow::Result<job::ByHeading> {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut done = job::ByHeading::new();
        while let Some(job) = next() {
            job.run(environments, &mut done)?;
        }
        anyhow::Ok(done)
    };
    std::thread::scope(|scope| {
        let workers = [(); AT_ONCE].map(|()| scope.spawn(work));
        let mut all = job::ByHeading::new();
        for worker in workers {
            let done = worker.join().map_err(|_| anyhow::anyhow!("a worker of the interop tests has panicked"))??;
            for (heading, results) in done {
                all.entry(heading).or_default().add(results);
            }
        }
        Ok(all)
    })
}
