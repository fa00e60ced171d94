//! The `HubStore` trait: what consumers of the log keep beside it. Each write is one transaction, so that what a consumer
//! owes because of a row is stored with the cursor that says the row was read.

use bytes::Bytes;
use switchboard_a2a::{TaskState, Timestamp};

use super::StoreFuture;
use super::feed::{FeedCursor, JournalLine};
use crate::ids::{AgentName, CallerId, Fence, TaskKey};

/// The most that a consumer may keep beside its cursor.
pub const CONSUMER_STATE_BYTES: usize = 256 << 10;

/// A reader of all rows with a durable cursor. It has no lease: the process that holds the data directory raises its fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerRow {
    /// Under which it may write.
    pub fence: Fence,
    /// What it has read; nothing before its first page, and for a consumer that reads no rows.
    pub cursor: Option<FeedCursor>,
    /// What it keeps beside the cursor.
    pub state: Bytes,
}

/// A page that a consumer has read, and everything that follows from it.
#[derive(Clone, Debug)]
pub struct Advance {
    pub consumer: String,
    pub fence: Fence,
    /// The end of the page. A page that does not end after the stored cursor was written before, and is not written again.
    /// Absent if only the state changes.
    pub cursor: Option<FeedCursor>,
    /// Replaces what is kept beside the cursor; at most [`CONSUMER_STATE_BYTES`].
    pub state: Bytes,
    pub health: Vec<HealthSum>,
    /// Those whose name is taken are left out. If the one of that name is claimed, its claim holds no longer: it is due again,
    /// since the run may have begun before what the new one is about.
    pub jobs: Vec<NewJob>,
    pub journal: Vec<JournalLine>,
}

/// How much time a sum is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthStep {
    Minute,
    Hour,
}

/// What a sum is over, besides its agent and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthBy {
    All,
    Skill,
    Caller,
}

/// Sums over the same, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSeries {
    pub step: HealthStep,
    pub agent: AgentName,
    pub by: HealthBy,
    /// Of the skill or the caller.
    pub name: String,
}

/// One sum of outcomes; it replaces the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSum {
    pub step: HealthStep,
    /// When its minute or hour begins.
    pub at: Timestamp,
    pub agent: AgentName,
    pub by: HealthBy,
    /// Of the skill or the caller.
    pub name: String,
    pub sum: Bytes,
}

/// Work that is owed at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// There is at most one of a name.
    pub name: String,
    pub kind: String,
    pub run_at: Timestamp,
    pub body: Bytes,
}

/// A job that a node has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    pub job: NewJob,
    /// How often it was claimed, this time included: the proof of the claim.
    pub attempts: u32,
}

/// What becomes of a claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    Done,
    /// Due again, with a new body if there is one.
    Again {
        run_at: Timestamp,
        body: Option<Bytes>,
    },
    /// The same, with lines of the journal in one transaction: what they tell is told once, by the run whose claim holds.
    Told {
        run_at: Timestamp,
        body: Bytes,
        journal: Vec<JournalLine>,
    },
}

/// A definition that was registered at run time: an agent, a schedule, a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationRow {
    pub kind: String,
    pub name: String,
    /// 1, 2, 3 …; also those of a name that was deleted and registered again.
    pub version: u64,
    pub owner: CallerId,
    pub at: Timestamp,
    pub body: Bytes,
}

/// A change of a registration, and what follows from it.
#[derive(Clone, Debug)]
pub struct PutRegistration {
    pub kind: String,
    pub name: String,
    /// The version it replaces; 0 if there is none. Another one is refused with
    /// [`StoreError::VersionConflict`](super::StoreError::VersionConflict).
    pub expected_version: u64,
    pub owner: CallerId,
    pub at: Timestamp,
    /// Absent: it is deleted.
    pub body: Option<Bytes>,
    /// Replaces the one of its name.
    pub job: Option<NewJob>,
    pub journal: Vec<JournalLine>,
}

/// What consumers of the log keep. Implementations are cheap to share and safe to call from any thread.
pub trait HubStore: Send + Sync + 'static {
    /// Takes a consumer for this process: raises its fence, and makes it if there is none. Retention waits for what it has
    /// not read from its first cursor on.
    fn take_consumer(&self, name: &str) -> StoreFuture<ConsumerRow>;

    /// Writes a page; says whether it was new. Refused with
    /// [`StoreError::ConsumerTaken`](super::StoreError::ConsumerTaken) if the fence was raised since.
    fn advance(&self, advance: Advance) -> StoreFuture<bool>;

    /// Deletes a consumer, so that retention does not wait for it any more; says whether there was one.
    fn remove_consumer(&self, name: &str) -> StoreFuture<bool>;

    /// Writes journal lines; says where each of them is.
    fn journal(&self, lines: Vec<JournalLine>) -> StoreFuture<Vec<FeedCursor>>;

    /// Changes a registration and says its version from now on.
    fn put_registration(&self, put: PutRegistration) -> StoreFuture<u64>;

    /// Registrations of a kind by name, after the given one.
    fn registrations(&self, kind: &str, after: &str, max: usize) -> StoreFuture<Vec<RegistrationRow>>;

    /// Claims jobs that are due and that no live node has claimed, the earliest first.
    fn claim_jobs(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<ClaimedJob>>;

    /// Ends a job that this node has claimed; says whether the claim still held.
    fn finish_job(&self, name: &str, attempts: u32, end: JobEnd) -> StoreFuture<bool>;

    /// The sums of a step at or after a time, in their order of time.
    fn health(&self, step: HealthStep, since: Timestamp) -> StoreFuture<Vec<HealthSum>>;

    /// One sum for each time from `since` on that has any, in order, at most `max`: those of an agent, or of one of its skills
    /// or callers.
    fn health_series(&self, series: HealthSeries, since: Timestamp, max: usize)
    -> StoreFuture<Vec<(Timestamp, Bytes)>>;

    /// Those of the tasks that have ended and have children that have not.
    fn ended_with_live_children(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskKey>>;

    /// How many jobs are owed, by kind.
    fn owed_jobs(&self) -> StoreFuture<Vec<(String, u64)>>;

    /// Jobs whose names begin alike, by name, after the given one. Whether they are claimed does not matter: this is for jobs
    /// without a time of their own, which another job works through in their order.
    fn jobs_named(&self, prefix: &str, after: &str, max: usize) -> StoreFuture<Vec<NewJob>>;

    /// How many jobs have names that begin alike.
    fn count_jobs_named(&self, prefix: &str) -> StoreFuture<u64>;

    /// Deletes jobs, claimed or not; says how many there were.
    fn remove_jobs(&self, names: Vec<String>) -> StoreFuture<usize>;

    /// How many tasks there are in each state, hidden ones left out: of one owner if there is one, and of some agents.
    fn count_tasks(
        &self,
        owner: Option<CallerId>,
        agents: Option<Vec<AgentName>>,
    ) -> StoreFuture<Vec<(TaskState, u64)>>;

    /// How many tasks wait for an input that they have asked for since a time.
    fn count_asked_since(&self, since: Timestamp) -> StoreFuture<u64>;

    /// Deletes sums of a step from before a time, the oldest first; says how many.
    fn evict_health(&self, step: HealthStep, before: Timestamp, max: usize) -> StoreFuture<usize>;
}
