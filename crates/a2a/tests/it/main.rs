//! The protocol seen from outside: real SDK traffic, hand-typed goldens from the specification, and properties.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod capture;
mod cards;
mod cards_in_the_wild;
mod client_requests;
mod envelope;
mod errors;
mod extensions;
mod fold;
mod forms;
mod json_eq;
mod official_protojson;
mod official_types;
mod properties;
mod requests_of_sdks;
mod requests_round_trip;
mod requests_written;
mod responses;
mod rest_files;
mod server_answers;
mod spellings;
mod sse;
mod stream_events;
mod validation;
