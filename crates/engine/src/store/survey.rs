//! Queries over the tasks of several owners: what operators see, and which questions wait.

use switchboard_a2a::{ContextId, TaskState, Timestamp};

use super::lineage::Via;
use super::{ListPosition, TaskRow};
use crate::ids::{AgentName, CallerId, TaskKey};

/// Which of all tasks to show an operator.
#[derive(Clone, Debug, Default)]
pub struct SurveyQuery {
    pub owner: Option<CallerId>,
    /// Of which agents; all if absent.
    pub agents: Option<Vec<AgentName>>,
    /// Beside those, what the server's own agents do for this caller.
    pub own: Option<CallerId>,
    pub state: Option<TaskState>,
    pub via: Option<Via>,
    /// The root and everything below it.
    pub tree: Option<TaskKey>,
    /// With a status at or after a time.
    pub since: Option<Timestamp>,
    /// With a status before a time.
    pub before: Option<Timestamp>,
    /// Whose id or context begins so. At most the newest thousand of each are looked at.
    pub prefix: Option<String>,
    /// Only of this conversation of the owner, who has to be named, newest status first.
    pub context: Option<ContextId>,
    /// After the last task of the page before.
    pub after: Option<ListPosition>,
    pub page_size: usize,
}

/// One page of all tasks. Newest first: by creation if no filter leaves any out, or by that of a tree, a prefix or a way
/// other than A2A, else by status.
#[derive(Clone, Debug, Default)]
pub struct SurveyPage {
    pub tasks: Vec<TaskRow>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<ListPosition>,
}

/// Which waiting tasks to show.
#[derive(Clone, Debug, Default)]
pub struct WaitingQuery {
    /// Of one owner; of all if absent.
    pub owner: Option<CallerId>,
    /// Of which agents; all if absent.
    pub agents: Option<Vec<AgentName>>,
    /// Beside those, what the server's own agents do for this caller.
    pub own: Option<CallerId>,
    /// After the last task of the page before.
    pub after: Option<ListPosition>,
    pub max: usize,
}
