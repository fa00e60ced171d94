//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer push`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::push::target(data));
