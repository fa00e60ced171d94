//! The kernel's metrics, all names in one place.

/// Tasks by state.
pub const TASKS: &str = "a2a_tasks";
/// From a task's first message to its end, by how it ended.
pub const TASK_DURATION: &str = "a2a_task_duration_seconds";
/// How long turns waited for a permit.
pub const QUEUE_WAIT: &str = "a2a_queue_wait_seconds";
/// Turns that run.
pub const RUNNING_TURNS: &str = "a2a_running_turns";
/// Turns that wait for a permit.
pub const QUEUED_TURNS: &str = "a2a_queued_turns";
/// Tasks held in memory: those that run, are watched, or wait with their agent in memory.
pub const TASKS_IN_MEMORY: &str = "a2a_tasks_in_memory";
/// Writes to a task that has ended or belongs to another turn.
pub const REFUSED_WRITES: &str = "a2a_refused_writes_total";
/// Tasks taken over after their process was lost, by what became of them.
pub const RECOVERIES: &str = "a2a_recoveries_total";
/// Tasks deleted because of age or number.
pub const EVICTED_TASKS: &str = "a2a_evicted_tasks_total";

/// What each metric tells, for the exporter.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    (TASKS, "Tasks by state"),
    (TASK_DURATION, "Seconds from a task's first message to its end"),
    (QUEUE_WAIT, "Seconds a turn waited for a place to run"),
    (RUNNING_TURNS, "Turns at work"),
    (QUEUED_TURNS, "Turns that wait for a place to run"),
    (TASKS_IN_MEMORY, "Tasks held in memory"),
    (REFUSED_WRITES, "Writes refused because the task had ended or another turn owned it"),
    (RECOVERIES, "Tasks taken over after their process was lost"),
    (EVICTED_TASKS, "Ended tasks deleted by retention"),
];
