//! One run over the checks.

use std::time::Instant;

use coding_agents_tests::Installed;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;

use crate::fixture::{self, Step};
use crate::subject::Subject;

/// So many checks at a time: each keeps about one processor busy.
const AT_A_TIME: usize = 2;
/// The same for those that do little but wait, beside the others.
const WAITS_AT_A_TIME: usize = 2;

/// Checks that are done one after the other, and how many of them failed.
type Checks<'a> = LocalBoxFuture<'a, usize>;

pub(crate) struct Run<'a> {
    wanted: Vec<String>,
    /// Those that share a server. They take longest, so they begin first.
    series: Vec<Checks<'a>>,
    checks: Vec<Checks<'a>>,
    waits: Vec<Checks<'a>>,
}

impl<'a> Run<'a> {
    /// All checks, or only those with one of these in their name.
    pub(crate) fn new(wanted: Vec<String>) -> Self {
        Self { wanted, series: Vec::new(), checks: Vec::new(), waits: Vec::new() }
    }

    /// Checks of one subject that need nothing unusual and share a server.
    pub(crate) fn series(&mut self, installed: &'a Installed, subject: &'a Subject, mut steps: Vec<(String, Step)>) {
        steps.retain(|(name, _)| self.is_wanted(name));
        if !steps.is_empty() {
            self.series.push(Box::pin(fixture::in_turn(installed, subject, steps)));
        }
    }

    /// One more check, unless others are wanted.
    pub(crate) fn check(&mut self, name: String, check: impl Future<Output = anyhow::Result<()>> + 'a) {
        if self.is_wanted(&name) {
            self.checks.push(Box::pin(one(name, check)));
        }
    }

    /// One more that does little but wait.
    pub(crate) fn wait(&mut self, name: String, check: impl Future<Output = anyhow::Result<()>> + 'a) {
        if self.is_wanted(&name) {
            self.waits.push(Box::pin(one(name, check)));
        }
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|part| name.contains(part))
    }

    /// Runs them all and says how each ended; how many failed.
    pub(crate) async fn work(self) -> anyhow::Result<usize> {
        let Self { wanted, mut series, checks, waits } = self;
        series.extend(checks);
        anyhow::ensure!(!series.is_empty() || !waits.is_empty(), "no check has {wanted:?} in its name");
        let (failed, failed_waits) = tokio::join!(all(series, AT_A_TIME), all(waits, WAITS_AT_A_TIME));
        Ok(failed + failed_waits)
    }
}

/// Runs checks, so many at a time; how many failed.
async fn all(checks: Vec<Checks<'_>>, at_a_time: usize) -> usize {
    let outcomes = futures_util::stream::iter(checks).buffer_unordered(at_a_time);
    outcomes.fold(0, async |sum, failed| sum + failed).await
}

/// Runs a check and says how it ended; 1 if it failed.
pub(crate) async fn one(name: String, check: impl Future<Output = anyhow::Result<()>>) -> usize {
    let begun = Instant::now();
    let checked = check.await;
    match &checked {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            let error = format!("{error:#}");
            println!("not ok {name}: {}", error.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    println!("   {:.1} s", begun.elapsed().as_secs_f64());
    usize::from(checked.is_err())
}
