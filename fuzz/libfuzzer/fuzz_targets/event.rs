//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer event`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::event::target(data));
