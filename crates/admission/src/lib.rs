//! Admission control: whether work may start now, and in which order the rest follows.
//!
//! | need | type |
//! |---|---|
//! | one limit, no waiting | [`Counter`] |
//! | a limit per key and in total, no waiting | [`KeyedCounter`] |
//! | the same with weights and waiting, fair between keys | [`FairSemaphore`] |
//! | round robin between keys, FIFO within one, for a scheduler of your own | [`FairQueue`] |
//! | one at a time among items that conflict, FIFO | [`ExclusiveQueue`] |
//!
//! Every permit gives back what it holds when it is dropped, and a dropped future leaves its queue.

mod counter;
mod exclusive_queue;
mod fair_queue;
mod fair_semaphore;
mod keyed_counter;

use std::hash::Hash;

pub use counter::{Counter, CounterPermit};
pub use exclusive_queue::{ExclusiveQueue, QueuePosition};
pub use fair_queue::FairQueue;
pub use fair_semaphore::{FairSemaphore, Limits, Permit, Share};
pub use keyed_counter::{KeyedCounter, KeyedPermit, LimitReached};

/// What limits and turns are counted by: a caller, an address.
pub trait Key: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> Key for K {}
