//! What an agent says of itself; the card is made from it.

use switchboard_a2a::Json;
use switchboard_a2a::card::{AgentExtension, AgentProvider};
use switchboard_a2a::extension::effect_domain::Effect;

use crate::tool_call::tool_call_extension;

/// An agent's description of itself.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// For people.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// Media types it reads.
    pub input_modes: Vec<String>,
    /// Media types it writes.
    pub output_modes: Vec<String>,
    /// Whether it can be streamed from.
    pub streaming: bool,
    /// When it may begin.
    pub start: Start,
    /// Whether it answers with tasks or with messages.
    pub replies: Replies,
    /// Whether it can be put away while it waits for an answer.
    pub park: Park,
    /// Where its work is done.
    pub execution: Execution,
    /// Extensions it supports.
    pub extensions: Vec<AgentExtension>,
    /// Who offers it.
    pub provider: Option<AgentProvider>,
    /// Where to read more.
    pub documentation_url: Option<String>,
    /// A picture.
    pub icon_url: Option<String>,
}

impl Manifest {
    /// A text agent with streaming on and everything else at its default.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            skills: Vec::new(),
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            streaming: true,
            start: Start::AfterCommit,
            replies: Replies::Task,
            park: Park::Allowed,
            execution: Execution::Local,
            extensions: Vec::new(),
            provider: None,
            documentation_url: None,
            icon_url: None,
        }
    }

    /// The same with one more skill.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// The same with a skill for each of its tools.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.skills.extend(tools.into_iter().map(Skill::from));
        self
    }

    /// The same, telling of its tool calls with [`crate::TaskHandle::tool_call`]: the card names the extension.
    #[must_use]
    pub fn tool_calls(mut self) -> Self {
        self.extensions.push(tool_call_extension());
        self
    }
}

/// Where an agent's work is done, which decides what its turns count against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// Here: its turns count as running tasks, and a shutdown waits for them.
    #[default]
    Local,
    /// On another server, which its turns only follow: they have a limit of their own ([`crate::Settings::remote_tasks`]),
    /// and a shutdown does not wait for them, because the next process follows on.
    Remote,
}

/// One thing an agent can do.
#[derive(Clone, Debug)]
pub struct Skill {
    /// Unique within the agent.
    pub id: String,
    /// For people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Things one might say to it.
    pub examples: Vec<String>,
    /// Words in a message that ask for it, where its caller names no skill.
    pub keywords: Vec<String>,
    /// Media types it reads, if not the agent's.
    pub input_modes: Vec<String>,
    /// Media types it writes, if not the agent's.
    pub output_modes: Vec<String>,
    /// Shown on the extended card only.
    pub private: bool,
    /// What it is expected to change outside of its tasks.
    pub effects: Vec<Effect>,
    /// The JSON Schema of its results.
    pub output_schema: Option<Json>,
}

impl Skill {
    /// A public skill.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags: Vec::new(),
            examples: Vec::new(),
            keywords: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            private: false,
            effects: Vec::new(),
            output_schema: None,
        }
    }

    /// The same with tags.
    #[must_use]
    pub fn tags(mut self, tags: &[&str]) -> Self {
        self.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self
    }

    /// The same with examples.
    #[must_use]
    pub fn examples(mut self, examples: &[&str]) -> Self {
        self.examples = examples.iter().map(|example| (*example).to_owned()).collect();
        self
    }
}

/// A tool of an agent, as its maker describes it. Each is a skill on the card.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    /// What programs call it: `search_repo`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it can do; the skill's tags.
    pub capabilities: Vec<String>,
    /// Things one might say to have it used.
    pub examples: Vec<String>,
}

impl From<Tool> for Skill {
    /// The tool's name is the skill's id, and in words its name: `search_repo` is "Search Repo".
    fn from(tool: Tool) -> Self {
        Self {
            name: title(&tool.name),
            id: tool.name,
            description: tool.description,
            tags: tool.capabilities,
            examples: tool.examples,
            keywords: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            private: false,
            effects: Vec::new(),
            output_schema: None,
        }
    }
}

fn title(name: &str) -> String {
    let words = name.split(['_', '-', '.', ' ']).filter(|word| !word.is_empty());
    let capitalized = words.map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    });
    capitalized.collect::<Vec<String>>().join(" ")
}

/// When an agent may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Once the message is committed. Right for every agent with effects outside.
    AfterCommit,
    /// At once; the message and the first output share one transaction. Only for agents in this process that touch
    /// nothing outside before their first output is committed.
    WithCommit,
}

/// Whether an agent answers with tasks or with messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Always a task.
    Task,
    /// Always a message.
    Message,
    /// Its first call decides.
    Either,
}

/// Whether an agent can be put away while it waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Park {
    /// Its question is all it needs; the answer may come to a new run.
    Allowed,
    /// It holds something alive; while it waits it counts as running.
    Never,
}
