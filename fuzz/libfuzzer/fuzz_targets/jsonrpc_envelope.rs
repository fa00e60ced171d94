//! `cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer jsonrpc_envelope`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::targets::jsonrpc_envelope::target(data));
