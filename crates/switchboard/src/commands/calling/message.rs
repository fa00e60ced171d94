//! A message made of what was typed: words, files, data, and what is said about it.

use std::io::Read;
use std::path::Path;

use switchboard_a2a::{Json, Message, MessageId, Metadata, Part, PartContent, Role, SendRequest};

use crate::commands::calling::{Failure, media_type};

/// What a message says, and about what.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to send")]
pub(super) struct MessageFlags {
    /// File to send along, or the URL of one that the agent fetches; can be repeated
    #[arg(long = "file", visible_alias = "file-part", value_name = "PATH|URL")]
    files: Vec<String>,

    /// Structured data to send along: JSON, a file of JSON, or - for standard input; can be repeated
    #[arg(long = "data", visible_alias = "data-part", value_name = "JSON|PATH|-")]
    data: Vec<String>,

    #[command(flatten)]
    about: AboutFlags,
}

/// What is said about a message.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to send")]
pub(super) struct AboutFlags {
    /// Skill that is wanted, by its id on the agent's card (switchboard skills)
    #[arg(long, value_name = "ID")]
    skill: Option<String>,

    /// What else to say about the message: a JSON object, or NAME=VALUE; can be repeated
    #[arg(long, value_name = "JSON|NAME=VALUE", env = "A2ACLI_METADATA")]
    metadata: Vec<String>,
}

impl MessageFlags {
    /// The message that these words and flags make.
    pub(super) fn message(&self, text: &[String]) -> Result<Message, Failure> {
        let mut parts = Vec::new();
        match text {
            [] => {}
            [dash] if dash == "-" => parts.push(Part::text(standard_input()?)),
            words => parts.push(Part::text(words.join(" "))),
        }
        for file in &self.files {
            parts.push(file_part(file)?);
        }
        for data in &self.data {
            parts.push(Part::data(json(data)?));
        }
        if parts.is_empty() {
            return Err(Failure::usage(
                "there is nothing to send",
                "write a text, or - to read it from standard input",
            ));
        }
        self.about.message(parts)
    }
}

impl AboutFlags {
    /// A message of these parts.
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
            // What is no JSON is text, so that nobody needs two kinds of quotes.
            let value = Json::parse(value).or_else(|_| Json::from_serialize(value));
            metadata.insert(name, value.map_err(|error| wrong(&error.to_string()))?);
        }
        if let Some(skill) = &self.skill {
            let value = Json::from_serialize(skill).map_err(|error| Failure::internal(error.to_string()))?;
            metadata.insert("skill", value.clone());
            // Some agents read the one and some the other.
            metadata.insert("skillHint", value);
        }
        Ok(metadata)
    }
}

/// The request that carries a message.
pub(super) fn request(message: Message) -> SendRequest {
    SendRequest { tenant: None, message, configuration: None, metadata: None }
}

fn file_part(file: &str) -> Result<Part, Failure> {
    if file.starts_with("https://") || file.starts_with("http://") {
        return Ok(Part::new(PartContent::Url(file.to_owned())));
    }
    let path = Path::new(file);
    let content = read(path)?;
    let media_type = media_type::guess(path, &content).to_owned();
    let filename = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Part { content: PartContent::Raw(content), metadata: None, filename, media_type: Some(media_type) })
}

fn json(typed: &str) -> Result<Json, Failure> {
    let typed = if typed == "-" { standard_input()? } else { typed.to_owned() };
    let not_json = match Json::parse(&typed) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let path = Path::new(&typed);
    if !path.is_file() {
        let message = format!("--data is neither JSON ({not_json}) nor a file");
        return Err(Failure::usage(message, "write JSON in single quotes, or the path of a file that holds it"));
    }
    let text = String::from_utf8(read(path)?).unwrap_or_default();
    Json::parse(&text).map_err(|error| Failure::usage(format!("{typed} is not JSON: {error}"), ""))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed =
        |error| Failure::usage(format!("{} cannot be read: {error}", path.display()), "name a file that exists");
    std::fs::read(path).map_err(failed)
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}"), "give it as UTF-8 text"))?;
    // The line break at the end is the shell's and not the message's.
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}
