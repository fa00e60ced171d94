//! Weighted rendezvous hashing: the same key gets the same agent as long as that agent is there and the weights stay.
//!
//! Every agent has a score for the key and the greatest wins. So an agent that is added takes only its own share of the
//! keys, and one that leaves gives its keys to the others in proportion to their weights.

use switchboard_engine::{AgentName, sha256};

/// The agent for a key, with its weight. If all weights are zero it is the first one.
pub fn pick<'a>(key: &str, agents: impl IntoIterator<Item = (&'a AgentName, f64)>) -> Option<(&'a AgentName, f64)> {
    let mut first = None;
    let mut best: Option<(f64, &AgentName, f64)> = None;
    for (agent, weight) in agents {
        first.get_or_insert((agent, weight));
        if weight <= 0.0 {
            continue;
        }
        let score = -weight / fraction(key, agent).ln();
        if best.is_none_or(|(greatest, ..)| score > greatest) {
            best = Some((score, agent, weight));
        }
    }
    best.map(|(_, agent, weight)| (agent, weight)).or(first)
}

/// A fraction between 0 and 1, both excluded, that depends on nothing but the key and the agent: not on the process, nor
/// on the release.
fn fraction(key: &str, agent: &AgentName) -> f64 {
    let digest = sha256([key.as_bytes(), &[0], agent.as_str().as_bytes()]);
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // 53 bits are what a float holds exactly.
    ((number >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}
