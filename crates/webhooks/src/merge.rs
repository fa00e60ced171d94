//! Merges queued updates of one artifact, so that a receiver that was away gets the chunks it missed in few deliveries.

use switchboard_a2a::{Metadata, TaskArtifactUpdate};
use switchboard_engine::fold::extend_artifact;

/// Merges a later update into an earlier one, and returns true, if both are of the same artifact.
pub(crate) fn merge(earlier: &mut TaskArtifactUpdate, later: &TaskArtifactUpdate) -> bool {
    if earlier.artifact.artifact_id != later.artifact.artifact_id {
        return false;
    }
    if later.append {
        extend_artifact(&mut earlier.artifact, &later.artifact);
    } else {
        // A replacement: the earlier parts are obsolete.
        earlier.artifact = later.artifact.clone();
        earlier.append = false;
    }
    earlier.last_chunk = later.last_chunk;
    if let Some(metadata) = &later.metadata {
        earlier.metadata.get_or_insert_with(Metadata::default).merge(metadata);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(json: &str) -> TaskArtifactUpdate {
        let json = format!(r#"{{"taskId":"t","contextId":"c",{json}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn merged(updates: &[&str]) -> String {
        let mut first = update(updates[0]);
        for later in &updates[1..] {
            assert!(merge(&mut first, &update(later)));
        }
        serde_json::to_string(&first).unwrap()
    }

    #[test]
    fn chunks_add_up() {
        let words = merged(&[
            r#""artifact":{"artifactId":"a","parts":[{"text":"one "}]}"#,
            r#""artifact":{"artifactId":"a","parts":[{"text":"two "}]},"append":true"#,
            r#""artifact":{"artifactId":"a","name":"n","parts":[{"text":"three"}]},"append":true,"lastChunk":true"#,
        ]);
        let expected = r#"{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","name":"n","parts":[{"text":"one two three"}]},"lastChunk":true}"#;
        assert_eq!(words, expected);
    }

    #[test]
    fn a_replacement_replaces_and_other_artifacts_stay_apart() {
        let replaced = merged(&[
            r#""artifact":{"artifactId":"a","parts":[{"text":"old"}]},"append":true"#,
            r#""artifact":{"artifactId":"a","parts":[{"text":"new"}]}"#,
            r#""artifact":{"artifactId":"a","parts":[{"text":"er"}]},"append":true"#,
        ]);
        assert_eq!(
            replaced,
            r#"{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"newer"}]}}"#
        );
        let mut one = update(r#""artifact":{"artifactId":"a","parts":[{"text":"x"}]}"#);
        let other = update(r#""artifact":{"artifactId":"b","parts":[{"text":"y"}]},"append":true"#);
        assert!(!merge(&mut one, &other));
    }
}
