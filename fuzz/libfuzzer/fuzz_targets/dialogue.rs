//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer dialogue`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::dialogue::target(data));
