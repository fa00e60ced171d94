//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer send_answer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::send_answer::target(data));
