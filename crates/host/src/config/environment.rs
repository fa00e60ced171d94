//! Warns of a mistyped `SWITCHBOARD_…` variable. It is no error: orchestrators put variables of their own making, named
//! after services, into every environment.

use std::collections::BTreeSet;

use crate::config::Setting;
use crate::config::section::variable_name;
use crate::config::suggestion;

const PREFIX: &str = "SWITCHBOARD_";

/// Variables of ours that are no settings.
const OTHERS: [&str; 3] = ["SWITCHBOARD_WORKSPACE", "SWITCHBOARD_URL", "SWITCHBOARD_TASK_TOKEN"];

/// What Kubernetes and Docker put into the environment for a service that is called `switchboard`.
const OF_ORCHESTRATORS: [&str; 3] = ["SERVICE_HOST", "SERVICE_PORT", "PORT"];

/// One warning for each variable that looks like a setting and is none. `filled_in` are those that a file uses.
pub(super) fn warnings<'a>(
    variables: impl Iterator<Item = &'a String>,
    settings: &[Setting],
    filled_in: &BTreeSet<String>,
) -> Vec<String> {
    let known: BTreeSet<String> = settings.iter().map(|setting| variable_name(&setting.key)).collect();
    let is_known = |name: &str| known.contains(name) || OTHERS.contains(&name) || filled_in.contains(name);
    let mut warnings = Vec::new();
    for name in variables.filter(|name| !is_known(name)) {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if is_of_orchestrator(rest) {
            continue;
        }
        let hint = match meant(rest, settings, &known) {
            Some(candidate) => format!("did you mean {candidate}?"),
            None => "no setting has that name: remove it".to_owned(),
        };
        warnings.push(format!("the environment variable {name} sets nothing: {hint}"));
    }
    warnings
}

/// The variables among `names` that the text of a file fills in.
pub(super) fn filled_in<'a>(names: impl Iterator<Item = &'a String>, source: &str) -> Vec<String> {
    let ours = names.filter(|name| name.starts_with(PREFIX));
    let used = ours.filter(|name| source.contains(&format!("${{{name}}}")) || source.contains(&format!("${{{name}:-")));
    used.cloned().collect()
}

/// `SWITCHBOARD_PORT_41242_TCP` and the like; a name that only begins with such a word is not one of them.
fn is_of_orchestrator(rest: &str) -> bool {
    let made = |word: &str| rest.strip_prefix(word).is_some_and(|more| more.is_empty() || more.starts_with('_'));
    OF_ORCHESTRATORS.iter().any(|word| made(word))
}

/// Within a section the rest is compared, or every variable of the section would look like every other.
fn meant(rest: &str, settings: &[Setting], known: &BTreeSet<String>) -> Option<String> {
    let sections = settings.iter().filter_map(|setting| setting.key.split_once('.'));
    let mut prefixes = sections.map(|(section, _)| format!("{}_", variable_name(section)));
    let name = format!("{PREFIX}{rest}");
    let prefix = prefixes.find(|prefix| name.starts_with(prefix.as_str())).unwrap_or_else(|| PREFIX.to_owned());
    let word = name.strip_prefix(prefix.as_str())?;
    let keys = known.iter().filter_map(|variable| variable.strip_prefix(prefix.as_str()));
    suggestion::nearest(word, keys).map(|key| format!("{prefix}{key}"))
}
