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
