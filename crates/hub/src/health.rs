//! The health of agents: what became of their tasks, how long it took and what it cost.

mod histogram;
mod outcome;
mod pricing;
mod reported;
mod sum;
mod sums;
mod tally;

pub(crate) use self::outcome::Outcome;
pub(crate) use self::pricing::Pricing;
pub(crate) use self::reported::{Declared, Reported};
pub(crate) use self::sum::Sum;
pub(crate) use self::sums::{KEPT, Sums, Window};
pub(crate) use self::tally::Tally;
