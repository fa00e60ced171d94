//! What routes owe, as jobs: one for each hit, which has no time of its own, and one for each route that works through them
//! in their order. The names of hits sort as the events do.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedCursor, Position};
use switchboard_engine::store::hub::NewJob;

use super::Routes;
use super::deliver::MATCH_KIND;

/// Hits that are deleted at a time.
const PAGE: usize = 500;
/// The time of a job that only another one works through.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// An event that a route is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hit {
    /// Its item.
    pub(super) cursor: String,
    pub(super) topic: String,
}

/// What a route's job keeps between its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Failures in a row.
    #[serde(default)]
    pub(super) attempts: u32,
    /// The first and the last hit that were tried together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tried: Option<(String, String)>,
}

/// The beginning of the names of a route's hits.
pub(super) fn prefix(route: &str) -> String {
    format!("{MATCH_KIND}:{route}:")
}

/// A hit of a route.
pub(super) fn hit(route: &str, cursor: FeedCursor, topic: &str) -> NewJob {
    let Position { major, row, seq } = cursor.position;
    let place = format!("{:016x}.{major:016x}.{row:016x}.{:016x}", cursor.epoch.0, seq.0);
    let hit = Hit { cursor: cursor.to_string(), topic: topic.to_owned() };
    NewJob {
        name: format!("{}{place}", prefix(route)),
        kind: MATCH_KIND.to_owned(),
        run_at: NEVER,
        body: Bytes::from(serde_json::to_vec(&hit).unwrap_or_default()),
    }
}

/// The job that delivers what a route owes.
pub(super) fn delivery(route: &str, now: Timestamp) -> NewJob {
    NewJob {
        name: format!("{MATCH_KIND}:{route}"),
        kind: MATCH_KIND.to_owned(),
        run_at: now,
        body: Bytes::from_static(b"{}"),
    }
}

impl Routes {
    /// Deletes all that a route owes, because it is gone or not enabled.
    pub(super) async fn forget(&self, route: &str) -> Result<(), StoreError> {
        let most = self.parts.config.hub.routes.owed.get() as u64;
        loop {
            let hits = self.parts.store.jobs_named(&prefix(route), "", PAGE).await?;
            if hits.is_empty() {
                return Ok(());
            }
            let names = hits.into_iter().map(|hit| hit.name).collect();
            let removed = self.parts.store.remove_jobs(names).await?;
            if let Some(known) = self.table().find(route) {
                known.state.settled(removed as u64, most);
            }
        }
    }
}

/// The route of such a job.
pub(super) fn route_of(job: &NewJob) -> Option<&str> {
    let name = job.name.strip_prefix(MATCH_KIND)?.strip_prefix(':')?;
    (!name.contains(':')).then_some(name)
}
