//! Peers that answer exactly what a test wants: the wrong thing, the right thing late, half of it, or nothing.

mod addresses;
mod answers;
mod cancel_safety;
mod card_cache;
mod card_hosts;
mod catch_up;
mod connection_reuse;
mod credentials;
mod dialects;
mod discovery;
mod files;
mod losses;
mod nesting;
mod numbers;
mod outcomes;
mod pages;
mod resume;
mod retries;
mod script;
mod secrets;
mod streams;
mod versions;
