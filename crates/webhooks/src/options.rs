//! The settings of webhooks and their defaults. The configuration file spells them the same way.

use std::time::Duration;

/// The settings of webhooks.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether webhooks can be set and are delivered.
    pub enabled: bool,
    /// How many webhooks a task may have.
    pub per_task: usize,
    /// Whether reading a configuration returns its token and credentials.
    pub return_secrets: bool,
    /// Timeout of an attempt, connecting included.
    pub timeout: Duration,
    /// The retry policy: the backoff before each further attempt.
    pub retries: Vec<Duration>,
    /// Time an ended task is kept for webhooks that lag behind.
    pub hold_tasks: Duration,
    pub parallel: usize,
    /// Concurrent deliveries to one endpoint.
    pub parallel_per_endpoint: usize,
    /// Failures of an endpoint in a row that pause it (open its circuit breaker).
    pub pause_after: u32,
    /// The first pause of an endpoint; every failed probe doubles it.
    pub pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
    /// Time dead letters are kept.
    pub dead_letter_age: Duration,
    /// How many dead letters are kept.
    pub dead_letters: usize,
    /// How many bytes of their bodies are kept.
    pub dead_letter_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        let hours = |hours: u64| minutes(hours * 60);
        let seconds = Duration::from_secs;
        Self {
            enabled: true,
            per_task: 100,
            return_secrets: false,
            timeout: seconds(10),
            retries: vec![
                seconds(1),
                seconds(3),
                seconds(9),
                seconds(30),
                minutes(5),
                minutes(30),
                hours(2),
                hours(5),
                hours(10),
                hours(14),
                hours(20),
                hours(24),
            ],
            hold_tasks: hours(7 * 24),
            parallel: 256,
            parallel_per_endpoint: 8,
            pause_after: 5,
            pause: seconds(10),
            max_pause: minutes(5),
            dead_letter_age: hours(30 * 24),
            dead_letters: 10_000,
            dead_letter_bytes: 1 << 30,
        }
    }
}
