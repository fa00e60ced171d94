//! Builds a message from the command line: its parts, metadata and extensions.

use switchboard_a2a::{Json, Message, MessageId, Metadata, Part, Role, SendRequest};

use crate::commands::calling::Failure;
use crate::commands::calling::parts::PartFlags;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to send")]
pub(super) struct MessageFlags {
    #[command(flatten)]
    parts: PartFlags,

    #[command(flatten)]
    about: AboutFlags,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to send")]
pub(super) struct AboutFlags {
    /// Skill that is wanted, by its id on the agent's card (switchboard skills lists them)
    #[arg(long, value_name = "ID")]
    skill: Option<String>,

    #[command(flatten)]
    metadata: MetadataFlag,
}

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to send")]
pub(super) struct MetadataFlag {
    /// Further facts for the agent that are no part of the content: a JSON object, or NAME=VALUE; can be repeated
    #[arg(
        long,
        value_name = "JSON|NAME=VALUE",
        env = "A2ACLI_METADATA",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    metadata: Vec<String>,
}

impl MessageFlags {
    pub(super) fn message(&self, words: &[String]) -> Result<Message, Failure> {
        self.about.message(self.parts.parts(words)?)
    }
}

impl AboutFlags {
    pub(super) fn message(&self, parts: Vec<Part>) -> Result<Message, Failure> {
        let metadata = self.read_metadata()?;
        Ok(Message {
            message_id: MessageId::generate(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts,
            metadata: (!metadata.is_empty()).then_some(metadata),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        })
    }

    fn read_metadata(&self) -> Result<Metadata, Failure> {
        let mut metadata = self.metadata.read()?;
        if let Some(skill) = &self.skill {
            let value = Json::from_serialize(skill).map_err(|error| Failure::internal(error.to_string()))?;
            metadata.insert("skill", value.clone());
            // Some agents read the one and some the other.
            metadata.insert("skillHint", value);
        }
        Ok(metadata)
    }
}

impl MetadataFlag {
    /// All that was typed, as one object.
    pub(super) fn read(&self) -> Result<Metadata, Failure> {
        let mut metadata = Metadata::default();
        for typed in &self.metadata {
            let wrong = |what: &str| {
                Failure::usage(format!("--metadata {typed}: {what}"), "write a JSON object, or NAME=VALUE")
            };
            if typed.trim_start().starts_with('{') {
                let object: Metadata = serde_json::from_str(typed).map_err(|error| wrong(&error.to_string()))?;
                metadata.merge(&object);
                continue;
            }
            let (name, value) = typed.split_once('=').ok_or_else(|| wrong("it is neither"))?;
            // A value that is not JSON is a string, so that it needs no second pair of quotes.
            let value = Json::parse(value).or_else(|_| Json::from_serialize(value));
            metadata.insert(name, value.map_err(|error| wrong(&error.to_string()))?);
        }
        Ok(metadata)
    }
}

pub(super) fn request(message: Message) -> SendRequest {
    SendRequest { tenant: None, message, configuration: None, metadata: None }
}
