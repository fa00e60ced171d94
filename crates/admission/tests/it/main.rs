//! The promises of the queues, through the public API.

mod exclusive_queue;
mod fair_semaphore;
