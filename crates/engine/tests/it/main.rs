//! The kernel through its public interface, on the real store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod faults;
mod kernel;

mod agent_reports;
mod calls;
mod canceled_trees;
mod cooldowns;
mod counted_once;
mod delegated_messages;
mod delegation;
mod direct;
mod driver_panics;
mod feed;
mod gated;
mod guard;
mod held;
mod idempotency;
mod inline_turns;
mod invariants;
mod leaving;
mod limits;
mod listing;
mod nodes;
mod old_data;
mod parked;
mod permit_release;
mod races;
mod recovery;
mod recovery_order;
mod relayed;
mod replacing;
mod reviewed;
mod routing;
mod settled;
mod stopped_recovery;
mod stored_size;
mod task_tokens;
mod terminal_events;
mod trace_context;
mod turns;
mod watching;
mod webhooks;
