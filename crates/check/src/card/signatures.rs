//! Checks of the form of card signatures. They are not verified: whom to trust is the caller's decision.

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::agent::TestedAgent;
use crate::verdict::{CheckResult, OrSkip, no_problems};

pub(crate) async fn signatures(agent: &TestedAgent) -> CheckResult {
    let signatures = agent.card["signatures"].as_array().filter(|signatures| !signatures.is_empty());
    let signatures = signatures.or_skip("the card is not signed")?;
    no_problems(signatures.iter().enumerate().filter_map(problem), &agent.card_reply.sent)
}

fn problem((number, signature): (usize, &Value)) -> Option<String> {
    let decoded = |member: &str| {
        let text = signature[member].as_str().filter(|text| !text.is_empty())?;
        URL_SAFE_NO_PAD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
    };
    let what = match decoded("protected").and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) {
        None => "its protected header is no JSON in base64url",
        Some(header) if header["alg"].as_str().is_none_or(|alg| alg.is_empty() || alg == "none") => "it has no alg",
        Some(header) if header["kid"].as_str().is_none_or(str::is_empty) => "it has no kid",
        Some(_) if decoded("signature").is_none() => "the signature is no base64url",
        Some(_) => return None,
    };
    Some(format!("signature {}: {what}", number + 1))
}
