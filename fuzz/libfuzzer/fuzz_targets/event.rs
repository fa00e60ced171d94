//! `cargo +nightly fuzz run --features libfuzzer event`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::event::target(data));
