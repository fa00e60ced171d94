//! What `channels.yaml` says of a channel: the agent or the skill that it talks to, and how long things take.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use switchboard_engine::AgentName;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar as _;

use super::place;

/// The longest agent, skill or channel.
const WORD_BYTES: usize = 256;
/// The longest that a burst is waited for, whatever a file says.
const LONGEST: Duration = Duration::from_secs(600);

/// A channel, or all of a platform, and whom it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) platform: String,
    /// All channels of the platform if absent.
    pub(crate) channel: Option<String>,
    pub(crate) agent: Option<AgentName>,
    pub(crate) skill: Option<String>,
    pub(crate) debounce: Option<Duration>,
    pub(crate) max_debounce: Option<Duration>,
    pub(crate) sticky: Option<Duration>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    channels: Option<Vec<Value>>,
}

/// One of its items.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenBinding {
    platform: String,
    channel: Option<String>,
    agent: Option<String>,
    skill: Option<String>,
    debounce: Option<String>,
    max_debounce: Option<String>,
    sticky: Option<String>,
}

/// Reads a file's value; every problem in it if there is one.
pub(super) fn read(value: Value, max: usize) -> Result<Vec<Binding>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let written: Written = mapping(value)?;
    let items = written.channels.unwrap_or_default();
    if items.len() > max {
        return Err(format!("channels: there are {}, at most {max} (hub.channels.max) may be", items.len()));
    }
    let (mut bindings, mut problems, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    for (index, item) in items.into_iter().enumerate() {
        match binding(item) {
            Ok(binding) if !known.insert((binding.platform.clone(), binding.channel.clone())) => {
                problems.push(format!("channels[{index}]: is there a second time: leave one of them out"));
            }
            Ok(binding) => bindings.push(binding),
            Err(problem) => problems.push(format!("channels[{index}]: {problem}")),
        }
    }
    if problems.is_empty() { Ok(bindings) } else { Err(problems.join("; ")) }
}

fn binding(item: Value) -> Result<Binding, String> {
    let written: WrittenBinding = mapping(item)?;
    if !place::is_platform(&written.platform) {
        return Err(format!("platform is {:?}: {}", shortened(&written.platform), place::PLATFORM));
    }
    for (name, given) in [("channel", &written.channel), ("agent", &written.agent), ("skill", &written.skill)] {
        if let Some(given) = given
            && (given.is_empty() || given.len() > WORD_BYTES)
        {
            return Err(format!("{name} has {} bytes: 1 to {WORD_BYTES}", given.len()));
        }
    }
    let debounce = span("debounce", written.debounce)?.map(|span| span.min(LONGEST));
    let max_debounce = span("maxDebounce", written.max_debounce)?.map(|span| span.min(LONGEST));
    Ok(Binding {
        platform: written.platform,
        channel: written.channel,
        agent: written.agent.map(AgentName::from),
        skill: written.skill,
        debounce,
        max_debounce,
        sticky: span("sticky", written.sticky)?,
    })
}

/// Reads a mapping. A list would be read as its values in order.
fn mapping<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    if !value.is_object() {
        return Err("it is no mapping of names and values".to_owned());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn span(name: &str, given: Option<String>) -> Result<Option<Duration>, String> {
    let Some(given) = given else { return Ok(None) };
    match TimeSpan::from_text(&given) {
        Ok(span) => Ok(Some(span.duration())),
        Err(_) => Err(format!("{name} is {:?}: {}", shortened(&given), TimeSpan::WRITE)),
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_problem_of_a_file_is_named() {
        let refused = |value| read(value, 3).err().unwrap_or_default();
        let two = json!({ "channels": [
            { "platform": "Slack!" },
            { "platform": "slack", "agnt": "triage" },
            { "platform": "slack", "debounce": "soon" },
        ] });
        let problems = refused(two);
        for problem in
            ["channels[0]: platform is \"Slack!\"", "channels[1]: unknown field `agnt`", "debounce is \"soon\""]
        {
            assert!(problems.contains(problem), "{problem}: {problems}");
        }
        let one = || json!({ "platform": "slack", "channel": "C1" });
        assert!(refused(json!({ "channels": [one(), one()] })).contains("channels[1]: is there a second time"));
        assert!(refused(json!({ "channels": [one(), one(), one(), one()] })).contains("hub.channels.max"));
        assert!(refused(json!({ "channel": [] })).contains("unknown field `channel`"));
        assert!(refused(json!([])).contains("no mapping"));
        assert!(refused(json!({ "channels": [["slack"]] })).contains("channels[0]: it is no mapping"));
        let bound =
            json!({ "channels": [{ "platform": "slack", "agent": "triage", "maxDebounce": "5h", "sticky": "1h" }] });
        let bound = read(bound, 3).unwrap_or_default();
        assert_eq!(bound[0].max_debounce, Some(LONGEST), "a burst does not last for hours");
        assert_eq!((bound[0].sticky, read(Value::Null, 3)), (Some(Duration::from_secs(3_600)), Ok(Vec::new())));
    }
}
