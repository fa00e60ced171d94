//! How the kernel's types stand in columns. The numbers are on disk: they may be added to, never changed.

use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use switchboard_a2a::TaskState;
use switchboard_engine::store::Phase;
use switchboard_engine::store::hub::{HealthBy, HealthStep};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::webhooks::{DeliveryState, WebhookState};
use uuid::Uuid;

pub(crate) fn state_number(state: TaskState) -> i64 {
    match state {
        TaskState::Unspecified => 0,
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
    }
}

/// The condition `state IN (…)` of the states that nothing follows.
pub(crate) const TERMINAL_STATES: &str = "state IN (3, 4, 5, 7)";

pub(crate) fn state_from(column: usize, number: i64) -> rusqlite::Result<TaskState> {
    use TaskState::*;
    let all = [Unspecified, Submitted, Working, Completed, Failed, Canceled, InputRequired, Rejected, AuthRequired];
    numbered(&all, state_number, column, number)
}

/// The value that has a number, or an error that names the column.
fn numbered<T: Copy>(all: &[T], number_of: fn(T) -> i64, column: usize, number: i64) -> rusqlite::Result<T> {
    let found = all.iter().copied().find(|value| number_of(*value) == number);
    found.ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Ordered so that `phase < 3` is everything a turn should be working on and `phase < 4` everything alive; partial indexes
/// depend on that, so that a phase that came later has a number below them.
pub(crate) fn phase_number(phase: Phase) -> i64 {
    match phase {
        Phase::Requeued => -1,
        Phase::Queued => 0,
        Phase::Running => 1,
        Phase::Interrupted => 2,
        Phase::Parked => 3,
        Phase::Done => 4,
    }
}

pub(crate) fn phase_from(column: usize, number: i64) -> rusqlite::Result<Phase> {
    use Phase::*;
    numbered(&[Requeued, Queued, Running, Interrupted, Parked, Done], phase_number, column, number)
}

/// Zero is the most frequent one, which costs no entry in the index of the others.
pub(crate) fn via_number(via: Via) -> i64 {
    match via {
        Via::A2a => 0,
        Via::Api => 1,
        Via::Cron => 2,
        Via::Route => 3,
        Via::Channel => 4,
    }
}

pub(crate) fn via_from(column: usize, number: i64) -> rusqlite::Result<Via> {
    use Via::*;
    numbered(&[A2a, Api, Cron, Route, Channel], via_number, column, number)
}

/// Ordered so that `state < 2` is everything that still has to be told something.
pub(crate) fn webhook_state_number(state: WebhookState) -> i64 {
    match state {
        WebhookState::Active => 0,
        WebhookState::Paused => 1,
        WebhookState::Disabled => 2,
        WebhookState::Finished => 3,
    }
}

pub(crate) fn webhook_state_from(column: usize, number: i64) -> rusqlite::Result<WebhookState> {
    use WebhookState::*;
    numbered(&[Active, Paused, Disabled, Finished], webhook_state_number, column, number)
}

pub(crate) fn delivery_state_number(state: DeliveryState) -> i64 {
    match state {
        DeliveryState::Pending => 0,
        DeliveryState::Delivered => 1,
        DeliveryState::Dead => 2,
    }
}

pub(crate) fn delivery_state_from(column: usize, number: i64) -> rusqlite::Result<DeliveryState> {
    use DeliveryState::*;
    numbered(&[Pending, Delivered, Dead], delivery_state_number, column, number)
}

pub(crate) fn health_step_number(step: HealthStep) -> i64 {
    match step {
        HealthStep::Minute => 0,
        HealthStep::Hour => 1,
    }
}

pub(crate) fn health_by_number(by: HealthBy) -> i64 {
    match by {
        HealthBy::All => 0,
        HealthBy::Skill => 1,
        HealthBy::Caller => 2,
    }
}

pub(crate) fn health_by_from(column: usize, number: i64) -> rusqlite::Result<HealthBy> {
    use HealthBy::*;
    numbered(&[All, Skill, Caller], health_by_number, column, number)
}

/// An identifier as a column: 16 bytes if it is a UUID as we spell them, else its text. Which one is unambiguous,
/// because the database tells bytes from text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Identifier<'a> {
    Uuid(Uuid),
    Text(&'a str),
}

impl<'a> Identifier<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        // Only the spelling that is given back when it is read may be shortened.
        if text.len() != 36 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Self::Text(text);
        }
        Uuid::from_str(text).map_or(Self::Text(text), Self::Uuid)
    }
}

impl ToSql for Identifier<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Uuid(uuid) => ValueRef::Blob(uuid.as_bytes()),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// The text that an [`Identifier`] was made of.
pub(crate) struct IdentifierText(pub(crate) String);

impl FromSql for IdentifierText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Text(_) => value.as_str().map(|text| Self(text.to_owned())),
            ValueRef::Blob(bytes) => {
                let uuid = Uuid::from_slice(bytes)
                    .map_err(|_| FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: bytes.len() })?;
                Ok(Self(uuid.hyphenated().to_string()))
            }
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// A range of identifiers as columns that begin with the same text.
pub(crate) struct PrefixRange {
    pub(crate) first: Value,
    pub(crate) last: Value,
}

impl PrefixRange {
    /// Those that are text; and those that are UUIDs, if one can begin so.
    pub(crate) fn all(prefix: &str) -> Vec<Self> {
        let mut ranges = vec![Self { first: prefix.to_owned().into(), last: format!("{prefix}{}", char::MAX).into() }];
        let filled = |with: &str| {
            // Hyphens have to be where a UUID has them.
            let rest = &with[prefix.len().min(with.len())..];
            match Identifier::new(&format!("{prefix}{rest}")) {
                Identifier::Uuid(uuid) => Some(Value::Blob(uuid.as_bytes().to_vec())),
                Identifier::Text(_) => None,
            }
        };
        if prefix.is_ascii()
            && let Some(first) = filled("00000000-0000-0000-0000-000000000000")
            && let Some(last) = filled("ffffffff-ffff-ffff-ffff-ffffffffffff")
        {
            ranges.push(Self { first, last });
        }
        ranges
    }
}
