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

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_a2a::{Json, Part};

    fn data(name: &str) -> Artifact {
        Artifact::new(vec![Part::data(Json::parse("{}").unwrap())]).named(name)
    }

    fn words(artifacts: &[(Artifact, bool)]) -> Option<String> {
        let mut produced = ProducedArtifacts::default();
        for (artifact, append) in artifacts {
            produced.add(artifact, *append);
        }
        produced.into_text()
    }

    #[test]
    fn a_short_text_is_repeated_whole() {
        let first = Artifact::text("Hello, ");
        let more = Artifact { artifact_id: first.artifact_id.clone(), ..Artifact::text("world") };
        assert_eq!(words(&[(first, false), (more, true)]).as_deref(), Some("Hello, world"));
        let longest = "x".repeat(ANSWER_BYTES);
        assert_eq!(words(&[(Artifact::text(&longest), false)]), Some(longest));
        assert_eq!(words(&[]), None);
    }

    #[test]
    fn a_long_text_is_begun_and_the_rest_pointed_to() {
        let first = Artifact::text("ö".repeat(10)).named("book");
        let more = Artifact { artifact_id: first.artifact_id.clone(), ..Artifact::text("x".repeat(ANSWER_BYTES)) };
        let words = words(&[(first, false), (more.clone(), true), (more, true)]).unwrap();
        assert!(words.starts_with("öööööööööö") && words.contains("xxx…\n\n"), "{words}");
        assert!(words.ends_with("The whole answer is in the artifact \"book\"."), "{words}");
        assert_eq!(words.chars().filter(|letter| "öx".contains(*letter)).count(), BEGINNING_CHARACTERS);
    }

    #[test]
    fn what_is_no_text_is_named() {
        assert_eq!(words(&[(data("a"), false)]).as_deref(), Some("The answer is in the artifact \"a\"."));
        let two = words(&[(data("a"), false), (data("b"), false)]);
        assert_eq!(two.as_deref(), Some("The answer is in the artifacts \"a\" and \"b\"."));
        let many: Vec<_> = (0..9).map(|number| (data(&number.to_string()), false)).collect();
        let expected = r#"The answer is in the artifacts "0", "1", "2", "3", "4" and others."#;
        assert_eq!(words(&many).as_deref(), Some(expected));
        let unnamed = Artifact { name: None, ..data("") };
        let id = unnamed.artifact_id.to_string();
        assert!(words(&[(unnamed, true)]).unwrap().contains(&id), "also if only its end was produced here");
    }

    #[test]
    fn a_text_beside_data_is_repeated_and_the_rest_pointed_to() {
        let table = || Part::data(Json::parse("{}").unwrap());
        let whole = Artifact::new(vec![Part::text("short"), table()]).named("both");
        let expected = "short\n\nThe whole answer is in the artifact \"both\".";
        assert_eq!(words(&[(whole.clone(), false)]).as_deref(), Some(expected));
        let first = Artifact { parts: vec![Part::text("short")], ..whole.clone() };
        let more = Artifact { parts: vec![table()], ..whole.clone() };
        assert_eq!(words(&[(first, false), (more, true)]).as_deref(), Some(expected), "also if it comes later");
        assert_eq!(words(&[(whole, false), (Artifact::text("last"), false)]).as_deref(), Some("last"));
    }

    #[test]
    fn chunks_of_two_artifacts_are_not_mixed() {
        let (one, two) = (Artifact::text("one"), Artifact::text("two"));
        let more = Artifact { artifact_id: one.artifact_id.clone(), ..Artifact::text(" and more") };
        assert_eq!(words(&[(one, false), (two, false), (more, true)]).as_deref(), Some("two"));
    }
}
