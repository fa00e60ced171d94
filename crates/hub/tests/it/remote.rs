//! Agents of other servers behind this one.

mod crashes;
mod cuts;
mod lost;
mod owed;
mod script;
mod served;
mod settled;
mod world;
