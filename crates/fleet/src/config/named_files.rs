//! The files that agents name beside those that list them: the client certificate for an agent elsewhere with its key, the
//! description of a program, and the JSON Schema of what a skill answers. What is in them is part of an agent's definition,
//! so that an agent is made anew when one of them is mended or renewed, though what lists the agent stays the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use switchboard_engine::sha256;
use switchboard_host::config::regular_file;

use crate::config::agents::{Entry, Kind};

/// What was in the files that an agent names when its definition was read. A digest, because a key should be in memory no
/// more often than it must.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedContent(Option<[u8; 32]>);

/// The files that agents name, each with the digest of its content.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NamedFiles(BTreeMap<PathBuf, [u8; 32]>);

impl NamedFiles {
    /// The same files as they are now.
    pub(crate) fn read_again(&self) -> Self {
        Self(self.0.keys().map(|path| (path.clone(), digest(path))).collect())
    }

    /// Adds the files that an entry names, and notes in the entry what is in them. What is known of them is not read once
    /// more: the entry has to have what later readings are compared with.
    pub(crate) fn note(&mut self, entry: &mut Entry, folder: &Path, known: &Self) {
        let paths = named_by(entry, folder);
        if paths.is_empty() {
            return;
        }
        let digests: Vec<[u8; 32]> = paths.into_iter().map(|path| self.add(path, known)).collect();
        let content = NamedContent(Some(sha256(digests.iter().map(|digest| digest.as_slice()))));
        match entry {
            Entry::Hosted(agent) => agent.named_content = content,
            Entry::Remote(agent) => agent.named_content = content,
        }
    }

    fn add(&mut self, path: PathBuf, known: &Self) -> [u8; 32] {
        let read = |path: &PathBuf| known.0.get(path).copied().unwrap_or_else(|| digest(path));
        *self.0.entry(path).or_insert_with_key(read)
    }

    /// Whether each file is what is known, or has been read as it is now before.
    pub(crate) fn is_settled(&self, known: &Self, before: Option<&Self>) -> bool {
        let was_read = |path: &PathBuf, digest: &[u8; 32]| {
            before.is_some_and(|before| before.0.get(path) == Some(digest)) || known.0.get(path) == Some(digest)
        };
        self.0.iter().all(|(path, digest)| was_read(path, digest))
    }
}

/// The files that an entry names; relative paths start at the workspace folder.
fn named_by(entry: &Entry, folder: &Path) -> Vec<PathBuf> {
    let (mut paths, skills) = match entry {
        Entry::Hosted(agent) => match &agent.kind {
            Kind::Builtin(_) => (Vec::new(), &agent.skills),
            Kind::Cli(cli) => (cli.adapter.iter().map(|file| folder.join(file)).collect(), &agent.skills),
        },
        Entry::Remote(agent) => {
            let files = agent.tls.files(folder).map(|(certificate, key)| vec![certificate, key]);
            (files.unwrap_or_default(), &agent.serving.skills)
        }
    };
    let schemas = skills.iter().filter_map(|skill| skill.output_schema.as_ref());
    paths.extend(schemas.map(|schema| folder.join(&schema.file)));
    paths
}

/// A file that cannot be read counts as what is wrong with it, so that it is another one once it can be read.
fn digest(path: &Path) -> [u8; 32] {
    match regular_file::read(path) {
        Ok(bytes) => sha256([bytes.as_slice()]),
        Err(error) => sha256([error.to_string().as_bytes()]),
    }
}
