//! The report for build servers.

use switchboard_check::{CheckOutcome, CheckReport, Counts, Finding, checks};

#[test]
fn nothing_an_agent_says_breaks_the_document() {
    let hostile = "<a b=\"c\">&\u{1b}\u{0}\u{ffff}]]>\n".to_owned();
    let escaped = "&lt;a b=&quot;c&quot;&gt;&amp;]]&gt;\n";
    let check = checks().next().unwrap();
    let finding =
        Finding { check, outcome: CheckOutcome::Fail, sent: hostile.clone(), seen: hostile.clone(), fix: check.fix };
    let report = CheckReport {
        agent: hostile,
        card_url: String::new(),
        interfaces: Vec::new(),
        findings: vec![finding],
        counts: Counts::default(),
        complete: true,
    };
    let document = report.junit();
    for part in [
        format!("<testsuites name=\"{escaped}\" tests=\"1\" failures=\"1\" skipped=\"0\">"),
        format!("<failure type=\"{}\" message=\"{escaped}\">", check.severity.as_str()),
        format!("\nsent: {escaped}\nseen: {escaped}\nfix: "),
    ] {
        assert!(document.contains(&part), "no {part} in {document}");
    }
}
