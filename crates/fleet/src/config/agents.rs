//! `agents.yaml` and the files of `agents.d/`: who is served, and who is called elsewhere.
//! Each file holds a list; a name may occur once in all of them together.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::document::Node;
use switchboard_host::config::problem::{Mismatch, Origin};
use switchboard_host::config::section::{Reader, Section};
use switchboard_host::config::value::{Scalar, choice};
use switchboard_host::{section_keys, word_setting};

use crate::config::cli_agent::CliAgent;
use crate::config::delegation::{AgentLimits, DelegateEntry};
use crate::config::named_files::NamedContent;
use crate::config::policy::Policy;
use crate::config::remote_agent::RemoteAgent;
use crate::config::rest_files::RestFiles;
use crate::config::skill::Skill;

/// A file of agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields, title = "Switchboard agents")]
pub struct Agents {
    /// Agents to serve, and agents elsewhere.
    pub agents: Vec<Entry>,
}

/// One item of the list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Entry {
    /// An agent that is served.
    Hosted(Box<Agent>),
    /// An agent elsewhere.
    Remote(Box<RemoteAgent>),
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Agent {
    /// Name.
    ///
    /// Part of its address, `/a2a/{name}`.
    pub name: AgentName,
    /// Who does the work.
    #[serde(flatten)]
    pub kind: Kind,
    /// Description on the card.
    ///
    /// Replaces what the agent says of itself.
    #[schemars(default)]
    pub description: Option<String>,
    /// How clients of version 0.3 are treated.
    #[schemars(default)]
    pub v03: Version03,
    /// When this agent's message streams end.
    #[schemars(default)]
    pub streams: AgentStreams,
    /// Whether a message id that was seen before is answered as a repetition.
    ///
    /// Off, because real clients reuse ids; an `Idempotency-Key` header always works.
    #[schemars(default)]
    pub dedupe_message_id: bool,
    /// What webhooks of this agent's tasks are sent.
    #[schemars(default)]
    pub webhooks: AgentWebhooks,
    /// Agents it may call.
    ///
    /// Names of agents, `NAME/SKILL` for one skill of an agent, or `remote:*` for every agent elsewhere. Without any it may
    /// call none.
    #[schemars(default)]
    pub delegates: Vec<DelegateEntry>,
    /// Limits of its calls, where they are not those of the server.
    #[schemars(default)]
    pub delegation: AgentLimits,
    /// How far people take part before its skills run.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Policy::is_empty")]
    pub policy: Policy,
    /// Skills on the card.
    ///
    /// Replace what the agent says of itself; an empty list leaves that as it is.
    #[schemars(default)]
    pub skills: Vec<Skill>,
    /// What was in the files that it names. It counts when definitions are compared.
    #[serde(skip)]
    pub named_content: NamedContent,
    /// Where it was configured.
    #[schemars(skip)]
    pub origin: Origin,
}

/// Who does the work of an agent that is served.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Kind {
    /// An agent that comes with Switchboard.
    Builtin(BuiltinAgent),
    /// A program.
    Cli(Box<CliAgent>),
}

/// An agent that comes with Switchboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuiltinAgent {
    /// Built-in agent that does the work.
    ///
    /// `echo`, `guide` or `probe`.
    pub builtin: Builtin,
}

/// The agents that come with Switchboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Builtin {
    /// Says back what it hears.
    Echo,
    /// Holds a conversation that asks and waits.
    Guide,
    /// Does what its text says, for testing clients and proxies.
    Probe,
}

/// How clients of version 0.3 are treated.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Version03 {
    /// What a call does that does not say whether to wait.
    pub blocking: Blocking,
    /// Whether streams end when the agent asks for input or credentials.
    pub close_on_interrupt: bool,
    /// How often files are encoded as base64 over REST.
    ///
    /// `auto`: twice for Python's SDK, by its `User-Agent` and what it sends; `once` and `twice` are for callers that are taken for
    /// what they are not.
    pub rest_files: RestFiles,
}

/// What a call does that does not say whether to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Blocking {
    /// Waits for the result, as the specification says.
    Block,
    /// Returns the submitted task at once, as some fleets expect.
    Return,
}

/// When message streams of version 1.0 end.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct AgentStreams {
    /// Whether a message stream ends when the agent asks for input.
    pub close_on_input_required: bool,
}

/// What webhooks are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct AgentWebhooks {
    /// Form of a delivery, for webhooks that do not say it themselves.
    ///
    /// Without it version 1.0 gets stream responses and version 0.3 tasks.
    pub payload: Option<WebhookPayload>,
    /// Events that are delivered.
    pub events: WebhookEvents,
}

/// Form of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookPayload {
    /// The whole task as of the event.
    Task,
    /// The change of status, with what the task has made once it is completed.
    StatusUpdate,
    /// What a stream would carry.
    StreamResponse,
}

/// Events that are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookEvents {
    /// Every change of status, and in version 1.0 every artifact update.
    #[default]
    All,
    /// Every change of status.
    Status,
    /// Only when the task ends or waits for its caller.
    Stops,
}

section_keys!(Version03, {
    blocking: Blocking::Block,
    close_on_interrupt: true,
    rest_files: RestFiles::Auto,
});

section_keys!(AgentStreams, {
    close_on_input_required: true,
});

impl Agent {
    /// An agent of that name with nothing changed.
    fn new(name: AgentName, kind: Kind, origin: Origin) -> Self {
        Self {
            name,
            kind,
            description: None,
            v03: Version03::default(),
            streams: AgentStreams::default(),
            dedupe_message_id: false,
            webhooks: AgentWebhooks::default(),
            delegates: Vec::new(),
            delegation: AgentLimits::default(),
            policy: Policy::default(),
            skills: Vec::new(),
            named_content: NamedContent::default(),
            origin,
        }
    }

    /// The demo agents, for a workspace that configures none: one of each kind, under its own name.
    pub fn demo_fleet() -> Vec<Self> {
        let named = |(name, builtin): (&str, Builtin)| {
            let kind = Kind::Builtin(BuiltinAgent { builtin });
            AgentName::from_text(name).ok().map(|name| Self::new(name, kind, Origin::Default))
        };
        Builtin::NAMES.into_iter().filter_map(named).collect()
    }

    /// Reads one item of the list; nothing when it cannot be an agent, which is then reported. All keys are read even if
    /// the name or the kind is wrong, so that all problems show at once.
    fn read(section: &mut Section<'_, '_>, name: Option<AgentName>, origin: Origin) -> Option<Self> {
        let mut kind = Kind::read(section);
        let (mut description, mut dedupe_message_id) = (None, false);
        let (mut v03, mut streams) = (Version03::default(), AgentStreams::default());
        let mut webhooks = AgentWebhooks::default();
        let (mut delegates, mut delegation) = (Vec::new(), AgentLimits::default());
        section.read("description", &mut description);
        section.section("v03", |section| v03.read(section));
        section.section("streams", |section| streams.read(section));
        section.read("dedupeMessageId", &mut dedupe_message_id);
        section.section("webhooks", |section| {
            section.read("payload", &mut webhooks.payload);
            section.read("events", &mut webhooks.events);
        });
        section.read("delegates", &mut delegates);
        section.section("delegation", |section| delegation.read(section));
        let mut policy = Policy::default();
        section.section("policy", |section| policy.read(section));
        let skills = Skill::read_all(section, kind.as_mut());
        policy.check_names(section, skills.iter().map(|skill| skill.name.as_str()));
        let (name, kind) = (name?, kind?);
        Some(Self {
            name,
            kind,
            description,
            v03,
            streams,
            dedupe_message_id,
            webhooks,
            delegates,
            delegation,
            policy,
            skills,
            named_content: NamedContent::default(),
            origin,
        })
    }
}

impl Kind {
    fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        if section.is_set("cli") {
            for key in ["builtin", "url"] {
                if section.is_set(key) {
                    section.mark_known(key);
                    section.refuse(key, "cli says already which agent it is", "keep one of the two");
                }
            }
            return CliAgent::read(section).map(|agent| Self::Cli(Box::new(agent)));
        }
        let builtin = section.require::<Builtin>("builtin");
        if !section.is_set("builtin") {
            // A key that is not known may be meant as one of these.
            section.mark_known("cli");
            section.mark_known("url");
            section.refuse_all(
                "does not say which agent it is",
                "add cli: for a program, builtin: echo, guide or probe, or url: for one elsewhere",
            );
        }
        builtin.map(|builtin| Self::Builtin(BuiltinAgent { builtin }))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(agent) => write!(formatter, "builtin {}", agent.builtin.name()),
            Self::Cli(agent) => write!(formatter, "cli {}", agent.cli),
        }
    }
}

impl Entry {
    /// Reads one item of the list; nothing when it cannot be an agent, which is then reported.
    fn read(section: &mut Section<'_, '_>, origin: Origin) -> Option<Self> {
        let name = section.require::<AgentName>("name");
        if !section.is_set("name") {
            section.refuse_all("has no name", "add name: with lowercase letters, digits and -");
        }
        if section.is_set("url") && !section.is_set("cli") {
            return RemoteAgent::read(section, name, origin).map(|agent| Self::Remote(Box::new(agent)));
        }
        Agent::read(section, name, origin).map(|agent| Self::Hosted(Box::new(agent)))
    }

    /// What it is called.
    pub fn name(&self) -> &AgentName {
        match self {
            Self::Hosted(agent) => &agent.name,
            Self::Remote(agent) => &agent.name,
        }
    }

    /// Whether it says the same as another one, wherever that stands, and names files with the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        let without_origin = |entry: &Self| {
            let mut entry = entry.clone();
            match &mut entry {
                Self::Hosted(agent) => agent.origin = Origin::Default,
                Self::Remote(agent) => agent.origin = Origin::Default,
            }
            entry
        };
        without_origin(self) == without_origin(other)
    }

    /// Where it was configured.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::Hosted(agent) => &agent.origin,
            Self::Remote(agent) => &agent.origin,
        }
    }
}

/// Reads one agent by itself; nothing when it cannot be one, which is then reported.
pub(crate) fn read_item(reader: &mut Reader<'_>, item: &Node) -> Option<Entry> {
    let mut entry = None;
    reader.read("", Some(item), |section| entry = Entry::read(section, item.origin.clone()));
    entry
}

/// Reads one file of agents and adds what it holds to those of the files before it.
pub(crate) fn read_file(reader: &mut Reader<'_>, file: &Node, entries: &mut Vec<Entry>) {
    reader.read("", Some(file), |root| {
        root.each("agents", |section, origin| {
            let Some(entry) = Entry::read(section, origin) else {
                return;
            };
            match entries.iter().find(|other| other.name() == entry.name()) {
                Some(other) => section.refuse(
                    "name",
                    format!("\"{}\" is already the name of the agent at {}", entry.name(), other.origin()),
                    "give one of the two another name",
                ),
                None => entries.push(entry),
            }
        });
    });
}

impl Builtin {
    const NAMES: [(&str, Self); 3] = [("echo", Self::Echo), ("guide", Self::Guide), ("probe", Self::Probe)];

    /// What `builtin` calls it.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, builtin)| *builtin == self).map_or("", |(name, _)| name)
    }
}

impl Scalar for Builtin {
    const WRITE: &'static str = "echo, guide or probe";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        choice(text, &Self::NAMES)
    }
}

word_setting!(Blocking: "block" => Block or "return" => Return);

word_setting!(WebhookPayload: "task" => Task, "status-update" => StatusUpdate or "stream-response" => StreamResponse);

word_setting!(WebhookEvents: "all" => All, "status" => Status or "stops" => Stops);
