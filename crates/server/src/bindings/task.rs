//! Tasks on their way out: as much history as was asked for, and the stored bytes untouched where nothing was.

use switchboard_a2a::{Dialect, Error, Task, encode, rest_files};
use switchboard_engine::TaskReading;

use super::error::from_engine;

/// Whether the task stands alone or as the answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskForm {
    /// Getting and cancelling answer with the task itself.
    Bare,
    /// Sending wraps it, in the dialects that wrap.
    Sent,
}

/// How a task is rendered for a caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskStyle {
    pub(super) dialect: Dialect,
    pub(super) form: TaskForm,
    /// How much history it keeps.
    pub(super) history_length: Option<u32>,
    /// Whether files get a second layer of base64.
    pub(super) files_twice: bool,
}

impl TaskStyle {
    /// Writes a task. v1.0 with its whole history goes out as it is stored.
    pub(super) fn write(self, reading: TaskReading, out: &mut Vec<u8>) -> Result<(), Error> {
        let Self { dialect, form, history_length, files_twice } = self;
        if let (Dialect::V1, TaskReading::Encoded(json), None) = (dialect, &reading, history_length) {
            out.reserve(json.len() + 16);
            write_v1(form, json, out);
            return Ok(());
        }
        let mut task = reading.into_task().map_err(from_engine)?;
        trim(&mut task, history_length);
        if files_twice {
            rest_files::add_layer(&mut task);
        }
        match (dialect, form) {
            (Dialect::V1, _) => write_v1(form, &encode::encode_task(dialect, &task), out),
            (_, TaskForm::Bare) => out.extend_from_slice(&encode::encode_task(dialect, &task)),
            (_, TaskForm::Sent) => out.extend_from_slice(&encode::encode_send_task(dialect, &task)),
        }
        Ok(())
    }
}

/// Leaves as much history as was asked for: absent is all, zero is none, otherwise the newest.
pub(super) fn trim(task: &mut Task, history_length: Option<u32>) {
    let Some(wanted) = history_length else { return };
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let surplus = task.history.len().saturating_sub(wanted);
    task.history.drain(..surplus);
}

fn write_v1(form: TaskForm, json: &[u8], out: &mut Vec<u8>) {
    if form == TaskForm::Sent {
        out.extend_from_slice(b"{\"task\":");
    }
    out.extend_from_slice(json);
    if form == TaskForm::Sent {
        out.push(b'}');
    }
}
