//! What a route is: which events it is about, and what is done for each. Files and requests are read by the same reader,
//! which finds every problem before any is told.

use serde_json::{Map, Value, json};
use switchboard_a2a::TaskState;
use switchboard_egress::Target;
use switchboard_engine::{AgentName, state_label};
use switchboard_host::config::suggestion::did_you_mean;

use super::content::Content;
use crate::feed::Pattern;

/// The longest name: it is a word of topics and part of headers and of keys.
const NAME_BYTES: usize = 64;
/// The longest topic, agent or skill.
const WORD_BYTES: usize = 256;
/// The longest content as it is written.
pub(super) const CONTENT_BYTES: usize = 16 << 10;
/// Agents that a message may go to; `hub.fanout.max` may allow fewer.
const MOST_TARGETS: usize = 64;
/// What is quoted of a wrong value, in characters.
const QUOTED: usize = 80;
/// The first word of topics that only routes with a `url` may have.
const DROPPED: &str = "dispatch";
const STATES: [TaskState; 7] = [
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

/// A route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) topic: String,
    /// The same, ready to be matched.
    pub(crate) pattern: Pattern,
    /// Only events of this agent.
    pub(crate) agent: Option<AgentName>,
    /// Only events with this state.
    pub(crate) state: Option<TaskState>,
    pub(crate) then: Then,
    pub(crate) content: Option<Content>,
    pub(crate) enabled: bool,
}

/// What is done for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// A message is sent, and routed like any other.
    Send { skill: Option<String>, targets: Vec<String> },
    /// Events are POSTed.
    Post { url: String, secret_env: Option<String> },
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {wrong}: {right}")]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) wrong: String,
    pub(crate) right: String,
}

impl Definition {
    /// Reads one. `name` is the one that it has if it does not say.
    pub(crate) fn read(given: &Value, name: Option<&str>) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::default();
        let Some(members) = reader.object(given, "", &["name", "when", "then", "content", "enabled"]) else {
            return Err(reader.0);
        };
        let name = reader.name(members, name);
        let (topic, pattern, agent, state) = reader.when(members.get("when").unwrap_or(&Value::Null));
        let then = reader.then(members.get("then").unwrap_or(&Value::Null));
        let enabled = match members.get("enabled") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(enabled)) => *enabled,
            Some(other) => {
                reader.add("enabled", format!("is {}", kind(other)), "true or false");
                true
            }
        };
        let content = match (members.get("content").filter(|content| !content.is_null()), &then) {
            (Some(given), Some(then)) => reader.content(given, then),
            _ => None,
        };
        if matches!(then, Some(Then::Send { .. })) && topic.split('.').next() == Some(DROPPED) {
            let wrong = "is about messages that were refused, and what this route sends may be refused too";
            reader.add("when.topic", wrong, "name another topic, or a url under then");
        }
        match (then, pattern) {
            (Some(then), Some(pattern)) if reader.0.is_empty() => {
                Ok(Self { name, topic, pattern, agent, state, then, content, enabled })
            }
            _ => Err(reader.0),
        }
    }

    /// As it was written, without what is as usual.
    pub(crate) fn written(&self) -> Value {
        let mut when = json!({ "topic": self.topic });
        if let Some(agent) = &self.agent {
            when["agent"] = agent.as_str().into();
        }
        if let Some(state) = self.state {
            when["state"] = state_label(state).into();
        }
        let mut written = json!({ "name": self.name, "when": when, "then": self.then.written() });
        if let Some(content) = &self.content {
            written["content"] = content.written().clone();
        }
        written["enabled"] = self.enabled.into();
        written
    }

    /// The same without the path of its address, which may be a secret.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = self.written();
        if let Then::Post { url, .. } = &self.then {
            shown["then"]["url"] = origin(url).into();
        }
        shown
    }
}

impl Then {
    fn written(&self) -> Value {
        let mut written = json!({});
        match self {
            Self::Send { skill, targets } => {
                if let Some(skill) = skill {
                    written["skill"] = skill.as_str().into();
                }
                if !targets.is_empty() {
                    written["targets"] = json!(targets);
                }
            }
            Self::Post { url, secret_env } => {
                written["url"] = url.as_str().into();
                if let Some(variable) = secret_env {
                    written["secretEnv"] = variable.as_str().into();
                }
            }
        }
        written
    }
}

/// Scheme, host and port of an address.
pub(super) fn origin(url: &str) -> String {
    Target::parse(url).map_or_else(|_| String::new(), |target| target.origin())
}

/// Collects what is wrong.
#[derive(Default)]
struct Reader(Vec<Problem>);

impl Reader {
    fn add(&mut self, key: &str, wrong: impl Into<String>, right: impl Into<String>) {
        self.0.push(Problem { key: key.to_owned(), wrong: wrong.into(), right: right.into() });
    }

    /// An object with no members but these.
    fn object<'a>(&mut self, given: &'a Value, key: &str, known: &[&str]) -> Option<&'a Map<String, Value>> {
        let Value::Object(members) = given else {
            let wrong = if given.is_null() { "is missing".to_owned() } else { format!("is {}", kind(given)) };
            let key = if key.is_empty() { "body" } else { key };
            self.add(key, wrong, format!("an object with {}", known.join(", ")));
            return None;
        };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let key = if key.is_empty() { quoted(name) } else { format!("{key}.{}", quoted(name)) };
            self.add(&key, "is no member here", did_you_mean(name, known, "there are"));
        }
        Some(members)
    }

    /// A text that may be absent.
    fn text<'a>(
        &mut self,
        members: &'a Map<String, Value>,
        (below, name): (&str, &str),
        right: &str,
    ) -> Option<&'a str> {
        let key = if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") };
        match members.get(name)? {
            Value::Null => None,
            Value::String(text) if text.is_empty() || text.len() > WORD_BYTES => {
                self.add(&key, format!("has {} bytes", text.len()), format!("{right}, of 1 to {WORD_BYTES} bytes"));
                None
            }
            Value::String(text) => Some(text),
            other => {
                self.add(&key, format!("is {}", kind(other)), right);
                None
            }
        }
    }

    fn name(&mut self, members: &Map<String, Value>, usual: Option<&str>) -> String {
        let right = format!("1 to {NAME_BYTES} letters, digits, - and _");
        let given = self.text(members, ("", "name"), &right).or(usual.filter(|_| !members.contains_key("name")));
        let Some(name) = given else {
            if self.0.iter().all(|problem| problem.key != "name") {
                self.add("name", "is missing", right);
            }
            return String::new();
        };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.len() > NAME_BYTES || !name.bytes().all(is_word) {
            self.add("name", format!("is {:?}", quoted(name)), right);
        }
        name.to_owned()
    }

    fn when(&mut self, given: &Value) -> (String, Option<Pattern>, Option<AgentName>, Option<TaskState>) {
        let Some(members) = self.object(given, "when", &["topic", "agent", "state"]) else {
            return (String::new(), None, None, None);
        };
        let right = "a topic of the feed such as task.failed.* or alert.#, whose first word is none of * and #";
        let topic = self.text(members, ("when", "topic"), right);
        if topic.is_none() && self.0.iter().all(|problem| problem.key != "when.topic") {
            self.add("when.topic", "is missing", right);
        }
        let is_word = |word: &str| {
            word == "*" || word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let is_meant = |pattern: &Pattern| {
            pattern.words().first().is_some_and(|first| first != "*")
                && pattern.words().iter().all(|word| is_word(word))
        };
        let pattern = topic.and_then(Pattern::parse).filter(is_meant);
        if let (Some(topic), None) = (topic, &pattern) {
            self.add("when.topic", format!("is {:?}", quoted(topic)), right);
        }
        let agent = self.text(members, ("when", "agent"), "the name of an agent").map(AgentName::from);
        let labels = || STATES.map(state_label).join(", ");
        let state = self.text(members, ("when", "state"), "a state of tasks").and_then(|given| {
            let found = STATES.into_iter().find(|state| state_label(*state) == given);
            if found.is_none() {
                self.add("when.state", format!("is {:?}", quoted(given)), format!("one of {}", labels()));
            }
            found
        });
        (topic.unwrap_or_default().to_owned(), pattern, agent, state)
    }

    fn then(&mut self, given: &Value) -> Option<Then> {
        let members = self.object(given, "then", &["skill", "targets", "url", "secretEnv"])?;
        let has = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
        let is_post = has("url");
        if is_post && (has("skill") || has("targets")) {
            self.add("then", "has a url and whom a message goes to", "either a url, or a skill, targets or both");
            return None;
        }
        if is_post {
            let url = self.url(members);
            let variable = self.text(members, ("then", "secretEnv"), "the name of a variable of the environment");
            if let Some(variable) = variable.filter(|variable| !is_variable(variable)) {
                let right = "the name of a variable of the server's environment: letters, digits and _";
                self.add("then.secretEnv", format!("is {:?}", quoted(variable)), right);
            }
            return Some(Then::Post { url: url?, secret_env: variable.map(str::to_owned) });
        }
        if has("secretEnv") {
            self.add("then.secretEnv", "is for a url", "name the url, or leave it out");
        }
        let skill = self.text(members, ("then", "skill"), "the id of a skill").map(str::to_owned);
        let targets = self.targets(members);
        if skill.is_none() && targets.is_empty() && !has("skill") && !has("targets") {
            self.add("then", "says nothing", "a skill, targets or both, or a url");
        }
        Some(Then::Send { skill, targets })
    }

    fn url(&mut self, members: &Map<String, Value>) -> Option<String> {
        let right = "an address that begins with https:// or http://, without a user name";
        let Some(Value::String(url)) = members.get("url") else {
            self.add("then.url", "is no text", right);
            return None;
        };
        match Target::parse(url) {
            Ok(_) => Some(url.clone()),
            Err(refusal) => {
                self.add("then.url", format!("is refused: {refusal}"), right);
                None
            }
        }
    }

    fn targets(&mut self, members: &Map<String, Value>) -> Vec<String> {
        let right = "the name of an agent or a list of names";
        let given = match members.get("targets") {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(names)) => names.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let names: Option<Vec<String>> = given.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        let is_name = |name: &String| !name.is_empty() && name.len() <= WORD_BYTES;
        match names.filter(|names| !names.is_empty() && names.iter().all(is_name)) {
            Some(names) if names.len() > MOST_TARGETS => {
                self.add("then.targets", format!("has {} names", names.len()), format!("at most {MOST_TARGETS}"));
                Vec::new()
            }
            Some(names) => names,
            None => {
                self.add("then.targets", "has what is no name", right);
                Vec::new()
            }
        }
    }

    fn content(&mut self, given: &Value, then: &Then) -> Option<Content> {
        let bytes = given.to_string().len();
        if bytes > CONTENT_BYTES {
            self.add("content", format!("has {bytes} bytes"), format!("at most {CONTENT_BYTES}"));
            return None;
        }
        let is_json = matches!(then, Then::Post { .. });
        match (is_json, given) {
            (true, Value::Object(_)) | (false, Value::String(_)) => {}
            (true, other) => {
                let right = "an object: the JSON that is POSTed, with {{ }} in its texts";
                self.add("content", format!("is {}", kind(other)), right);
                return None;
            }
            (false, other) => {
                let right = "a text: that of the message, with {{ }} in it";
                self.add("content", format!("is {}", kind(other)), right);
                return None;
            }
        }
        match Content::read(given) {
            Ok(content) => Some(content),
            Err((path, error)) => {
                self.add(&format!("content{path}"), error.wrong, error.right);
                None
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
