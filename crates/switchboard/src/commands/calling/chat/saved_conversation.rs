//! A conversation with one agent in a file. Written to a temporary file and renamed, so that it is never half written.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_client::Conversation;

use crate::commands::calling::Failure;

#[derive(Serialize, Deserialize)]
pub(super) struct SavedConversation {
    agent: String,
    #[serde(flatten)]
    conversation: Conversation,
}

impl SavedConversation {
    /// The conversation with this agent that the file holds; a new one if there is no file.
    pub(super) fn read(file: &Path, agent: &str) -> Result<Conversation, Failure> {
        let text = match std::fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Conversation::default()),
            Err(error) => return Err(failed(file, &format!("cannot be read: {error}"))),
        };
        let saved: Self = serde_json::from_slice(&text)
            .map_err(|error| failed(file, &format!("holds no conversation of ours: {error}")))?;
        if saved.agent != agent {
            return Err(failed(file, &format!("holds a conversation with {}, not with {agent}", saved.agent)));
        }
        Ok(saved.conversation)
    }

    pub(super) fn check_writable(file: &Path) -> Result<(), Failure> {
        let beside = beside(file);
        let tried = std::fs::File::create(&beside).and_then(|_| std::fs::remove_file(&beside));
        tried.map_err(|error| failed(file, &format!("cannot be written: {error}")))
    }

    pub(super) fn write(file: &Path, agent: &str, conversation: &Conversation) -> Result<(), Failure> {
        let saved = Self { agent: agent.to_owned(), conversation: conversation.clone() };
        let written = serde_json::to_vec_pretty(&saved).map_err(std::io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            let beside = beside(file);
            let mut new = std::fs::File::create(&beside)?;
            new.write_all(&text)?;
            new.sync_all()?;
            std::fs::rename(&beside, file)
        });
        written.map_err(|error| failed(file, &format!("cannot be written: {error}")))
    }

    /// Forgets it; a file that is not there is forgotten already.
    pub(super) fn remove(file: &Path) -> Result<(), Failure> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed(file, &format!("cannot be removed: {error}")))
            }
            _ => Ok(()),
        }
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    beside.into()
}

fn failed(file: &Path, what: &str) -> Failure {
    Failure::internal(format!("{} {what}", file.display())).with_hint("name another file with --save")
}
