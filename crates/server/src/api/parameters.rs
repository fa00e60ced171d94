//! The query of a request under `/api`. What cannot be read is refused with the name of the parameter and what would be
//! right; a filter that is silently left out would show more than was asked for.

use switchboard_a2a::TaskId;
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::WebhookState;
use switchboard_webhooks::state_named;

use super::problem::Problem;
use crate::bindings::percent;

/// What a value is cut to where it is said.
const QUOTED: usize = 80;

/// The pairs of a query.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn read(query: Option<&str>) -> Result<Self, Problem> {
        percent::query(query).map(Self).map_err(|error| Problem::Query(error.message))
    }

    /// The value under a name; empty is the same as absent.
    fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn task(&self) -> Option<TaskId> {
        self.value("task").map(TaskId::from)
    }

    pub(super) fn caller(&self) -> Option<CallerId> {
        self.value("caller").map(CallerId::from)
    }

    pub(super) fn state(&self) -> Result<Option<WebhookState>, Problem> {
        let Some(given) = self.value("state") else { return Ok(None) };
        match state_named(given) {
            Some(state) => Ok(Some(state)),
            None => Err(wrong("state", given, "active, paused, disabled or finished")),
        }
    }

    /// The number behind which a page begins.
    pub(super) fn after(&self) -> Result<i64, Problem> {
        let Some(given) = self.value("after") else { return Ok(0) };
        let number = given.parse().ok().filter(|number| *number >= 0);
        number.ok_or_else(|| wrong("after", given, "the number under next of the page before"))
    }

    pub(super) fn page_size(&self) -> Result<usize, Problem> {
        let Some(given) = self.value("pageSize") else { return Ok(50) };
        let size = given.parse().ok().filter(|size| (1..=100).contains(size));
        size.ok_or_else(|| wrong("pageSize", given, "a number from 1 to 100"))
    }

    /// How long two secrets are used side by side.
    pub(super) fn overlap_seconds(&self) -> Result<u64, Problem> {
        let Some(given) = self.value("overlapSeconds") else { return Ok(24 * 60 * 60) };
        let seconds = given.parse().ok().filter(|seconds| *seconds <= 366 * 24 * 60 * 60);
        seconds.ok_or_else(|| wrong("overlapSeconds", given, "a number of seconds from 0 to 31622400"))
    }
}

fn wrong(name: &'static str, given: &str, wanted: &'static str) -> Problem {
    Problem::Parameter { name, given: given.chars().take(QUOTED).collect(), wanted }
}
