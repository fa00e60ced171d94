//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer jsonrpc_response`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::jsonrpc_response::target(data));
