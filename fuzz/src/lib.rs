//! Everything that reads bytes from outside, as plain functions that must hold for any bytes: [`targets`].
//!
//! Two drivers call them: the seeded loop in this crate, which needs nothing but stable Rust, and libFuzzer through
//! `libfuzzer/`. A target panics when something does not hold; both drivers take that as a finding.

pub mod corpus;
pub mod dictionary;
pub mod mutate;
pub mod random;
pub mod record;
pub mod targets;
