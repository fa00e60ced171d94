//! Peers that answer exactly what a test wants: the wrong thing, the right thing late, half of it, or nothing.

mod answers;
mod credentials;
mod dialects;
mod discovery;
mod numbers;
mod retries;
mod script;
mod streams;
