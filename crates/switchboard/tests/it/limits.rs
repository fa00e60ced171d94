//! Every limit, timeout and size is a setting that is documented and hit in a test, or a fixed number that is documented.
//!
//! Which settings there are is asked of the program. Which test hits one stands in a table here, and the test must be
//! there and speak of it; so a new limit without a test, or a test that was taken out, fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::Workspace;

/// A setting, the folder, file and name of the test that hits it, and what the test must say of it.
type Hit = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ENGINE: &str = "crates/engine/tests/it";
const SERVER: &str = "crates/server/tests/it";
const STORE: &str = "crates/store/tests/it";
const WEBHOOKS: &str = "crates/webhooks/tests/it";
const EGRESS: &str = "crates/egress/tests/it";
const HERE: &str = "crates/switchboard/tests/it";

#[rustfmt::skip]
const HITS: &[Hit] = &[
    ("limits.connections", SERVER, "edge/connections.rs", "a_connection_beyond_the_cap_is_told_so", "options.connections = 1"),
    ("limits.connectionsPerAddress", SERVER, "edge/proxies.rs", "one_address_cannot_hold_all_connections", "options.connections_per_address = 2"),
    ("limits.contexts", ENGINE, "limits.rs", "histories_beyond_the_limit_are_read_again", "contexts"),
    ("limits.event", ENGINE, "limits.rs", "a_message_an_event_and_a_task_have_a_largest_size", "event_bytes: 2_000"),
    ("limits.headers", SERVER, "edge/connections.rs", "headers_have_a_limit", "options.headers = 20"),
    ("limits.nesting", SERVER, "bindings/limits.rs", "json_of_too_many_levels_is_refused", "64 levels"),
    ("limits.page", SERVER, "bindings/listing.rs", "a_page_is_cut_where_it_grows_too_large_and_goes_on_in_the_next", "options.page"),
    ("limits.parkedPerCaller", ENGINE, "limits.rs", "parked_tasks_are_capped_for_all_and_for_one_caller", "parked_per_caller: 1"),
    ("limits.parkedTasks", ENGINE, "limits.rs", "parked_tasks_are_capped_for_all_and_for_one_caller", "parked_tasks: 1"),
    ("limits.parts", SERVER, "bindings/limits.rs", "a_message_of_too_many_parts_is_refused", "max_parts = 3"),
    ("limits.queuedTurns", ENGINE, "limits.rs", "the_queue_never_grows_beyond_its_limit_however_many_send_at_once", "queued_turns: 3"),
    ("limits.requestBody", SERVER, "edge/bodies.rs", "a_body_beyond_the_limit_is_refused_declared_or_not", "options.request_body = 4_096"),
    ("limits.requestHeaders", SERVER, "edge/connections.rs", "headers_have_a_limit", "options.request_headers"),
    ("limits.responseBytes", SERVER, "edge/response_budget.rs", "together_callers_have_no_more_in_flight_than_the_total", "options.response_bytes = "),
    ("limits.responseBytesPerCaller", SERVER, "edge/response_budget.rs", "a_caller_that_reads_nothing_waits_and_the_others_go_on", "options.response_bytes_per_caller = "),
    ("limits.runningPerAgent", ENGINE, "limits.rs", "caps_per_caller_and_per_agent_do_not_hold_up_others", "running_per_agent: 1"),
    ("limits.runningPerCaller", ENGINE, "limits.rs", "caps_per_caller_and_per_agent_do_not_hold_up_others", "running_per_caller: 1"),
    ("limits.runningTasks", ENGINE, "limits.rs", "turns_beyond_the_running_cap_wait_with_a_visible_position_and_start_in_order", "running_tasks: 2"),
    ("limits.streams", SERVER, "bindings/limits.rs", "a_caller_has_so_many_streams_and_no_more", "options.streams = 3"),
    ("limits.streamsPerCaller", SERVER, "bindings/limits.rs", "a_caller_has_so_many_streams_and_no_more", "options.streams_per_caller = 2"),
    ("limits.task", ENGINE, "limits.rs", "a_message_an_event_and_a_task_have_a_largest_size", "task_bytes: 10_000"),
    ("limits.uncommittedBytes", ENGINE, "limits.rs", "an_agent_waits_when_too_much_of_its_output_is_uncommitted", "uncommitted_bytes"),
    ("limits.uncommittedEvents", ENGINE, "limits.rs", "an_agent_waits_when_too_much_of_its_output_is_uncommitted", "uncommitted_events: 4"),
    ("server.bodyTimeout", SERVER, "edge/bodies.rs", "a_body_that_only_drips_is_not_waited_for_either", "options.body_timeout"),
    ("server.headerTimeout", SERVER, "edge/connections.rs", "a_client_that_does_not_finish_its_headers_is_let_go", "options.header_timeout"),
    ("server.idleTimeout", SERVER, "edge/connections.rs", "a_connection_nobody_uses_is_closed_and_one_with_a_long_answer_is_not", "options.idle_timeout"),
    ("server.writeTimeout", SERVER, "edge/unread.rs", "an_answer_that_is_not_read_costs_the_connection", "options.write_timeout"),
    ("store.maxQueueDelay", STORE, "sqlite/limits.rs", "new_work_is_refused_when_the_store_is_behind_and_endings_are_not", "max_queue_delay"),
    ("store.retention.maxAge", ENGINE, "invariants.rs", "invariant_10_only_ended_tasks_are_evicted", "31 * 24 * 60 * 60"),
    ("store.retention.maxBytes", ENGINE, "limits.rs", "bytes_beyond_what_is_kept_make_the_oldest_ended_tasks_go", "retention_bytes"),
    ("store.retention.maxTasks", ENGINE, "invariants.rs", "invariant_10_only_ended_tasks_are_evicted", "retention_tasks: 3"),
    ("streams.ping", SERVER, "bindings/closing.rs", "a_quiet_stream_sends_comments", "options.ping"),
    ("tasks.cancelGrace", ENGINE, "endings.rs", "an_agent_that_does_not_hear_is_dropped_after_the_grace", "Duration::from_secs(3)"),
    ("tasks.deadline", ENGINE, "endings.rs", "a_task_over_its_deadline_and_an_idle_one_fail_with_their_reasons", "deadline"),
    ("tasks.drain", ENGINE, "recovery.rs", "an_orderly_stop_leaves_the_task_as_it_is_and_tells_blocked_senders_the_task", "drain: Duration::from_secs(10)"),
    ("tasks.idle", ENGINE, "endings.rs", "a_task_over_its_deadline_and_an_idle_one_fail_with_their_reasons", "idle"),
    ("tasks.maxBlocking", ENGINE, "limits.rs", "a_blocking_wait_can_be_limited", "max_blocking"),
    ("tasks.maxRecoveries", ENGINE, "recovery.rs", "a_task_that_never_gets_anywhere_is_given_up_after_three_recoveries", "recovery_limit"),
    ("tasks.parallelRecoveries", ENGINE, "recovery.rs", "more_long_turns_than_recoveries_at_a_time_are_all_resumed", "parallel_recoveries: 2"),
    ("tasks.park", ENGINE, "turns.rs", "an_agent_is_put_away_after_the_park_time_and_after_a_restart", "from_secs(601)"),
    ("tasks.parkedExpiry", ENGINE, "endings.rs", "a_question_nobody_answers_expires", "input_expired"),
    ("webhooks.connectTimeout", EGRESS, "encryption.rs", "a_receiver_that_does_not_speak_tls_or_never_ends_the_handshake", "connect_timeout: SHORT"),
    ("webhooks.deadLetters.max", HERE, "kept_dead_letters.rs", "so_many_dead_letters_are_kept_and_the_oldest_go_first", "dead_letters: 1"),
    ("webhooks.deadLetters.maxBytes", HERE, "kept_dead_letters.rs", "so_many_bytes_of_dead_letters_are_kept", "dead_letter_bytes: 1"),
    ("webhooks.deadLetters.maxAge", HERE, "kept_dead_letters.rs", "dead_letters_of_an_age_go", "dead_letter_age"),
    ("webhooks.holdTasks", WEBHOOKS, "restarts.rs", "an_ended_task_is_held_for_a_while_and_then_what_is_left_is_a_dead_letter", "webhooks.holdTasks"),
    ("webhooks.maxPause", HERE, "webhooks.rs", "an_endpoint_is_never_paused_for_longer_than_the_longest_pause", "maxPause: 40ms"),
    ("webhooks.parallel", WEBHOOKS, "endpoints.rs", "no_more_deliveries_are_under_way_than_allowed", "parallel: 3"),
    ("webhooks.parallelPerEndpoint", WEBHOOKS, "endpoints.rs", "a_hanging_endpoint_takes_its_own_places_only", "parallel_per_endpoint: 2"),
    ("webhooks.pause", WEBHOOKS, "endpoints.rs", "an_endpoint_that_keeps_failing_is_paused_for_all_its_webhooks_and_then_caught_up_with", "[10, 20, 40]"),
    ("webhooks.pauseAfter", WEBHOOKS, "endpoints.rs", "an_endpoint_that_keeps_failing_is_paused_for_all_its_webhooks_and_then_caught_up_with", "tried <= 5 + 8"),
    ("webhooks.perTask", WEBHOOKS, "setting.rs", "a_task_has_so_many_webhooks_and_no_more", "per_task: 5"),
    ("webhooks.retries", WEBHOOKS, "retries.rs", "attempts_follow_the_waits_and_then_the_next_delivery_goes_on", "options.retries"),
    ("webhooks.timeout", WEBHOOKS, "retries.rs", "connections_that_fail_are_tried_again", "timeout: Duration::from_millis(300)"),
];

/// Numbers that cannot be set: the file, the constant as it stands there, and its row in docs/calling.md.
#[rustfmt::skip]
const FIXED: &[(&str, &str, &str)] = &[
    ("crates/server/src/bindings/send.rs", "KEY_BYTES: usize = 255;", "| `Idempotency-Key` | 255 visible ASCII characters |"),
    ("crates/server/src/edge/connection.rs", "CONCURRENT_STREAMS: u32 = 64;", "| requests at a time on one HTTP/2 connection | 64 |"),
    // The HTTP library's own number: a test sends one byte more.
    ("crates/server/tests/it/edge/connections.rs", "LONGEST: usize = 65_534;", "| address of a request over HTTP/1.1 | 65,534 bytes |"),
    ("crates/engine/src/submit/admission.rs", "CONTEXT_ID_BYTES: usize = 256;", "| `contextId` | 256 bytes |"),
    ("crates/engine/src/submit/admission.rs", "REFERENCES: usize = 100;", "| `referenceTaskIds` of a message | 100 |"),
    ("crates/engine/src/final_message.rs", "ANSWER_BYTES: usize = 32 << 10;", "| answer that the last status message repeats whole | 32 KiB |"),
    ("crates/engine/src/final_message.rs", "BEGINNING_CHARACTERS: usize = 500;", "| beginning of a longer one | 500 characters |"),
    ("crates/engine/src/turn/conclude.rs", "REASON_BYTES: usize = 8 << 10;", "| reason of a failure in the status message | 8 KiB |"),
    ("crates/engine/src/tool_call.rs", "ARGUMENT_CHARACTERS: usize = 200;", "| `args` of a tool call | 200 characters |"),
    ("crates/engine/src/tool_call.rs", "RESULT_CHARACTERS: usize = 300;", "| `result` and `error` of a tool call | 300 characters |"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The keys below a schema's object whose values are counts, sizes or times.
fn limits(schema: &Value, object: &Value, path: &str, found: &mut Vec<String>) {
    let name = |value: &Value| value["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let kind = name(value).or_else(|| name(&value["items"])).unwrap_or_default();
        let is_limit =
            ["Count", "Size", "TimeSpan", "TimeLimit"].contains(&kind.as_str()) || value["type"] == "integer";
        if is_limit {
            found.push(path);
        } else {
            limits(schema, &schema["$defs"][kind], &path, found);
        }
    }
}

/// The source of one test, from its name to the next one; nothing if there is no such test.
fn test_named<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let head = format!("fn {name}() {{");
    source.split("#[test]").flat_map(|piece| piece.split("#[tokio::test")).find(|piece| piece.contains(&head))
}

#[test]
fn invariant_12_every_limit_is_a_setting_that_is_documented_and_hit_in_a_test() {
    let schema = Workspace::new().run(&["config", "schema"]).json();
    let mut found = Vec::new();
    limits(&schema, &schema, "", &mut found);
    assert!(found.len() > 35, "{found:?}");
    let page = read("docs/configuration.md");
    for key in &found {
        assert!(page.contains(&format!("| `{key}` |")), "{key} is not in docs/configuration.md: cargo xtask docs");
        let hit = HITS.iter().any(|(hit, ..)| hit == key);
        assert!(hit, "{key} needs a test that hits it, and a row here that names the test");
    }
    let keys: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    for (key, folder, file, name, spelled) in HITS {
        assert!(keys.contains(*key), "{key} is no setting any more");
        let source = read(Path::new(folder).join(file));
        let test =
            test_named(&source, name).unwrap_or_else(|| panic!("{key}: there is no test {name} in {folder}/{file}"));
        assert!(test.contains(*spelled), "{key}: {name} in {folder}/{file} does not say {spelled}");
    }
}

#[test]
fn every_fixed_limit_is_documented_as_it_is() {
    let page = read("docs/calling.md");
    let (_, fixed) = page.split_once("\n## Limits\n").expect("the page has a section on limits");
    for (file, constant, row) in FIXED {
        assert!(
            read(file).contains(&format!("const {constant}")),
            "{file} no longer says {constant}: change {row} too"
        );
        assert!(fixed.contains(*row), "docs/calling.md does not say {row}");
    }
}

#[test]
fn every_reason_a_task_can_end_for_is_documented() {
    let page = read("docs/calling.md");
    let source = read("crates/engine/src/reason.rs");
    let words = source.split(" => \"").skip(1).filter_map(|rest| rest.split('"').next());
    let words: BTreeSet<&str> = words.collect();
    assert!(words.len() >= 11 && words.contains("too_large"), "{words:?}");
    for word in words {
        assert!(page.contains(&format!("| `{word}` |")), "docs/calling.md does not explain the reason {word}");
    }
}
