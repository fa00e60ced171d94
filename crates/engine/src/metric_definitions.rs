//! The kernel's metrics, all names in one place.

pub(crate) const TASKS: &str = "a2a_tasks";
pub(crate) const TASK_DURATION: &str = "a2a_task_duration_seconds";
pub(crate) const QUEUE_WAIT: &str = "a2a_queue_wait_seconds";
pub(crate) const RUNNING_TURNS: &str = "a2a_running_turns";
pub(crate) const REMOTE_TURNS: &str = "a2a_remote_turns";
pub(crate) const WAITING_TURNS: &str = "a2a_waiting_turns";
pub(crate) const QUEUED_TURNS: &str = "a2a_queued_turns";
pub(crate) const TASKS_IN_MEMORY: &str = "a2a_tasks_in_memory";
pub(crate) const REFUSED_WRITES: &str = "a2a_refused_writes_total";
pub(crate) const RECOVERIES: &str = "a2a_recoveries_total";
pub(crate) const EVICTED_TASKS: &str = "a2a_evicted_tasks_total";
pub(crate) const EVICTION_HELD_TASKS: &str = "switchboard_eviction_held";
pub(crate) const FEED_READERS: &str = "switchboard_feed_readers";
pub(crate) const FEED_GAPS: &str = "switchboard_feed_gaps_total";

/// What each metric tells, for the exporter.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    (TASKS, "Tasks by state"),
    (TASK_DURATION, "Seconds from a task's first message to its end"),
    (QUEUE_WAIT, "Seconds a turn waited for a permit to run"),
    (RUNNING_TURNS, "Turns that run"),
    (REMOTE_TURNS, "Turns that follow a task on another server"),
    (WAITING_TURNS, "Turns that have begun and wait for others without a permit to run"),
    (QUEUED_TURNS, "Turns that wait for a permit to run"),
    (TASKS_IN_MEMORY, "Tasks held in memory"),
    (REFUSED_WRITES, "Writes refused because the task had ended or another turn owned it"),
    (RECOVERIES, "Tasks taken over after their process was lost"),
    (EVICTED_TASKS, "Ended tasks deleted by retention"),
    (
        EVICTION_HELD_TASKS,
        "Ended tasks that retention keeps only because a consumer has not read them, among the 1,000 oldest",
    ),
    (
        FEED_READERS,
        "Readers of the rows of all tasks: `stream` and `websocket` for clients, `consumer` within the server",
    ),
    (FEED_GAPS, "Times that such a reader was told that rows are missing"),
];
