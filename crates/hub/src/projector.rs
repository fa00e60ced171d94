//! The projector: the one reader of the log with a durable cursor. What follows from a page (health sums, alerts, jobs) is
//! written with the cursor that says the page was read, so each event counts once, whatever process reads it.

mod agent_facts;
mod drift;
mod families;
mod fold;
mod observers;
mod panics;
mod state;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{earlier, later};
use switchboard_engine::ids::{Fence, TaskKey};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedStart, JournalLine};
use switchboard_engine::store::hub::{Advance, CONSUMER_STATE_BYTES, ConsumerRow, HealthStep};
use switchboard_engine::{Error, FeedItem, FeedReader};

use self::fold::Page;
pub use self::observers::EndedTask;
use self::panics::Panics;
pub(crate) use self::panics::ROW_PASSED;
pub(crate) use self::state::{Failure, ProjectorState};
use crate::alerts;
use crate::health::{KEPT, Sums};
use crate::hub::HubState;
use crate::inbox::{AnsweredQuestion, InboxWatch, Passed};
use crate::metric_definitions as metric;

/// The name of its row.
pub(crate) const CONSUMER: &str = "projector";
/// Rows of a page; a longer one is written at once.
const PAGE_ROWS: usize = 16_384;
/// The same by lines of the journal, each of which may have 64 KiB: no transaction is long.
const PAGE_LINES: usize = 64;
/// The same by jobs: many routes may be about one row.
const PAGE_JOBS: usize = 4_096;
/// How long commits gather before they are read: longer than one commit takes, and so short that their rows are still in the
/// processor's cache. With ten times as much, messages lost another 5 % of their rate to the projector.
const GATHER: Duration = Duration::from_millis(1);
/// Rows that come while a page gathers on a busy server.
const FAR_BEHIND: i64 = 1_024;
/// How often windows are looked at while nothing happens.
const IDLE: Duration = Duration::from_secs(30);
/// The wait before a page is written again that the store has refused, or read again that it could not read.
const RETRY: Duration = Duration::from_secs(1);
/// How often old sums are deleted.
const EVICTION_PERIOD: Duration = Duration::from_secs(60 * 60);
/// How many sums are deleted at once, so that no transaction is long.
const EVICTION_STEP: usize = 1_000;

pub(crate) struct Projector {
    hub: Arc<HubState>,
    reader: FeedReader,
    /// Where the first page begins that was not written.
    unwritten: FeedStart,
    fence: Fence,
    /// As of the last page that was written.
    state: ProjectorState,
    /// What happened before this time was read and written.
    read_until: Timestamp,
    /// Rows cannot be read now.
    is_failing: bool,
    /// Sums since this time are in memory.
    since: Timestamp,
    flush: Duration,
    /// When old sums are deleted next.
    evict_at: Timestamp,
    panics: Panics,
    inbox: InboxWatch,
}

/// Why reading has stopped.
enum Stopped {
    /// A read has failed. Nothing of its page was written, so it can be read again.
    Unreadable(Error),
    /// What it has made of a page is a bug. The page can be read again all the same.
    Panicked,
    /// Another process has taken over, or the store is closed.
    Unwritable(StoreError),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

impl Projector {
    /// Takes the consumer for this process, and reads on where the last one has stopped.
    pub(crate) async fn open(hub: &Arc<HubState>) -> Result<Self, Error> {
        let store = &hub.parts.store;
        let ConsumerRow { fence, cursor, state } = store.take_consumer(CONSUMER).await?;
        let now = hub.parts.clock.now();
        let since = earlier(now, KEPT);
        let mut sums = Sums::default();
        for step in [HealthStep::Minute, HealthStep::Hour] {
            store.health(step, since).await?.iter().for_each(|stored| sums.load(stored));
        }
        hub.registry.signals.set_tracks(sums.tracks(now));
        *hub.health.write() = sums;
        let state = ProjectorState::read(&state);
        hub.alerts.write().clone_from(&state.alerts);
        hub.experiments.committed(&state.experiments, &hub.registry.signals);
        hub.consumers.report(CONSUMER, Duration::ZERO);
        let unwritten = cursor.map_or(FeedStart::Oldest, FeedStart::After);
        let reader = hub.engine.feed(unwritten).await?;
        let flush = hub.parts.config.hub.projector.flush.duration();
        if let Some(cursor) = cursor {
            hub.registry.projected(cursor.position.row);
        }
        Ok(Self {
            hub: Arc::clone(hub),
            reader,
            unwritten,
            fence,
            state,
            read_until: now,
            is_failing: false,
            since,
            flush,
            evict_at: now,
            panics: Panics::default(),
            inbox: InboxWatch::default(),
        })
    }

    /// Reads and writes until the kernel has drained, or another process has taken over.
    pub(crate) async fn run(mut self) {
        let drained = self.hub.engine.drained().clone();
        let mut is_first = true;
        loop {
            let stopped = match AssertUnwindSafe(self.attempt(is_first)).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(stopped)) => stopped,
                Err(_) => Stopped::Panicked,
            };
            if drained.is_cancelled() {
                return;
            }
            match stopped {
                Stopped::Unreadable(error) => {
                    tracing::warn!(%error, "the projector could not read a page, and tries again");
                }
                Stopped::Panicked => {
                    self.panics.count();
                    tracing::error!("the projector has panicked over a page, and tries again");
                }
                Stopped::Unwritable(error) => return self.stand_still(&error).await,
            }
            self.is_failing = true;
            is_first = false;
            tokio::select! {
                () = self.hub.parts.clock.sleep(RETRY) => {}
                () = drained.cancelled() => return,
            }
        }
    }

    /// Reads and writes until something is in the way.
    async fn attempt(&mut self, is_first: bool) -> Result<(), Stopped> {
        if is_first {
            return self.read_pages().await;
        }
        // Alerts go on meanwhile, and one of them says how far behind it is.
        self.write(Page::default()).await.map_err(Stopped::Unwritable)?;
        self.read_again().await
    }

    /// Reads no more. Where no other process does, the lag grows from here on, so that it shows from outside.
    async fn stand_still(&self, error: &StoreError) {
        tracing::error!(%error, "the projector ends: health, alerts and jobs stand still");
        let (clock, drained) = (&self.hub.parts.clock, self.hub.engine.drained());
        if matches!(error, StoreError::ConsumerTaken(_)) {
            return self.hub.consumers.release(CONSUMER);
        }
        while !drained.is_cancelled() {
            self.hub.consumers.report(CONSUMER, elapsed(self.read_until, clock.now()));
            tokio::select! {
                () = clock.sleep(IDLE) => {}
                () = drained.cancelled() => {}
            }
        }
    }

    /// Reads what was not written once more.
    async fn read_again(&mut self) -> Result<(), Stopped> {
        self.reader = self.hub.engine.feed(self.unwritten).await?;
        self.read_pages().await
    }

    async fn read_pages(&mut self) -> Result<(), Stopped> {
        let (clock, drained) = (Arc::clone(&self.hub.parts.clock), self.hub.engine.drained().clone());
        loop {
            let mut page = Page::default();
            let idle = if self.inbox.has_more() { RETRY } else { IDLE };
            let mut due = later(clock.now(), idle);
            let mut is_over = false;
            while page.rows < PAGE_ROWS && page.journal.len() < PAGE_LINES && page.jobs.len() < PAGE_JOBS {
                let Some(item) = self.reader.next_taken() else {
                    // A page that is due is written before more is read; until then a few commits are read together, since
                    // each wake-up is at the cost of the turns that commit.
                    if page.rows > 0 {
                        if clock.now() >= due {
                            break;
                        }
                        if !self.is_far_behind() {
                            tokio::select! {
                                () = clock.sleep(GATHER) => {}
                                () = drained.cancelled() => {}
                            }
                        }
                    }
                    let more = tokio::select! {
                        biased;
                        more = self.reader.take_more() => more?,
                        () = clock.sleep_until(due) => break,
                    };
                    if !more {
                        is_over = true;
                        break;
                    }
                    continue;
                };
                if page.rows == 0 {
                    due = due.min(later(clock.now(), self.flush));
                }
                page.rows += 1;
                if let FeedItem::Row { row, after } = item {
                    self.fold_or_pass(&mut page, &row, after).await?;
                }
            }
            // Reading again after a failure begins behind the last page, so a page is read whole or not at all.
            page.cursor = (page.rows > 0).then(|| self.reader.cursor());
            let owed = page.families.jobs(&*self.hub.parts.store, clock.now()).await;
            page.jobs.extend(owed.map_err(Error::from)?);
            self.is_failing = false;
            self.write(page).await.map_err(Stopped::Unwritable)?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// Writes a page and what follows from it; only then does memory follow. While the store refuses, alerts are decided
    /// anew each time.
    async fn write(&mut self, page: Page) -> Result<(), StoreError> {
        let (store, clock) = (Arc::clone(&self.hub.parts.store), Arc::clone(&self.hub.parts.clock));
        let mut sums = self.hub.health.read().clone();
        let changed = page.tally.onto(&sums, self.hub.parts.config.hub.health.callers.get());
        let health = changed.stored();
        sums.insert(changed);
        let passed = self.look_at_inbox().await;
        let (mut is_refused, mut longest_line, mut is_told) = (false, usize::MAX, true);
        let state = loop {
            let now = clock.now();
            let mut state = self.state.clone();
            let mut journal = self.follow(&mut state, &page, &passed, &sums, now, is_refused);
            journal.retain(|line| fits(line, longest_line, is_told));
            is_told = true;
            let written = Bytes::from(state.fitted(CONSUMER_STATE_BYTES));
            if page.cursor.is_none() && state == self.state {
                break state;
            }
            let advance = Advance {
                consumer: CONSUMER.to_owned(),
                fence: self.fence,
                cursor: page.cursor,
                state: written,
                health: health.clone(),
                jobs: page.jobs.clone(),
                journal,
            };
            let error = match store.advance(advance).await {
                Ok(is_new) => {
                    if is_new {
                        self.hub.routes.committed(&page.hits);
                        page.answered.iter().for_each(AnsweredQuestion::count);
                    }
                    break state;
                }
                Err(error @ (StoreError::ConsumerTaken(_) | StoreError::Closed)) => return Err(error),
                // The same page would be refused for ever, and all that follows from it is worth more than a line.
                Err(StoreError::TooLarge { max, .. }) if max < longest_line => {
                    (longest_line, is_told) = (max, false);
                    continue;
                }
                Err(error) => error,
            };
            tracing::warn!(%error, "the projector could not write a page, and tries again");
            is_refused = true;
            self.show(&state);
            tokio::select! {
                () = clock.sleep(RETRY) => {}
                () = self.hub.engine.drained().cancelled() => return Err(error),
            }
        };
        let now = clock.now();
        if !self.is_failing {
            self.read_until = if self.is_behind() { page.last_at.unwrap_or(self.read_until) } else { now };
        }
        sums.prune(now);
        self.since = self.since.max(earlier(now, KEPT));
        self.hub.registry.signals.set_tracks(sums.tracks(now));
        *self.hub.health.write() = sums;
        self.show(&state);
        *self.hub.failures.write() = state.failures.clone();
        if state.experiments != self.state.experiments {
            self.hub.experiments.committed(&state.experiments, &self.hub.registry.signals);
        }
        self.state = state;
        if let Some(cursor) = page.cursor {
            self.unwritten = FeedStart::After(cursor);
            self.panics.forget(cursor.position.row);
            self.hub.registry.projected(cursor.position.row);
        }
        self.evict(now).await;
        Ok(())
    }

    /// What follows from a page: the state that is kept from then on, and lines of the journal.
    fn follow(
        &self,
        state: &mut ProjectorState,
        page: &Page,
        passed: &Passed,
        sums: &Sums,
        now: Timestamp,
        is_refused: bool,
    ) -> Vec<JournalLine> {
        for (agent, failure) in &page.failures {
            state.remember(agent, failure.clone());
        }
        let mut noticed = page.noticed.clone();
        noticed.extend(passed.noticed.iter().cloned());
        state.inbox_until = passed.until.map(|(at, key)| (at, key.0));
        for gone in &noticed {
            if let alerts::Noticed::Gone(agent) = gone {
                state.drift.forget(agent);
            }
        }
        let settings = &self.hub.parts.config.hub.health.alerts;
        let enough = settings.drift_observations.get();
        let drifting = page.observations.iter().filter_map(|observed| state.drift.count(observed, enough));
        noticed.extend(drifting.map(alerts::Noticed::Condition));
        let lag = self.lag(now, page.last_at, is_refused);
        self.hub.consumers.report(CONSUMER, lag);
        let is_behind = self.is_behind();
        // One that is behind has not read all that the registry and the routes know.
        let is_over = |alert: &str, subject: &str| {
            !is_behind
                && match alert {
                    alerts::INBOX_WAITING => !self.inbox.is_waiting(subject),
                    "route_failing" => self.hub.routes.is_well(subject),
                    _ => self.hub.registry.is_over(alert, subject),
                }
        };
        let evaluation =
            alerts::Evaluation { now, settings, sums, lag, drops: &page.drops, noticed: &noticed, is_over: &is_over };
        let mut journal = page.journal.clone();
        journal.extend(passed.lines.iter().cloned());
        journal.extend(self.hub.experiments.count(&mut state.experiments, &page.samples, now));
        journal.extend(alerts::evaluate(&mut state.alerts, &evaluation));
        journal
    }

    /// What the time has done to open questions. What cannot be read now is looked at again with the next page.
    async fn look_at_inbox(&mut self) -> Passed {
        let until = self.state.inbox_until.map(|(at, key)| (at, TaskKey(key)));
        let is_it = |state: &&alerts::AlertState| state.alert == alerts::INBOX_WAITING && (state.firing || state.holds);
        let alerting: Vec<String> =
            self.state.alerts.values().filter(is_it).map(|state| state.subject.clone()).collect();
        let looked = self.inbox.look(&self.hub, until, &alerting).await;
        looked.unwrap_or_else(|error| {
            tracing::warn!(%error, "open questions could not be looked at");
            Passed { until, ..Passed::default() }
        })
    }

    fn show(&self, state: &ProjectorState) {
        self.hub.alerts.write().clone_from(&state.alerts);
        alerts::measure(&state.alerts);
    }

    /// Deletes sums that are older than what is kept.
    async fn evict(&mut self, now: Timestamp) {
        if now < self.evict_at {
            return;
        }
        self.evict_at = later(now, EVICTION_PERIOD);
        let kept = &self.hub.parts.config.hub.health;
        for (step, kept) in [(HealthStep::Minute, kept.minutes), (HealthStep::Hour, kept.hours)] {
            let before = earlier(now, kept.duration().max(KEPT));
            loop {
                match self.hub.parts.store.evict_health(step, before, EVICTION_STEP).await {
                    Ok(count) if count < EVICTION_STEP => break,
                    Ok(_) => {}
                    Err(error) => return tracing::warn!(%error, "old health sums could not be deleted"),
                }
            }
        }
    }

    /// Whether there are rows that it has not read.
    fn is_behind(&self) -> bool {
        *self.hub.parts.store.committed().borrow() > self.reader.cursor().position.row
    }

    /// Whether it reads what was written long ago, and not what is being written.
    fn is_far_behind(&self) -> bool {
        *self.hub.parts.store.committed().borrow() - self.reader.cursor().position.row > FAR_BEHIND
    }

    /// How far behind the newest row it is.
    fn lag(&self, now: Timestamp, last_at: Option<Timestamp>, is_refused: bool) -> Duration {
        let since = match (is_refused || self.is_failing, self.is_behind()) {
            (true, _) => self.read_until,
            (false, true) => last_at.unwrap_or(now),
            (false, false) => now,
        };
        elapsed(since, now)
    }
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0))
}

/// Whether a line is one that the journal takes. One that is not is told and counted once, however often the page that is
/// written without it is tried.
fn fits(line: &JournalLine, longest: usize, is_told: bool) -> bool {
    let bytes = line.payload.len();
    if bytes > longest && !is_told {
        tracing::error!(topic = line.topic, bytes, longest, "a line is too long for the journal, and is left out");
        metrics::counter!(metric::JOURNAL_LINES_LEFT_OUT).increment(1);
    }
    bytes <= longest
}
