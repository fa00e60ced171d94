//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer rest`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::rest::target(data));
