//! Agents of other servers behind this one.

mod advertised;
mod answered;
mod asked_again;
mod breadth;
mod broken;
mod children;
mod crashes;
mod cuts;
mod deltas;
mod depth;
mod far;
mod followed_time;
mod held_card;
mod hostile;
mod late;
mod looks;
mod loops;
mod lost;
mod moved;
mod owed;
mod parked;
mod refused;
mod reported;
pub(crate) mod script;
mod served;
mod settled;
mod told;
mod unsent;
pub(crate) mod waiting;
mod world;

pub(crate) use world::passing;
