//! How the kernel's types stand in columns. The numbers are on disk: they may be added to, never changed.

use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use switchboard_a2a::TaskState;
use switchboard_engine::store::Phase;
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
    Ok(match number {
        0 => TaskState::Unspecified,
        1 => TaskState::Submitted,
        2 => TaskState::Working,
        3 => TaskState::Completed,
        4 => TaskState::Failed,
        5 => TaskState::Canceled,
        6 => TaskState::InputRequired,
        7 => TaskState::Rejected,
        8 => TaskState::AuthRequired,
        _ => return Err(rusqlite::Error::IntegralValueOutOfRange(column, number)),
    })
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
    Ok(match number {
        -1 => Phase::Requeued,
        0 => Phase::Queued,
        1 => Phase::Running,
        2 => Phase::Interrupted,
        3 => Phase::Parked,
        4 => Phase::Done,
        _ => return Err(rusqlite::Error::IntegralValueOutOfRange(column, number)),
    })
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
    Ok(match number {
        0 => WebhookState::Active,
        1 => WebhookState::Paused,
        2 => WebhookState::Disabled,
        3 => WebhookState::Finished,
        _ => return Err(rusqlite::Error::IntegralValueOutOfRange(column, number)),
    })
}

pub(crate) fn delivery_state_from(column: usize, number: i64) -> rusqlite::Result<DeliveryState> {
    Ok(match number {
        0 => DeliveryState::Pending,
        1 => DeliveryState::Delivered,
        2 => DeliveryState::Dead,
        _ => return Err(rusqlite::Error::IntegralValueOutOfRange(column, number)),
    })
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

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn identifiers_come_back_as_they_were_given() {
        let connection = Connection::open_in_memory().unwrap();
        for text in [
            "019a0000-0000-7000-8000-00000000abcd",
            "019A0000-0000-7000-8000-00000000ABCD",
            "019a00000000700080000000000abcd00000",
            "",
            "task 1",
            "sixteen bytes !!",
        ] {
            let IdentifierText(back) =
                connection.query_row("SELECT ?1", [Identifier::new(text)], |row| row.get(0)).unwrap();
            assert_eq!(back, text);
        }
        assert!(matches!(Identifier::new("019a0000-0000-7000-8000-00000000abcd"), Identifier::Uuid(_)));
    }

    #[test]
    fn numbers_on_disk_are_read_as_they_are_written() {
        for number in 0..9 {
            assert_eq!(state_number(state_from(0, number).unwrap()), number);
            let terminal = TERMINAL_STATES.contains(&number.to_string());
            assert_eq!(state_from(0, number).unwrap().is_terminal(), terminal);
        }
        for number in -1..5 {
            assert_eq!(phase_number(phase_from(0, number).unwrap()), number);
        }
        for number in 0..4 {
            assert_eq!(webhook_state_number(webhook_state_from(0, number).unwrap()), number);
        }
        assert!(state_from(0, 9).is_err() && phase_from(0, 5).is_err() && phase_from(0, -2).is_err());
        assert!(webhook_state_from(0, 4).is_err() && delivery_state_from(0, 3).is_err());
    }
}
