//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer stream_frame`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::stream_frame::target(data));
