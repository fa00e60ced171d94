//! The values of the hub's metrics after things that are known to have happened, read as an operator reads them.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::PATIENCE;
use crate::program::Workspace;
use crate::server::Server;

/// The value of one series; nothing if it is not shown.
fn value(server: &Server, series: &str) -> Option<f64> {
    let shown = server.get("/metrics", "").text();
    let series = if series.starts_with("a2a_") { series.to_owned() } else { format!("switchboard_{series}") };
    shown.lines().find_map(|line| line.strip_prefix(&format!("{series} "))?.parse().ok())
}

/// Waits until a series has a value; those of work that runs beside requests take a moment.
#[track_caller]
fn reaches(server: &Server, series: &str, wanted: f64) {
    becomes(server, series, |found| found == wanted);
}

/// The same for one that goes on.
#[track_caller]
fn reaches_at_least(server: &Server, series: &str, wanted: f64) {
    becomes(server, series, |found| found >= wanted);
}

#[track_caller]
fn becomes(server: &Server, series: &str, is_wanted: impl Fn(f64) -> bool) {
    let begin = Instant::now();
    loop {
        let found = value(server, series);
        if found.is_some_and(&is_wanted) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{series} is {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn are(server: &Server, expected: &[(&str, f64)]) {
    for (series, wanted) in expected {
        assert_eq!(value(server, series), Some(*wanted), "{series}");
    }
}

fn task(server: &Server, agent: &str, text: &str) -> Value {
    server.message(agent, "send", text, "").json()["task"].clone()
}

/// A message to the root address; its status.
fn dispatched(server: &Server, body: &Value) -> u16 {
    server.post("/api/dispatch", "", &body.to_string()).status
}

fn cancel(server: &Server, agent: &str, task: &Value) {
    let path = format!("/a2a/{agent}/tasks/{}:cancel", task["id"].as_str().unwrap());
    let canceled = server.post(&path, "", "").json();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
}

#[test]
fn the_hubs_metrics_count_what_has_happened() {
    let far_folder = Workspace::new();
    let far = Server::start(&far_folder);
    let agents = format!(
        "agents:
  - {{ name: far, url: 'http://{}/a2a/probe', connectWithin: 100ms }}
  - {{ name: here, builtin: echo }}
  - {{ name: also, builtin: echo }}
",
        far.address
    );
    // The breaker opens by calls alone: nothing is probed meanwhile.
    let settings = "hub:
  breaker: { failures: 3, open: 1h }
  probe: { every: 1h, whileDown: 1h }
  remotePoll: { first: 100ms, most: 1h }
  projector: { flush: 10ms }
  routing: { cooldowns: { echo: 1h } }
";
    let workspace = Workspace::new().file("agents.yaml", agents).file("switchboard.yaml", settings);
    let server = Server::start(&workspace);

    // Work elsewhere: sent, looked at while it waits, followed while it runs.
    assert_eq!(task(&server, "far", "hello")["status"]["state"], "TASK_STATE_COMPLETED");
    let asked = task(&server, "far", "ask");
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    reaches_at_least(&server, "remote_looks_total{agent=\"far\",why=\"poll\"}", 1.0);
    let hold = json!({
        "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hold" }] },
        "configuration": { "returnImmediately": true },
    });
    let held = server.post("/a2a/far/message:send", "", &hold.to_string()).json()["task"].clone();
    reaches(&server, "remote_attached{agent=\"far\"}", 1.0);
    are(&server, &[("remote_sends_total{agent=\"far\",outcome=\"sent\"}", 3.0)]);
    cancel(&server, "far", &held);
    reaches(&server, "remote_attached{agent=\"far\"}", 0.0);

    // Routing, refusals and a fan-out.
    let to = |targets: Value| json!({ "message": "hello", "targets": targets, "force": true, "wait": "30s" });
    assert_eq!(dispatched(&server, &to(json!("here"))), 200);
    let by_skill = json!({ "message": "hi", "skill": "echo", "wait": "30s" });
    assert_eq!(dispatched(&server, &by_skill), 200);
    // What is refused has got no agent, though one was found.
    assert_eq!(dispatched(&server, &by_skill), 429);
    assert_eq!(dispatched(&server, &to(json!("nowhere"))), 404);
    assert_eq!(dispatched(&server, &to(json!("there"))), 404);
    assert_eq!(dispatched(&server, &to(json!(["here", "also"]))), 200);
    are(
        &server,
        &[
            ("routed_total{by=\"target\"}", 2.0),
            ("routed_total{by=\"skill\"}", 1.0),
            ("dispatch_dropped_total{reason=\"target_unresolved\"}", 2.0),
            ("dispatch_dropped_total{reason=\"cooldown\"}", 1.0),
            ("fanout_children_total{policy=\"all\",outcome=\"completed\"}", 2.0),
        ],
    );

    // Readers of the log: the projector, and whoever follows the feed.
    reaches(&server, "feed_readers{kind=\"consumer\"}", 1.0);
    reaches(&server, "feed_readers{kind=\"stream\"}", 0.0);
    let mut follower = TcpStream::connect(&server.address).unwrap();
    follower.write_all(b"GET /api/feed HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    reaches(&server, "feed_readers{kind=\"stream\"}", 1.0);
    drop(follower);
    task(&server, "here", "news, by which the server finds that its reader is gone");
    reaches(&server, "feed_readers{kind=\"stream\"}", 0.0);
    // One that comes with a place of another server's log is told that rows may be missing.
    let mut stranger = TcpStream::connect(&server.address).unwrap();
    stranger.write_all(b"GET /api/feed?from=4711.0.1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    reaches(&server, "feed_gaps_total", 1.0);
    drop(stranger);
    are(&server, &[("feed_readers{kind=\"consumer\"}", 1.0), ("consumer_holder{consumer=\"projector\"}", 1.0)]);
    reaches(&server, "consumer_lag_seconds{consumer=\"projector\"}", 0.0);

    // The other server is gone: what it has to be told is owed, calls fail, and the breaker opens.
    are(&server, &[("jobs_owed{kind=\"cancel\"}", 0.0)]);
    far.stop();
    cancel(&server, "far", &asked);
    reaches(&server, "jobs_owed{kind=\"cancel\"}", 1.0);
    for _ in 0..3 {
        assert_eq!(task(&server, "far", "hello")["status"]["state"], "TASK_STATE_FAILED");
    }
    reaches(&server, "breaker_open{agent=\"far\"}", 1.0);
    reaches(&server, "alerts_firing{alert=\"breaker_open\"}", 1.0);
    are(&server, &[("remote_sends_total{agent=\"far\",outcome=\"sent\"}", 3.0), ("eviction_held", 0.0)]);
    let failed = value(&server, "remote_sends_total{agent=\"far\",outcome=\"failed\"}");
    assert!(failed.is_some_and(|failed| failed >= 1.0), "{failed:?}");
    server.stop();
}

#[test]
fn a_look_that_a_push_notification_has_brought_about_is_counted_as_one() {
    let far_folder = Workspace::new().file("switchboard.yaml", "webhooks: { allowedCidrs: [127.0.0.1/32] }\n");
    let far = Server::start(&far_folder);
    // Without a push there is no look within the hour.
    let settings = "hub: { remotePoll: { first: 1h, most: 1h }, reload: 100ms }\n";
    let here = "  - { name: here, builtin: echo }\n";
    let workspace = Workspace::new().file("agents.yaml", format!("agents:\n{here}")).file("switchboard.yaml", settings);
    let server = Server::start(&workspace);
    // Only now it is known where the server can be told.
    let url = format!("url: 'http://{}/a2a/probe', callbackBase: 'http://{}'", far.address, server.address);
    let agents = format!("agents:\n{here}  - {{ name: far, {url} }}\n");
    std::fs::write(workspace.path().join("agents.yaml"), agents).unwrap();
    reaches(&server, "a2a_agent_up{agent=\"far\"}", 1.0);
    let asked = task(&server, "far", "ask");
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    // Another client answers there, of which the server here hears by the push alone.
    let there = &asked["metadata"]["switchboard/remote"]["taskId"];
    let parts = json!([{ "text": "Ada" }]);
    let answer = json!({ "messageId": "answer", "role": "ROLE_USER", "taskId": there, "parts": parts });
    let answered = far.post("/a2a/probe/message:send", "", &json!({ "message": answer }).to_string());
    assert_eq!(answered.status, 200);
    reaches_at_least(&server, "remote_looks_total{agent=\"far\",why=\"push\"}", 1.0);
    // The push has ended the task here too, with what the other server has made of it.
    let begin = Instant::now();
    let ours = format!("/a2a/far/tasks/{}", asked["id"].as_str().unwrap());
    let done = loop {
        let task = server.get(&ours, "").json();
        if task["status"]["state"] != "TASK_STATE_INPUT_REQUIRED" && task["status"]["state"] != "TASK_STATE_WORKING" {
            break task;
        }
        assert!(begin.elapsed() < PATIENCE, "{task}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert!(done["artifacts"].to_string().contains("Ada"), "{done}");
    are(&server, &[("remote_sends_total{agent=\"far\",outcome=\"sent\"}", 1.0)]);
    assert_eq!(value(&server, "remote_looks_total{agent=\"far\",why=\"poll\"}"), None);
    server.stop();
    far.stop();
}

#[test]
fn an_agent_elsewhere_is_not_up_while_its_server_is_gone() {
    let far_folder = Workspace::new();
    let far = Server::start(&far_folder);
    let agents = format!(
        "agents: [{{ name: far, url: 'http://{}/a2a/probe' }}, {{ name: here, builtin: echo }}]\n",
        far.address
    );
    let settings = "hub: { probe: { every: 100ms, whileDown: 100ms, downAfter: 2 }, projector: { flush: 10ms } }\n";
    let workspace = Workspace::new().file("agents.yaml", &agents).file("switchboard.yaml", settings);
    let server = Server::start(&workspace);
    reaches(&server, "a2a_agent_up{agent=\"far\"}", 1.0);
    far.stop();
    reaches(&server, "a2a_agent_up{agent=\"far\"}", 0.0);
    reaches(&server, "alerts_firing{alert=\"agent_down\"}", 1.0);
    are(&server, &[("a2a_agent_up{agent=\"here\"}", 1.0)]);
    server.stop();
}

#[test]
fn an_agent_that_was_removed_is_not_shown_as_up_or_down() {
    let far_folder = Workspace::new();
    let far = Server::start(&far_folder);
    let here = "agents:\n  - { name: here, builtin: echo }\n";
    let more =
        format!("  - {{ name: far, url: 'http://{}/a2a/probe' }}\n  - {{ name: near, builtin: echo }}\n", far.address);
    let workspace = Workspace::new()
        .file("agents.yaml", format!("{here}{more}"))
        .file("switchboard.yaml", "hub: { reload: 50ms }\n");
    let server = Server::start(&workspace);
    let names = || -> Vec<String> {
        let shown = server.get("/metrics", "").text();
        let series = shown.lines().filter_map(|line| line.strip_prefix("a2a_agent_up{agent=\"")).map(str::to_owned);
        series.map(|line| line.replace("\"}", "")).collect()
    };
    let have = |wanted: &[&str]| {
        let begin = Instant::now();
        loop {
            let mut found = names();
            found.sort_unstable();
            if found == wanted {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let all = ["far 1", "here 1", "near 1"];
    have(&all);
    std::fs::write(workspace.path().join("agents.yaml"), here).unwrap();
    have(&["here 1"]);
    std::fs::write(workspace.path().join("agents.yaml"), format!("{here}{more}")).unwrap();
    have(&all);
    server.stop();
    far.stop();
}
