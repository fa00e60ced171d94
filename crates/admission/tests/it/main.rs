//! The promises of the queues, through the public API.

mod counters;
mod exclusive_queue;
mod fair_semaphore;
