//! `cargo +nightly fuzz run --features libfuzzer stream_frame`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::stream_frame::target(data));
