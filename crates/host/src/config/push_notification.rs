//! `PUSH_NOTIFICATION_ALLOWED_HOSTS` and `PUSH_NOTIFICATION_ALLOWED_CIDRS`: lists that deployments already set for other
//! servers. They are added to the settings; an entry that cannot be read is warned of and left out, as it always was.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::address::{AllowedHost, Network};
use crate::config::problem::{Mismatch, Origin};
use crate::config::section::Setting;
use crate::config::value::Scalar;
use crate::config::webhooks::Webhooks;

const HOSTS: &str = "PUSH_NOTIFICATION_ALLOWED_HOSTS";
const CIDRS: &str = "PUSH_NOTIFICATION_ALLOWED_CIDRS";

/// Adds the entries of the environment to the section and to the list of settings; returns the warnings.
pub(super) fn add(
    environment: &BTreeMap<String, String>,
    webhooks: &mut Webhooks,
    settings: &mut [Setting],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let hosts: Vec<AllowedHost> = entries(environment, HOSTS, AllowedHost::from_text, &mut warnings);
    let networks: Vec<Network> = entries(environment, CIDRS, Network::from_text, &mut warnings);
    if !hosts.is_empty() {
        webhooks.allowed_hosts.extend(hosts);
        update_setting(settings, "webhooks.allowedHosts", HOSTS, serde_json::to_value(&webhooks.allowed_hosts));
    }
    if !networks.is_empty() {
        webhooks.allowed_cidrs.extend(networks);
        update_setting(settings, "webhooks.allowedCidrs", CIDRS, serde_json::to_value(&webhooks.allowed_cidrs));
    }
    warnings
}

fn entries<T>(
    environment: &BTreeMap<String, String>,
    variable: &str,
    read: impl Fn(&str) -> Result<T, Mismatch>,
    warnings: &mut Vec<String>,
) -> Vec<T> {
    let text = environment.get(variable).map(String::as_str).unwrap_or_default();
    let words = text.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|word| !word.is_empty());
    let mut entries = Vec::new();
    for word in words {
        match read(word) {
            Ok(entry) => entries.push(entry),
            Err(Mismatch { wrong, right }) => {
                warnings.push(format!("{variable}: {wrong} and is left out: {right}"));
            }
        }
    }
    entries
}

/// The effective value is the sum; the origin of a value that was set elsewhere is kept.
fn update_setting(settings: &mut [Setting], key: &str, variable: &str, value: Result<Value, serde_json::Error>) {
    let Some(setting) = settings.iter_mut().find(|setting| setting.key == key) else { return };
    setting.value = value.unwrap_or_default();
    if setting.origin == Origin::Default {
        setting.origin = Origin::Environment { variable: variable.to_owned() };
    }
}
