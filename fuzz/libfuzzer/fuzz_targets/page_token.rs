//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer page_token`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::page_token::target(data));
