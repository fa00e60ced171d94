//! What is under `/api`: webhooks for operators, and the receiving end of other servers' webhooks.

mod callbacks;
mod operators;
mod secrets;
