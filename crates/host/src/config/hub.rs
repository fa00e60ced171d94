//! `hub`: what readers of all tasks get, and how long it is kept for them.

use serde::Serialize;

use crate::config::ceremonies::Ceremonies;
use crate::config::channels::Channels;
use crate::config::decimal::Decimal;
use crate::config::extensions::Extensions;
use crate::config::inbox::Inbox;
use crate::config::jobs::Jobs;
use crate::config::pricing::Pricing;
use crate::config::routes::Routes;
use crate::config::routing::{Roles, Routing};
use crate::config::size::{Count, Size};
use crate::config::time_span::{TimeLimit, TimeSpan};
use crate::section_keys;

/// Readers of all tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    /// The feed of everything that is committed.
    pub feed: Feed,
    /// Messages of chat platforms.
    pub channels: Channels,
    /// How agents do.
    pub health: Health,
    /// How agents write the payloads of protocol extensions.
    pub extensions: Extensions,
    /// Messages that go to several agents.
    pub fanout: Fanout,
    /// Work that is owed, such as cancellations at other servers.
    pub jobs: Jobs,
    /// Questions that wait for an answer.
    pub inbox: Inbox,
    /// What happened outside of tasks.
    pub journal: Journal,
    /// Messages to operators.
    pub messages: Messages,
    /// The reader that keeps sums and owes work.
    pub projector: Projector,
    /// Agents with a part of their own.
    pub roles: Roles,
    /// Runs of skills by a schedule.
    pub ceremonies: Ceremonies,
    /// Events that become messages or POSTs.
    pub routes: Routes,
    /// Which agent gets a message to the root address.
    pub routing: Routing,
    /// How agents elsewhere are looked at.
    pub probe: Probe,
    /// When an agent elsewhere that fails is left alone.
    pub breaker: Breaker,
    /// Agents that are registered while the server runs.
    pub registrations: Registrations,
    /// Looks at tasks of agents elsewhere that wait for an answer.
    pub remote_poll: RemotePoll,
    /// Time between two looks at the files of agents.
    ///
    /// `none`: only on SIGHUP and `switchboard config reload`.
    pub reload: TimeLimit,
}

/// Looks at tasks of agents elsewhere that wait for an answer, which may be given there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct RemotePoll {
    /// Time until the first look; each next one waits twice as long.
    pub first: TimeSpan,
    /// The longest time between two looks.
    pub most: TimeSpan,
}

/// How agents elsewhere are looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Time between two looks at an agent's card, a fifth more or less.
    pub every: TimeSpan,
    /// The same while the agent cannot be reached, and before it has shown its first card.
    pub while_down: TimeSpan,
    /// Failures in a row that make an agent count as down.
    pub down_after: Count,
    /// Time for one look at an agent's card, at both paths where it may be together.
    ///
    /// Each path gets half of what is left, and never longer than the agent's `timeout`.
    pub timeout: TimeSpan,
}

/// When an agent elsewhere that fails is left alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// Transport failures in a row, of two tasks at least, that open the circuit breaker.
    pub failures: Count,
    /// Time it stays open before one trial.
    pub open: TimeSpan,
}

/// Agents that are registered while the server runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Registrations {
    /// Most registrations.
    pub max: Count,
    /// Largest card that is stored.
    pub card: Size,
    /// Variables of the environment that registrations may name for credentials.
    /// While one is not listed, tasks of agents that name it wait. `switchboard config reload` applies a change.
    pub env: Vec<String>,
}

/// The feed of everything that is committed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Feed {
    /// Newest events kept in memory while there are readers.
    ///
    /// What is older they read from the store.
    pub ring: Size,
}

/// How agents do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Age at which sums of a minute go.
    ///
    /// Those of the newest 25 hours stay, whatever is set: windows of a day are made of them.
    pub minutes: TimeSpan,
    /// Age at which sums of an hour go; those of the newest 25 hours stay too.
    pub hours: TimeSpan,
    /// Callers with sums of their own in an hour.
    ///
    /// The others have one together.
    pub callers: Count,
    /// When alerts fire.
    pub alerts: Alerts,
    /// What tokens cost.
    pub pricing: Pricing,
}

/// When alerts fire.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Alerts {
    /// Share of failures in an hour above which an agent is stuck.
    pub failure_rate: Decimal,
    /// Tasks that it must have ended in that hour, without those that were canceled.
    pub stuck_outcomes: Count,
    /// How long an agent must fail less than that before it counts as well again.
    pub calm: TimeSpan,
    /// US dollars that all agents together may cost in 24 hours.
    pub daily_usd: Decimal,
    /// Tasks at a skill that have ended in 24 hours without success, with which nobody serves it.
    pub orphan_outcomes: Count,
    /// Observations in a row that contradict what a skill declares, or agree with it again.
    pub drift_observations: Count,
    /// How far behind the newest event the reader that keeps sums may be.
    pub behind: TimeSpan,
    /// How long after an alert has fired the same one may fire again.
    pub cooldown: TimeSpan,
    /// Dropped messages of one kind that are a storm.
    pub drops: Count,
    /// In how much time.
    pub drop_window: TimeSpan,
}

/// Messages that go to several agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Fanout {
    /// Agents that one message may go to.
    pub max: Count,
    /// Largest result of an agent that is repeated in the task of the whole.
    ///
    /// For a larger one the task of that agent is named.
    pub inline: Size,
}

/// How long the journal is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// Age at which a line goes.
    pub keep: TimeSpan,
    /// Age at which a line of the audit goes.
    pub audit: TimeSpan,
    /// Largest line that `/publish` writes.
    ///
    /// The hub's own lines have up to 64 KiB, whatever is set.
    pub line: Size,
}

/// Messages to operators.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Messages {
    /// How many a caller may write in a minute.
    pub per_minute: Count,
    /// The longest one.
    pub size: Size,
}

/// The reader that keeps sums and owes work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Projector {
    /// How long what was read is gathered before it is written.
    pub flush: TimeSpan,
    /// How long a finished task is kept for a reader that has not come to its end.
    ///
    /// Counted from its end. After that `store.retention` counts alone.
    pub hold: TimeSpan,
}

section_keys!(Hub, {
    feed (section): Feed::default(),
    channels (section): Channels::default(),
    health (section): Health::default(),
    extensions (section): Extensions::default(),
    fanout (section): Fanout::default(),
    jobs (section): Jobs::default(),
    inbox (section): Inbox::default(),
    journal (section): Journal::default(),
    messages (section): Messages::default(),
    projector (section): Projector::default(),
    roles (section): Roles::default(),
    ceremonies (section): Ceremonies::default(),
    routes (section): Routes::default(),
    routing (section): Routing::default(),
    probe (section): Probe::default(),
    breaker (section): Breaker::default(),
    registrations (section): Registrations::default(),
    remote_poll (section): RemotePoll::default(),
    reload: TimeLimit(Some(TimeSpan::from_seconds(5))),
});

section_keys!(RemotePoll, {
    first (nonzero): TimeSpan::from_seconds(30),
    most (nonzero): TimeSpan::from_minutes(10),
});

section_keys!(Probe, {
    every (nonzero): TimeSpan::from_seconds(60),
    while_down (nonzero): TimeSpan::from_seconds(15),
    down_after: Count::new(3),
    timeout (nonzero): TimeSpan::from_seconds(5),
});

section_keys!(Breaker, {
    failures: Count::new(5),
    open (nonzero): TimeSpan::from_seconds(60),
});

section_keys!(Registrations, {
    max: Count::new(10_000),
    card: Size::from_mebibytes(1),
    env: Vec::new(),
});

section_keys!(Feed, {
    ring: Size::from_mebibytes(16),
});

section_keys!(Health, {
    minutes: TimeSpan::from_hours(48),
    hours: TimeSpan::from_days(400),
    callers: Count::new(1_000),
    alerts (section): Alerts::default(),
    pricing (section): Pricing::default(),
});

section_keys!(Alerts, {
    failure_rate: Decimal::new(0.5),
    stuck_outcomes: Count::new(5),
    calm: TimeSpan::from_minutes(10),
    daily_usd: Decimal::new(50.0),
    orphan_outcomes: Count::new(3),
    drift_observations: Count::new(3),
    behind: TimeSpan::from_seconds(60),
    cooldown: TimeSpan::from_minutes(15),
    drops: Count::new(10),
    drop_window: TimeSpan::from_minutes(10),
});

section_keys!(Fanout, {
    max: Count::new(64),
    inline: Size::from_kibibytes(64),
});

section_keys!(Journal, {
    keep: TimeSpan::from_days(30),
    audit: TimeSpan::from_days(400),
    line: Size::from_kibibytes(64),
});

section_keys!(Messages, {
    per_minute: Count::new(60),
    size: Size::from_kibibytes(8),
});

section_keys!(Projector, {
    flush: TimeSpan::from_seconds(1),
    hold: TimeSpan::from_days(7),
});
