//! Webhooks by every way in: setting them, reading them, and hearing from them.

mod capability;
pub(crate) mod hook;
mod inline;
mod owners;
mod pages;
pub(crate) mod receiver;
mod refusals;
mod round_trips;
mod set_later;
