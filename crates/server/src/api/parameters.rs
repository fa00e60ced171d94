//! The query of a request under `/api`. What cannot be read is refused with the name of the parameter and what would be
//! right; a filter that is silently left out would show more than was asked for.

use std::ops::RangeInclusive;
use std::str::FromStr;

use switchboard_a2a::TaskId;
use switchboard_engine::store::webhooks::WebhookState;
use switchboard_webhooks::state_named;

use super::error::ApiError;
use crate::bindings::percent;

/// What a value is cut to in an error.
const QUOTED: usize = 80;
/// Both name the task: the second is what answers call it.
const TASK: [&str; 2] = ["task", "taskId"];

pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads them, if each is one of those that are known here and is there once.
    pub(super) fn read(query: Option<&str>, known: &'static [&'static str]) -> Result<Self, ApiError> {
        let pairs = percent::query(query).map_err(|error| ApiError::Query(error.message))?;
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(ApiError::UnknownParameter { name: quoted(name), known });
            }
            if pairs.iter().take(index).any(|(other, _)| other == name) {
                return Err(ApiError::Repeated(quoted(name)));
            }
        }
        Ok(Self(pairs))
    }

    /// The value under a name; empty is the same as absent.
    fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn task(&self) -> Result<Option<TaskId>, ApiError> {
        match TASK.map(|name| self.value(name)) {
            [Some(task), Some(other)] if task != other => Err(wrong("taskId", other, "the same as task, or left out")),
            [task, other] => Ok(task.or(other).map(TaskId::from)),
        }
    }

    /// The same, but an empty id is an error: retrying all tasks because one id got lost would be too much.
    pub(super) fn task_unless_empty(&self) -> Result<Option<TaskId>, ApiError> {
        match self.0.iter().find_map(|(key, value)| TASK.into_iter().find(|name| key == name && value.is_empty())) {
            Some(name) => Err(wrong(name, "", "the id of a task, or left out for all tasks")),
            None => self.task(),
        }
    }

    pub(super) fn state(&self) -> Result<Option<WebhookState>, ApiError> {
        let Some(given) = self.value("state") else { return Ok(None) };
        match state_named(given) {
            Some(state) => Ok(Some(state)),
            None => Err(wrong("state", given, "active, paused, disabled or finished")),
        }
    }

    /// The number behind which a page begins.
    pub(super) fn after(&self) -> Result<i64, ApiError> {
        self.number("after", 0, 0..=i64::MAX, "the number under next of the page before")
    }

    pub(super) fn page_size(&self) -> Result<usize, ApiError> {
        self.number("pageSize", 50, 1..=100, "a number from 1 to 100")
    }

    /// How long two secrets are used side by side.
    pub(super) fn overlap_seconds(&self) -> Result<u64, ApiError> {
        let (day, year) = (24 * 60 * 60, 366 * 24 * 60 * 60);
        self.number("overlapSeconds", day, 0..=year, "a number of seconds from 0 to 31622400")
    }

    fn number<T: FromStr + PartialOrd>(
        &self,
        name: &'static str,
        default: T,
        range: RangeInclusive<T>,
        wanted: &'static str,
    ) -> Result<T, ApiError> {
        let Some(given) = self.value(name) else { return Ok(default) };
        let number = given.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| wrong(name, given, wanted))
    }
}

fn wrong(name: &'static str, given: &str, wanted: &'static str) -> ApiError {
    ApiError::Parameter { name, given: quoted(given), wanted }
}

fn quoted(given: &str) -> String {
    given.chars().take(QUOTED).collect()
}
