//! The caller's own words about a gate whose policy lets it decide: a word, or data with a decision. Anything else decides
//! nothing.

use serde::Deserialize;
use switchboard_a2a::{Message, Part};
use switchboard_engine::Verdict;

/// What the caller has decided.
pub(super) struct CallerAnswer {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct DecisionData {
    decision: String,
    #[serde(default, alias = "reason")]
    feedback: String,
}

impl CallerAnswer {
    pub(super) fn read(message: &Message) -> Option<Self> {
        let data = message.parts.iter().filter_map(Part::as_data).find_map(|data| data.read::<DecisionData>().ok());
        let (word, reason) = match data {
            Some(data) => (data.decision, data.feedback),
            None => {
                let text = message.joined_text();
                let (word, reason) = text.trim().split_once([':', ',', '\n']).unwrap_or((text.trim(), ""));
                (word.to_owned(), reason.trim().to_owned())
            }
        };
        let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
        let verdict = match word.as_str() {
            "approve" | "approved" | "yes" => Verdict::Approve,
            "reject" | "rejected" | "no" => Verdict::Reject,
            _ => return None,
        };
        // A yes with conditions is none.
        (verdict == Verdict::Reject || reason.is_empty()).then_some(Self { verdict, reason })
    }
}
