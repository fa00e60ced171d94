//! What a route is: which events it is about, and what is done for each. Files and requests are read by the same reader,
//! which finds every problem before any is told.

use serde_json::{Map, Value, json};
use switchboard_a2a::TaskState;
use switchboard_egress::Target;
use switchboard_engine::{AgentName, state_label};

use super::content::Content;
use crate::definition_files::FileDefinition;
use crate::definition_reader::{DefinitionReader, Problem, kind, quoted};
use crate::feed::Pattern;

/// The longest name: it is a word of topics and part of headers and of keys.
const NAME_BYTES: usize = 64;
/// The longest content as it is written.
pub(super) const CONTENT_BYTES: usize = 16 << 10;
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

impl Definition {
    /// Reads one. `name` is the one that it has if it does not say.
    pub(crate) fn read(given: &Value, name: Option<&str>) -> Result<Self, Vec<Problem>> {
        let mut reader = DefinitionReader::default();
        let Some(members) = reader.object(given, "", &["name", "when", "then", "content", "enabled"]) else {
            return Err(reader.problems);
        };
        let name = reader.name(members, name);
        let (topic, pattern, agent, state) = reader.when(members.get("when").unwrap_or(&Value::Null));
        let then = reader.then(members.get("then").unwrap_or(&Value::Null));
        let enabled = reader.flag(members, "enabled", true);
        let content = match (members.get("content").filter(|content| !content.is_null()), &then) {
            (Some(given), Some(then)) => reader.content(given, then),
            _ => None,
        };
        if matches!(then, Some(Then::Send { .. })) && topic.split('.').next() == Some(DROPPED) {
            let wrong = "is about messages that were refused, and what this route sends may be refused too";
            reader.add("when.topic", wrong, "name another topic, or a url under then");
        }
        match (then, pattern) {
            (Some(then), Some(pattern)) if reader.problems.is_empty() => {
                Ok(Self { name, topic, pattern, agent, state, then, content, enabled })
            }
            _ => Err(reader.problems),
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

impl FileDefinition for Definition {
    fn read(given: &Value, name: Option<&str>) -> Result<Self, Vec<Problem>> {
        Self::read(given, name)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Scheme, host and port of an address.
pub(super) fn origin(url: &str) -> String {
    Target::parse(url).map_or_else(|_| String::new(), |target| target.origin())
}

impl DefinitionReader {
    fn name(&mut self, members: &Map<String, Value>, usual: Option<&str>) -> String {
        let right = format!("1 to {NAME_BYTES} letters, digits, - and _");
        let given = self.text(members, ("", "name"), &right).or(usual.filter(|_| !members.contains_key("name")));
        let Some(name) = given else {
            if !self.has_problem("name") {
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
        if topic.is_none() && !self.has_problem("when.topic") {
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
            let secret_env = self.variable(members, ("then", "secretEnv"));
            return Some(Then::Post { url: url?, secret_env });
        }
        if has("secretEnv") {
            self.add("then.secretEnv", "is for a url", "name the url, or leave it out");
        }
        let skill = self.text(members, ("then", "skill"), "the id of a skill").map(str::to_owned);
        let targets = self.targets(members, "then");
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
