//! Every limit and wait of the kernel, with its default. The configuration file spells them the same way.

use std::time::Duration;

use switchboard_a2a::extension::Emit;

use crate::delegation::{DelegationLimits, DelegationScope};

/// The kernel's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Turns that run at the same time.
    pub running_tasks: usize,
    /// Of these, for one caller.
    pub running_per_caller: usize,
    /// Of these, on one agent.
    pub running_per_agent: usize,
    /// Turns that only follow a task on another server, which are none of these.
    pub remote_tasks: usize,
    /// Turns that may wait in the queue.
    pub queued_turns: usize,
    /// Tasks that may wait for an answer.
    pub parked_tasks: usize,
    /// Of these, for one caller.
    pub parked_per_caller: usize,
    /// Backpressure: uncommitted output of one task, in bytes, before its agent has to wait.
    pub uncommitted_bytes: usize,
    /// The same in events.
    pub uncommitted_events: usize,
    /// The largest event.
    pub event_bytes: usize,
    /// The largest task: the sum of its events.
    pub task_bytes: u64,
    /// How long a graceful shutdown waits for running turns.
    pub drain: Duration,
    /// How long a canceled agent may take to stop.
    pub cancel_grace: Duration,
    /// How long a waiting agent is kept in memory.
    pub park: Duration,
    /// The question timeout: how long a task waits for an answer before it fails.
    pub parked_expiry: Duration,
    /// A task's deadline, counted from its first message.
    pub deadline: Option<Duration>,
    /// The time a running task may pass without an event.
    pub idle: Option<Duration>,
    /// How long a blocking send waits before it answers with the task as it is.
    pub max_blocking: Option<Duration>,
    /// Recoveries without a new event on the wire before a task is given up.
    pub max_recoveries: u32,
    /// Recoveries at the same time.
    pub parallel_recoveries: usize,
    /// How long ended tasks are kept.
    pub retention_age: Duration,
    /// How many tasks are kept.
    pub retention_tasks: u64,
    /// How many bytes are kept.
    pub retention_bytes: u64,
    /// Conversations whose history is cached.
    pub contexts: usize,
    /// Bytes of the newest rows that are kept in memory for readers of all of them.
    pub feed_ring_bytes: usize,
    /// How long journal lines are kept.
    pub journal_age: Duration,
    /// The same for those of the audit.
    pub audit_age: Duration,
    /// How deep and how wide a tree of tasks may grow.
    pub delegation: DelegationLimits,
    /// Whose permission a call between agents needs.
    pub delegation_scope: DelegationScope,
    /// How long an ended task is kept beyond its retention for consumers that have not read it.
    pub consumer_hold: Duration,
    /// Which carriers agents give the payloads of extensions.
    pub emit: Emit,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            running_tasks: 1_000,
            running_per_caller: 200,
            running_per_agent: 1_000,
            remote_tasks: 4_000,
            queued_turns: 10_000,
            parked_tasks: 100_000,
            parked_per_caller: 10_000,
            uncommitted_bytes: 256 << 10,
            uncommitted_events: 1_024,
            event_bytes: 8 << 20,
            task_bytes: 64 << 20,
            drain: Duration::from_secs(10),
            cancel_grace: Duration::from_secs(3),
            park: Duration::from_secs(10 * 60),
            parked_expiry: 7 * DAY,
            deadline: None,
            idle: None,
            max_blocking: None,
            max_recoveries: 3,
            parallel_recoveries: 16,
            retention_age: 30 * DAY,
            retention_tasks: 1_000_000,
            retention_bytes: 10 << 30,
            contexts: 100_000,
            feed_ring_bytes: 16 << 20,
            journal_age: 30 * DAY,
            audit_age: 400 * DAY,
            delegation: DelegationLimits::default(),
            delegation_scope: DelegationScope::Agent,
            consumer_hold: 7 * DAY,
            emit: Emit::Newest,
        }
    }
}
