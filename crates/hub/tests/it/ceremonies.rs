//! Ceremonies: runs by a schedule, through the public interface.

mod cron;
mod schedule;
mod simulated_year;
