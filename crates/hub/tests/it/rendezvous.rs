//! The share of the keys that each agent gets, and what moves when agents or weights change.

use proptest::prelude::*;
use switchboard_engine::AgentName;
use switchboard_hub::routing::rendezvous::pick;

const KEYS: usize = 2_000;

fn picks(agents: &[(AgentName, f64)]) -> Vec<AgentName> {
    let pick_for = |key: usize| pick(&format!("context-{key}"), agents.iter().map(|(name, weight)| (name, *weight)));
    (0..KEYS).map(|key| pick_for(key).unwrap().0.clone()).collect()
}

fn share(picks: &[AgentName], name: &AgentName) -> f64 {
    picks.iter().filter(|pick| *pick == name).count() as f64 / picks.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_agent_that_is_added_takes_only_its_share(
        weights in prop::collection::vec(0.2_f64..2.0, 2..6),
        added in 0.2_f64..2.0,
    ) {
        let named = |(index, weight): (usize, &f64)| (AgentName::from(format!("agent-{index}")), *weight);
        let agents: Vec<(AgentName, f64)> = weights.iter().enumerate().map(named).collect();
        let newcomer = AgentName::from("newcomer");
        let mut more = agents.clone();
        more.push((newcomer.clone(), added));
        let (before, after) = (picks(&agents), picks(&more));
        for (one, other) in before.iter().zip(&after) {
            prop_assert!(one == other || *other == newcomer, "{one} lost a key to {other}");
        }
        // Half of 2,000 keys has a standard deviation of 0.011: 0.08 is over seven of them.
        let total: f64 = more.iter().map(|(_, weight)| weight).sum();
        for (name, weight) in &more {
            let (is, expected) = (share(&after, name), weight / total);
            prop_assert!((is - expected).abs() < 0.08, "{name} has {is} instead of {expected}");
        }
        let mut reordered = agents.clone();
        reordered.reverse();
        prop_assert_eq!(picks(&reordered), before, "the order of agents does not count");
    }
}

#[test]
fn without_any_weight_it_is_the_first_and_a_weight_of_zero_gets_nothing() {
    let names = [AgentName::from("a"), AgentName::from("b")];
    let all_zero = names.iter().map(|name| (name, 0.0));
    assert_eq!(pick("key", all_zero), Some((&names[0], 0.0)));
    for key in 0..100 {
        let one_zero = [(&names[0], 0.0), (&names[1], 0.01)];
        assert_eq!(pick(&key.to_string(), one_zero), Some((&names[1], 0.01)));
    }
    assert_eq!(pick("key", []), None);
}
