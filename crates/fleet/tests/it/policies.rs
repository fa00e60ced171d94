//! `policy` of agents: what it may say, and what is refused with which words.

use switchboard_fleet::config::agent_files::read_item;
use switchboard_fleet::config::agents::Entry;
use switchboard_fleet::config::policy::{Policy, PolicyReviewer};
use switchboard_host::config::review_mode::OnTimeout;
use switchboard_host::config::time_span::TimeSpan;

/// What an agent with this policy says, whichever kind it is.
fn policies(policy: &str) -> Vec<Policy> {
    let kinds = [r#""builtin": "echo""#, r#""cli": "claude-code""#, r#""url": "http://127.0.0.1""#];
    let read = kinds.map(|kind| read_item("test", &format!(r#"{{"name": "a", {kind}, "policy": {policy}}}"#)));
    read.into_iter()
        .map(|entry| match entry.unwrap() {
            Entry::Hosted(agent) => agent.policy,
            Entry::Remote(agent) => agent.serving.policy,
        })
        .collect()
}

fn problem(item: &str) -> String {
    read_item("test", item).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kind_of_agent_has_a_policy_with_the_same_keys_for_its_skills() {
    let all = r#"{ "mode": "gated", "radius": "repo", "reviewer": "caller", "vetoTtl": "10s", "ttl": "1h",
        "onTimeout": "escalate", "skills": { "deploy": { "mode": "compound", "reviewer": "operator" }, "read": {} } }"#;
    for policy in policies(all) {
        let (mode, radius) = (policy.agent.mode.unwrap().0.name(), policy.agent.radius.unwrap().0.name());
        assert_eq!((mode, radius), ("gated", "repo"));
        assert_eq!(policy.agent.reviewer, Some(PolicyReviewer::Caller));
        assert_eq!(
            (policy.agent.veto_ttl, policy.agent.ttl),
            (Some(TimeSpan::from_seconds(10)), Some(TimeSpan::from_hours(1)))
        );
        assert_eq!(policy.agent.on_timeout, Some(OnTimeout::Escalate));
        let deploy = &policy.skills["deploy"];
        assert_eq!((deploy.mode.unwrap().0.name(), deploy.reviewer), ("compound", Some(PolicyReviewer::Operator)));
        assert_eq!((deploy.ttl, policy.skills["read"].mode), (None, None), "as for the agent");
    }
    assert!(policies("{}").iter().all(Policy::is_empty));
}

#[test]
fn what_a_policy_cannot_say_is_refused_with_its_key_and_what_would_be_right() {
    for (policy, key, right) in [
        (r#"{ "mode": "gate" }"#, "policy.mode", "did you mean gated?"),
        (r#"{ "radius": "world" }"#, "policy.radius", "self, project, repo, fleet, public"),
        (r#"{ "reviewer": "me" }"#, "policy.reviewer", "operator, caller"),
        (r#"{ "onTimeout": "fail" }"#, "policy.onTimeout", "reject, approve, escalate"),
        (r#"{ "ttl": "0s" }"#, "policy.ttl", "a number with a unit"),
        (r#"{ "vetoTtl": 60 }"#, "policy.vetoTtl", "a number with a unit"),
        (r#"{ "modes": "gated" }"#, "policy.modes", "did you mean mode?"),
        (r#"{ "skills": { "deploy": { "mod": "gated" } } }"#, "policy.skills.deploy.mod", "did you mean mode?"),
        (r#"{ "skills": { "deploy": "gated" } }"#, "policy.skills.deploy", "write a mapping"),
        (r#"{ "skills": ["deploy"] }"#, "policy.skills", "write a mapping"),
        (r#""gated""#, "policy", "write a mapping"),
    ] {
        for kind in [r#""builtin": "echo""#, r#""url": "http://127.0.0.1""#] {
            let problem = problem(&format!(r#"{{"name": "a", {kind}, "policy": {policy}}}"#));
            assert!(problem.contains(key) && problem.contains(right), "{policy}: {problem}");
        }
    }
    // A skill that is misspelt would not be guarded.
    let item = r#"{ "name": "a", "builtin": "echo", "policy": { "skills": { "deply": { "mode": "gated" } } },
        "skills": [{ "name": "deploy", "description": "Deploys" }] }"#;
    let problem = problem(item);
    assert!(problem.contains("\"deply\"") && problem.contains("its skills are deploy"), "{problem}");
}
