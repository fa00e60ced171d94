//! Remote agents: other servers behind ours, and what is left of their tasks after a crash.

mod crashes;
mod owed;
mod script;
mod served;
mod world;
