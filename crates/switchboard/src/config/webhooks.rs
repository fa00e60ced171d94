//! `webhooks`: used by push notifications. Which receivers may be called, and how patiently.

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::address::Network;
use crate::config::section::Section;
use crate::config::time_span::TimeSpan;

/// Push notifications.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Private host names that may be called.
    ///
    /// Used by push notifications. Public hosts need no entry.
    pub allowed_hosts: Vec<String>,
    /// Private networks that may be called.
    ///
    /// Used by push notifications. Public addresses need no entry.
    pub allowed_cidrs: Vec<Network>,
    /// Time a receiver has to answer.
    ///
    /// Used by push notifications.
    pub timeout: TimeSpan,
    /// Time a finished task is kept for receivers that lag behind.
    ///
    /// Used by push notifications.
    pub hold_tasks: TimeSpan,
    /// Waits between the attempts to deliver.
    ///
    /// Used by push notifications. One attempt follows each of them.
    pub retries: Vec<TimeSpan>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_cidrs: Vec::new(),
            timeout: TimeSpan::from_seconds(10),
            hold_tasks: TimeSpan::from_days(7),
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
        }
    }
}

impl Webhooks {
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("allowedHosts", &mut self.allowed_hosts);
        section.read("allowedCidrs", &mut self.allowed_cidrs);
        section.read("timeout", &mut self.timeout);
        section.refuse_zero("timeout", self.timeout);
        section.read("holdTasks", &mut self.hold_tasks);
        section.read("retries", &mut self.retries);
    }
}
