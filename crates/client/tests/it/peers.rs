//! Peers that answer exactly what a test wants: the wrong thing, the right thing late, half of it, or nothing.

mod addresses;
mod answers;
mod catch_up;
mod credentials;
mod dialects;
mod discovery;
mod elsewhere;
mod files;
mod keeping;
mod losses;
mod numbers;
mod outcomes;
mod pages;
mod patience;
mod retries;
mod script;
mod secrets;
mod streams;
mod versions;
