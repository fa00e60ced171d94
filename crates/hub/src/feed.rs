//! The feed: what is committed, as items with topics, for those who may see it.
//!
//! The kernel's feed has rows in one order. Here each row becomes items, one per event that callers may see and one per
//! thing that such an event means (an outcome, a question); a caller's view and its filter leave out the others.

mod alias;
mod backward;
mod filter;
mod item;
mod log_rows;
mod newest;
mod page;
mod stream;
mod topic;
mod topic_index;
mod trace;
mod view;

pub(crate) use self::backward::{BackwardPage, BackwardQuery, read_backward};
pub(crate) use self::filter::{FeedFilter, TASK_WORDS};
pub(crate) use self::item::{Item, items};
pub(crate) use self::log_rows::Logs;
pub(crate) use self::newest::NewestOfTasks;
pub(crate) use self::page::{FeedItems, FeedPageQuery, read_page};
pub(crate) use self::stream::{FeedMessages, FeedStream, StreamStart};
pub(crate) use self::topic::{Pattern, segment};
pub(crate) use self::topic_index::TopicIndex;
pub(crate) use self::trace::{TaskCost, TaskOrigin, TraceCache};
pub(crate) use self::view::{View, is_own};
