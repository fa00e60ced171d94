//! `cargo +nightly fuzz run --features libfuzzer message`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::message::target(data));
