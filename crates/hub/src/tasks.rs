//! Tasks whose agent is the hub's own. Their agents' names begin with `~`, which no configured name does: such an agent
//! has no address and no card, and only routing begins tasks of it.

pub mod ask;
pub mod channel;
pub mod channel_plan;
mod child_report;
mod children;
pub mod fanout;
pub mod fanout_plan;
