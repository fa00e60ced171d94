//! Agents of other servers behind this one.

mod answered;
mod crashes;
mod cuts;
mod lost;
mod owed;
mod parked;
mod refused;
mod reported;
mod script;
mod served;
mod settled;
mod unsent;
mod waiting;
mod world;

pub(crate) use world::passing;
