//! What the projector owes because of an event. An observer is a pure function: its jobs are stored with the page.

use switchboard_a2a::TaskStatusUpdate;
use switchboard_engine::Seq;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::TaskIdentity;
use switchboard_engine::store::hub::NewJob;

use crate::jobs::owed_cancel;

/// A task whose terminal event was read.
#[derive(Clone, Copy, Debug)]
pub struct EndedTask<'a> {
    pub key: TaskKey,
    pub task: &'a TaskIdentity,
    /// The number of the terminal event.
    pub seq: Seq,
    pub end: &'a TaskStatusUpdate,
    /// Whether its agent is a remote agent, or is not known any more.
    pub may_be_remote: bool,
}

/// Called for the terminal event of each task. A job whose name is taken is left out.
pub(crate) const ENDED: &[fn(&EndedTask<'_>) -> Option<NewJob>] = &[owed_cancel];
