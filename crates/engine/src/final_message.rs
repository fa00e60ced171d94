//! The message of a completed task. Some readers look at artifacts only, others at the final message only: both are to
//! find the answer, or at least to learn where it is.

use switchboard_a2a::{Artifact, ArtifactId};

/// An answer up to this many bytes is repeated whole in the final message.
pub(crate) const ANSWER_BYTES: usize = 32 << 10;
/// Of a longer one, this many characters.
const BEGINNING_CHARACTERS: usize = 500;
/// More artifacts than this are not all named.
const MOST_NAMED: usize = 5;

/// What a run has produced, as far as its final message needs it.
#[derive(Default)]
pub(crate) struct ProducedArtifacts {
    /// The text of the last whole artifact, or its beginning once it is too long.
    text: String,
    is_cut: bool,
    /// Whether that artifact also has what is no text, which no message repeats.
    has_more_than_text: bool,
    last: Option<ArtifactLabel>,
    /// The first few artifacts, in the order they came.
    named: Vec<ArtifactLabel>,
    has_more: bool,
}

#[derive(Clone)]
struct ArtifactLabel {
    id: ArtifactId,
    /// As people are told of it.
    label: String,
}

impl ProducedArtifacts {
    /// Takes one more artifact or chunk in.
    pub(crate) fn add(&mut self, artifact: &Artifact, append: bool) {
        let continues = self.last.as_ref().is_some_and(|last| last.id == artifact.artifact_id);
        if append && !continues {
            // More of an artifact that is not the answer, or whose beginning another run produced.
            self.name(artifact);
            return;
        }
        if !append {
            self.text.clear();
            self.is_cut = false;
            self.has_more_than_text = false;
            self.last = Some(self.name(artifact));
        }
        for part in &artifact.parts {
            match part.as_text() {
                Some(text) => self.extend(text),
                None => self.has_more_than_text = true,
            }
        }
    }

    fn extend(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        if self.text.len() + text.len() <= ANSWER_BYTES {
            self.text.push_str(text);
            return;
        }
        self.is_cut = true;
        self.text = self.text.chars().chain(text.chars()).take(BEGINNING_CHARACTERS).collect();
    }

    fn name(&mut self, artifact: &Artifact) -> ArtifactLabel {
        if let Some(known) = self.named.iter().find(|named| named.id == artifact.artifact_id) {
            return known.clone();
        }
        let label = match &artifact.name {
            Some(name) => format!("\"{name}\""),
            None => artifact.artifact_id.to_string(),
        };
        let named = ArtifactLabel { id: artifact.artifact_id.clone(), label };
        if self.named.len() < MOST_NAMED {
            self.named.push(named.clone());
        } else {
            self.has_more = true;
        }
        named
    }

    /// What the final message says; nothing if nothing was produced.
    pub(crate) fn into_text(self) -> Option<String> {
        let last = self.last.or_else(|| self.named.last().cloned())?;
        if !self.text.is_empty() {
            let end = if self.is_cut { "…" } else { "" };
            return Some(match self.is_cut || self.has_more_than_text {
                true => format!("{}{end}\n\nThe whole answer is in the artifact {}.", self.text, last.label),
                false => self.text,
            });
        }
        let mut labels: Vec<&str> = self.named.iter().map(|named| named.label.as_str()).collect();
        if self.has_more {
            labels.push("others");
        }
        Some(match labels.split_last() {
            Some((end, rest)) if !rest.is_empty() => {
                format!("The answer is in the artifacts {} and {end}.", rest.join(", "))
            }
            _ => format!("The answer is in the artifact {}.", last.label),
        })
    }
}
