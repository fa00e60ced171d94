//! How an agent elsewhere is served here under its name: the keys of an entry with `url` that are about its tasks, not
//! about the way to reach it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::section::Section;
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::{TimeLimit, TimeSpan};
use switchboard_host::config::value::Scalar;
use switchboard_host::{json_schema_of, section_keys, word_setting};

use crate::config::policy::Policy;
use crate::config::remote_agent::RemoteUrl;
use crate::config::skill::Skill;

/// How an agent elsewhere is served here.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default)]
pub struct RemoteServing {
    /// Whether it is served here under its name.
    ///
    /// `false`: it is called by commands only.
    pub serve: bool,
    /// Description on the card that is served here.
    ///
    /// Replaces what its own card says.
    pub description: Option<String>,
    /// How far people take part before its skills run.
    ///
    /// Its card may ask for more at once; less, if this does not say it, waits for `switchboard agents accept`.
    #[serde(skip_serializing_if = "Policy::is_empty")]
    pub policy: Policy,
    /// Skills beside those of its card.
    ///
    /// One that is named like a skill of the card replaces that, and stays if the card drops it.
    pub skills: Vec<Skill>,
    /// Whether it streams, until its card is known.
    pub streaming: bool,
    /// Address that it is told to send webhooks to.
    ///
    /// `public`: `server.publicBaseUrl`; `internal`: `server.internalBaseUrl`; `none`: no webhooks, it is polled; or a
    /// URL. Without this key `public` where `server.publicBaseUrl` is set, else `none`.
    pub callback_base: Option<CallbackBase>,
    /// `true` is `callbackBase: public`, as some fleets write it.
    pub external: Option<bool>,
    /// Time between two looks at a task whose events come by webhook.
    pub poll: TimeSpan,
    /// Time that a message waits for an agent that cannot be reached.
    pub connect_within: TimeSpan,
    /// Time after which a task is given up whose agent cannot be reached any more.
    pub lost_after: TimeSpan,
    /// Time that a task may take there, without the time it waits for people.
    pub deadline: TimeLimit,
    /// What becomes of a message that may have arrived or not when this server was killed.
    ///
    /// `safe`: it is sent again only if the agent recognises the repetition; `always`: it is sent again.
    pub resend: Resend,
    /// What a message in place of a task becomes.
    ///
    /// `task`: a completed task; `either`: it is passed on as it is.
    pub replies: RemoteReplies,
    /// Tasks that are followed at a time.
    ///
    /// Further ones wait.
    pub max_parallel: Count,
    /// What is done about a card with other skills, hosts or security.
    ///
    /// `accept`: it counts at once; `hold`: once `switchboard agents accept` has said so.
    pub card_changes: CardChanges,
    /// Taken and shown, without effect.
    pub subscribes_to: Vec<String>,
}

/// Address that an agent elsewhere is told to send webhooks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackBase {
    Public,
    Internal,
    None,
    Url(RemoteUrl),
}

/// What becomes of a message that may have arrived or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resend {
    /// Sent again if the agent recognises the repetition.
    Safe,
    /// Sent again.
    Always,
}

/// What a message in place of a task becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RemoteReplies {
    /// A completed task.
    Task,
    /// The message.
    Either,
}

/// What is done about a card with other skills, hosts or security.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CardChanges {
    /// It counts at once.
    Accept,
    /// It waits for an administrator.
    Hold,
}

word_setting!(Resend: "safe" => Safe or "always" => Always);

word_setting!(RemoteReplies: "task" => Task or "either" => Either);

word_setting!(CardChanges: "accept" => Accept or "hold" => Hold);

section_keys!(RemoteServing with check, {
    serve: true,
    description: None,
    policy (section): Policy::default(),
    skills (unread): Vec::new(),
    streaming: true,
    callback_base: None,
    external: None,
    poll (nonzero): TimeSpan::from_seconds(30),
    connect_within: TimeSpan::from_minutes(2),
    lost_after (nonzero): TimeSpan::from_minutes(10),
    deadline: TimeLimit(Some(TimeSpan::from_hours(24))),
    resend: Resend::Safe,
    replies: RemoteReplies::Task,
    max_parallel: Count::new(100),
    card_changes: CardChanges::Accept,
    subscribes_to: Vec::new(),
});

impl RemoteServing {
    fn check(&mut self, section: &mut Section<'_, '_>) {
        self.skills = Skill::read_all(section, None);
        if section.is_set("external") && section.is_set("callbackBase") {
            section.refuse("external", "callbackBase says the same", "remove one of the two");
        }
        if self.external == Some(true) {
            self.callback_base = Some(CallbackBase::Public);
        }
    }
}

impl Scalar for CallbackBase {
    const WRITE: &'static str = "public, internal, none or an address that begins with https:// or http://";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        match text {
            "public" => Ok(Self::Public),
            "internal" => Ok(Self::Internal),
            "none" => Ok(Self::None),
            url if url.contains("://") => RemoteUrl::from_text(url).map(Self::Url),
            _ => Err(Self::mismatch(text, "is no address")),
        }
    }
}

impl Serialize for CallbackBase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::None => "none",
            Self::Url(url) => url.as_str(),
        })
    }
}

json_schema_of!(CallbackBase, { "type": "string", "pattern": "^(public|internal|none|https?://[^/@]+.*)$" });
