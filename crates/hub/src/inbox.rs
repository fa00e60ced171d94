//! The inbox: every question that waits, of every agent, and the decisions that end the wait.
//!
//! An open question is the row of a task that waits, so there is no list to keep: it is there with the commit of the
//! question. Who may decide, and that a question is decided once, is the kernel's ([`switchboard_engine::Engine::answer`]).

mod answered;
mod choices;
mod decision;
mod escalation;
mod item;
mod item_id;
mod question;

pub(crate) use self::answered::AnsweredQuestion;
pub(crate) use self::choices::Choices;
pub(crate) use self::decision::{Addressee, GivenDecision, Unfitting, VERDICTS, verdict_name};
pub(crate) use self::escalation::{InboxWatch, Passed, tell_escalated};
pub(crate) use self::item::{InboxItem, Kind, Stage, decided};
pub(crate) use self::item_id::ItemId;
pub(crate) use self::question::Question;
