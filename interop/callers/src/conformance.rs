//! What `switchboard conformance` finds wrong with a server, so that a change in either is seen: one line for each check
//! that fails, `ok WORD-CHECK`, after the first word of what the agent was told meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use crate::commands::switchboard::Switchboard;

/// An agent that never answers makes the report take its time, but not this much.
const PATIENCE: Duration = Duration::from_secs(600);

/// Prints the checks that fail. If some are named, only these are looked for: where an agent misbehaves, chance decides
/// what else is seen.
pub(crate) async fn run(switchboard: &Switchboard, text: &str, wanted: &[String]) -> anyhow::Result<()> {
    let mut words = vec!["--text", text, "--patience", "8s"];
    let groups: BTreeSet<&str> = wanted.iter().map(|check| group(check)).collect();
    words.extend(groups.into_iter().flat_map(|group| ["--only", group]));
    let ended = tokio::time::timeout(PATIENCE, switchboard.ended("conformance", &words, "")).await;
    let ended = ended.with_context(|| format!("the report took longer than {PATIENCE:?}"))??;
    let report: Value = serde_json::from_slice(&ended.stdout)?;
    let findings = report["findings"].as_array().with_context(|| format!("there are no findings in {report}"))?;
    for finding in findings.iter().filter(|finding| finding["outcome"] == "fail") {
        let check = finding["id"].as_str().context("a finding has no id")?;
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == check) {
            println!("ok {}-{check}", text.split(' ').next().unwrap_or_default());
        }
    }
    Ok(())
}

fn group(check: &str) -> &'static str {
    if check.starts_with("stream") || check.starts_with("subscribe") { "streaming" } else { "operations" }
}
