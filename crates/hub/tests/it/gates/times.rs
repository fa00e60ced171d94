//! What the time decides, and what it never does.

use std::time::Duration;

use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::Verdict;
use switchboard_engine::clock::{Clock, later};

use super::{AGENTS, Gates, state, text};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn a_veto_skill_begins_after_its_time_unless_somebody_objects() {
    let gates = Gates::start().await;
    let (silent, vetoed) = (gates.held("hold", "").await, gates.held("hold", "").await);
    gates.clock.advance(Duration::from_secs(50));
    gates.decide("oli", &vetoed, Verdict::Reject, "not now").await.unwrap();
    assert_eq!(text(&gates.reach(&vetoed, "REJECTED").await), "not now");
    // The other one still waits, and begins by itself.
    assert_eq!(state(&gates.running.get(&format!("/a2a/tasks/{silent}"), "bob").await.1), "AUTH_REQUIRED");
    gates.reach_in_time(&silent, "WORKING").await;
    let path = format!("/a2a/tasks/{silent}");
    let begun = gates.until(&path, "bob", |task| task["metadata"]["switchboard/gate"]["turn"] == 1).await;
    assert_eq!(begun["metadata"]["switchboard/gate"]["mode"], "veto", "{begun}");
    assert_eq!(state(&gates.cancel(&silent).await), "CANCELED");
    gates.stop().await;
}

#[tokio::test]
async fn a_gated_skill_ends_as_its_policy_says_and_no_deadline_approves() {
    let agents = "agents:
  - name: ops
    builtin: probe
    policy:
      mode: gated
      ttl: 10m
      skills:
        hello: { onTimeout: approve }
        ask: { onTimeout: escalate }
        data: { onTimeout: approve, ttl: 400d }
";
    let gates = Gates::with(agents, Vec::new(), |_| {}).await;
    let rejected = gates.held("file", "").await;
    let approved = gates.held("hello", "").await;
    let escalated = gates.held("ask", "").await;
    let late = gates.held("data", "").await;
    gates.clock.advance(Duration::from_secs(599));
    for id in [&rejected, &approved, &escalated] {
        assert_eq!(state(&gates.running.get(&format!("/a2a/tasks/{id}"), "bob").await.1), "AUTH_REQUIRED");
    }
    gates.reach_in_time(&rejected, "REJECTED").await;
    gates.reach_in_time(&approved, "COMPLETED").await;
    // It is still open, for an operator.
    gates.decide("oli", &escalated, Verdict::Approve, "").await.unwrap();
    gates.until(&format!("/a2a/tasks/{escalated}"), "bob", |task| text(task).contains("repeat")).await;
    // The question timeout is over before the time that would approve.
    gates.clock.advance(DAY * 7);
    let failed = gates.reach_in_time(&late, "FAILED").await;
    assert_eq!(
        (&failed["metadata"]["switchboard/reason"], &failed["artifacts"]),
        (&json!("input_expired"), &json!(null))
    );
    gates.stop().await;
}

#[tokio::test]
async fn neither_a_step_of_the_clock_nor_time_without_the_server_approves() {
    let mut gates = Gates::start().await;
    let id = gates.held("hold", "").await;
    let path = format!("/a2a/tasks/{id}");
    // A day by the clock on the wall, and not a second for reviewers.
    for step in [DAY, Duration::from_secs(1)] {
        gates.clock.turn_to(later(gates.clock.now(), step));
        gates.running.engine.sweep().await;
        assert_eq!(state(&gates.running.get(&path, "bob").await.1), "AUTH_REQUIRED");
    }
    // Fifty seconds, then the server is down for an hour: it all begins anew.
    gates.clock.advance(Duration::from_secs(50));
    gates = gates.killed(AGENTS, Vec::new()).await;
    gates.clock.advance(Duration::from_secs(3_600));
    gates.running.engine.sweep().await;
    assert_eq!(state(&gates.running.get(&path, "bob").await.1), "AUTH_REQUIRED");
    gates.clock.advance(Duration::from_secs(50));
    gates.running.engine.sweep().await;
    assert_eq!(state(&gates.running.get(&path, "bob").await.1), "AUTH_REQUIRED");
    gates.reach_in_time(&id, "WORKING").await;
    gates.until(&path, "bob", |task| task["metadata"]["switchboard/gate"]["turn"] == 1).await;
    assert_eq!(state(&gates.cancel(&id).await), "CANCELED");
    gates.stop().await;
}

#[tokio::test]
async fn delays_of_30_and_of_400_days_are_kept() {
    for days in [30, 400] {
        let agents = format!(
            "agents: [{{ name: ops, builtin: probe, policy: {{ mode: veto, vetoTtl: {days}d, skills: {{ hello: {{ mode: gated, ttl: {days}d }} }} }} }}]\n"
        );
        let settings = switchboard_engine::Settings { parked_expiry: DAY * 500, ..Default::default() };
        let gates = Gates::lasting(&agents, settings).await;
        let (veto, gated) = (gates.held("data", "").await, gates.held("hello", "").await);
        let start = gates.clock.now();
        gates.clock.advance(DAY * (days - 1));
        for id in [&veto, &gated] {
            assert_eq!(state(&gates.running.get(&format!("/a2a/tasks/{id}"), "bob").await.1), "AUTH_REQUIRED");
        }
        gates.clock.advance(DAY - Duration::from_secs(10));
        gates.reach_in_time(&veto, "COMPLETED").await;
        gates.reach_in_time(&gated, "REJECTED").await;
        let passed = gates.clock.now().0 - start.0;
        assert!(passed >= i64::try_from((DAY * days).as_millis()).unwrap(), "{days} days: {}", Timestamp(passed).0);
        gates.stop().await;
    }
}

#[tokio::test]
async fn a_deadline_ends_a_task_that_waits_and_begins_nothing() {
    let settings = switchboard_engine::Settings { deadline: Some(Duration::from_secs(30)), ..Default::default() };
    let gates = Gates::lasting(AGENTS, settings).await;
    let id = gates.held("hold", "").await;
    let failed = gates.reach_in_time(&id, "FAILED").await;
    assert_eq!(failed["metadata"]["switchboard/reason"], "timed_out", "{failed}");
    assert_eq!(failed["metadata"]["switchboard/gate"], json!(null), "{failed}");
    gates.stop().await;
}
