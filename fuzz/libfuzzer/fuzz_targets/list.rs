//! `cargo +nightly fuzz run --features libfuzzer list`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::list::target(data));
