//! Torture for the real binary: it is killed at random moments under load, its disk fills up and turns read-only, and
//! everything it ever acknowledged is compared with what is there afterwards.
//!
//! [`kill`], [`webhooks`], [`hub`], [`disk`], [`programs`] and [`unread_responses`] are the tests. Clients write down each
//! acknowledgement at the moment they read it ([`journal`]); [`compare`] asks the restarted server for every one of them.

pub mod calls;
pub mod compare;
pub mod delays;
pub mod disk;
pub mod early_answers;
pub mod event_stream;
pub mod http;
pub mod hub;
pub mod journal;
pub mod kill;
pub mod load;
pub mod programs;
pub mod random;
pub mod server;
pub mod time_box;
pub mod unread_responses;
pub mod webhooks;

use std::time::Duration;

/// A hang guard: what has not happened after so long never will. It says nothing about speed, so it is far beyond what a
/// slow machine takes.
pub const HANG_GUARD: Duration = Duration::from_secs(300);
