//! One run over the checks.

use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;

/// So many checks at a time: each keeps about one processor busy.
const AT_A_TIME: usize = 2;

/// A check and its name.
type Check<'a> = (String, LocalBoxFuture<'a, anyhow::Result<()>>);

pub(crate) struct Run<'a> {
    wanted: Vec<String>,
    checks: Vec<Check<'a>>,
    /// Those that do little but wait, one at a time beside the others.
    waits: Vec<Check<'a>>,
}

impl<'a> Run<'a> {
    /// All checks, or only those with one of these in their name.
    pub(crate) fn new(wanted: Vec<String>) -> Self {
        Self { wanted, checks: Vec::new(), waits: Vec::new() }
    }

    /// One more check, unless others are wanted.
    pub(crate) fn check(&mut self, name: String, check: impl Future<Output = anyhow::Result<()>> + 'a) {
        if self.is_wanted(&name) {
            self.checks.push((name, Box::pin(check)));
        }
    }

    /// One more that does little but wait.
    pub(crate) fn wait(&mut self, name: String, check: impl Future<Output = anyhow::Result<()>> + 'a) {
        if self.is_wanted(&name) {
            self.waits.push((name, Box::pin(check)));
        }
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|part| name.contains(part))
    }

    /// Runs them all and says how each ended; how many failed.
    pub(crate) async fn work(self) -> anyhow::Result<usize> {
        let Self { wanted, checks, waits } = self;
        anyhow::ensure!(!checks.is_empty() || !waits.is_empty(), "no check has {wanted:?} in its name");
        let (failed, failed_waits) = tokio::join!(all(checks, AT_A_TIME), all(waits, 1));
        Ok(failed + failed_waits)
    }
}

/// Runs checks, so many at a time; how many failed.
async fn all(checks: Vec<Check<'_>>, at_a_time: usize) -> usize {
    let outcomes = futures_util::stream::iter(checks.into_iter().map(one)).buffer_unordered(at_a_time);
    outcomes.filter(|has_failed| std::future::ready(*has_failed)).count().await
}

/// Runs a check and says how it ended; whether it failed.
async fn one((name, check): Check<'_>) -> bool {
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
    checked.is_err()
}
