//! Ceremonies: runs of skills by a schedule.

pub mod cron;
pub mod schedule;
