//! `webhooks`: push notifications. Whether callers may set them, which receivers may be called, and how patiently.

use std::net::SocketAddr;

use serde::Serialize;
use switchboard_egress::Allowlist;

use crate::config::address::{AllowedHost, Nameserver, Network};
use crate::config::section::Section;
use crate::config::size::{Count, Size};
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Push notifications.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// Whether callers can set webhooks, and whether they are delivered to.
    ///
    /// Off, agent cards say so and what was set before waits.
    pub enabled: bool,
    /// Private hosts that may be called.
    ///
    /// `host`, `host:port` or `*.domain`; any address is fine for them. Public hosts need no entry. Those in
    /// `PUSH_NOTIFICATION_ALLOWED_HOSTS` are added. `switchboard config reload` applies a change.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Private networks that may be called.
    ///
    /// Public addresses need no entry. Those in `PUSH_NOTIFICATION_ALLOWED_CIDRS` are added. `switchboard config reload`
    /// applies a change.
    pub allowed_cidrs: Vec<Network>,
    /// Nameservers that receivers' names are looked up with.
    ///
    /// An address, with a port or without; empty for the system's. `switchboard config reload` applies a change.
    pub nameservers: Vec<Nameserver>,
    /// Webhooks a task may have.
    pub per_task: Count,
    /// Whether reading a webhook tells its token and credentials.
    ///
    /// Off, they can only be written.
    pub return_secrets: bool,
    /// Time a receiver has to answer, connecting included.
    pub timeout: TimeSpan,
    /// Time a receiver has to accept a connection, and once more to agree on TLS.
    pub connect_timeout: TimeSpan,
    /// Waits between the attempts to deliver.
    ///
    /// One attempt follows each of them, then the delivery is a dead letter. Each is made up to a tenth longer by chance.
    pub retries: Vec<TimeSpan>,
    /// Time an ended task is kept for receivers that lag behind.
    ///
    /// Then what they were not told is a dead letter.
    pub hold_tasks: TimeSpan,
    /// Deliveries under way at a time.
    pub parallel: Count,
    /// Deliveries under way at a time to one endpoint: scheme, host and port.
    pub parallel_per_endpoint: Count,
    /// Failures of an endpoint in a row that pause it for all its webhooks.
    ///
    /// Time paused uses up no attempt.
    pub pause_after: Count,
    /// Time an endpoint is paused first.
    ///
    /// Then one delivery tries it, and each further failure doubles the time.
    pub pause: TimeSpan,
    /// Longest time an endpoint is paused.
    pub max_pause: TimeSpan,
    /// Deliveries that were given up.
    pub dead_letters: DeadLetters,
}

/// How long and how many dead letters are kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// Age at which a dead letter goes.
    pub max_age: TimeSpan,
    /// Dead letters kept.
    ///
    /// The oldest go first.
    pub max: Count,
    /// Bytes of the bodies of dead letters kept.
    ///
    /// The oldest go first. They do not count for `store.retention.maxBytes`.
    pub max_bytes: Size,
}

section_keys!(Webhooks with check, {
    enabled: true,
    allowed_hosts: Vec::new(),
    allowed_cidrs: Vec::new(),
    nameservers: Vec::new(),
    per_task: Count::new(100),
    return_secrets: false,
    timeout (nonzero): TimeSpan::from_seconds(10),
    connect_timeout (nonzero): TimeSpan::from_seconds(10),
    retries: vec![
        TimeSpan::from_seconds(1),
        TimeSpan::from_seconds(3),
        TimeSpan::from_seconds(9),
        TimeSpan::from_seconds(30),
        TimeSpan::from_minutes(5),
        TimeSpan::from_minutes(30),
        TimeSpan::from_hours(2),
        TimeSpan::from_hours(5),
        TimeSpan::from_hours(10),
        TimeSpan::from_hours(14),
        TimeSpan::from_hours(20),
        TimeSpan::from_hours(24),
    ],
    hold_tasks: TimeSpan::from_days(7),
    parallel: Count::new(256),
    parallel_per_endpoint: Count::new(8),
    pause_after: Count::new(5),
    pause (nonzero): TimeSpan::from_seconds(10),
    max_pause: TimeSpan::from_minutes(5),
    dead_letters (section): DeadLetters::default(),
});

section_keys!(DeadLetters, {
    max_age: TimeSpan::from_days(30),
    max: Count::new(10_000),
    max_bytes: Size::from_gibibytes(1),
});

impl Webhooks {
    fn check(&self, section: &mut Section<'_, '_>) {
        if cfg!(not(feature = "nameservers")) && !self.nameservers.is_empty() {
            section.refuse(
                "nameservers",
                "this program was built without the feature `nameservers`",
                "leave the key out, or build the program with that feature of switchboard-host",
            );
        }
        if self.pause > self.max_pause {
            let key = if section.is_set("pause") { "pause" } else { "maxPause" };
            section.refuse(
                key,
                format!("a pause begins with {} and may last only {}", self.pause, self.max_pause),
                "make webhooks.maxPause at least as long as webhooks.pause",
            );
        }
    }

    /// What may be called although it is not public.
    pub fn allowlist(&self) -> Allowlist {
        let hosts: Vec<&str> = self.allowed_hosts.iter().map(|host| host.0.as_str()).collect();
        let networks: Vec<String> = self.allowed_cidrs.iter().map(Network::to_string).collect();
        // All of them were read before; one that could not be read again would be left out, which allows less.
        let (allowlist, _) = Allowlist::from_text(&hosts.join(" "), &networks.join(" "));
        allowlist
    }

    /// Where names are looked up; empty for the system's nameservers.
    pub fn nameserver_addresses(&self) -> Vec<SocketAddr> {
        self.nameservers.iter().map(|nameserver| nameserver.0).collect()
    }
}
