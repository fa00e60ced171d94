//! A scripted agent's report, and what to look for in it.

use futures_util::future::join_all;
use switchboard_check::{CheckOptions, CheckOutcome, CheckReport, Finding, check};
use switchboard_client::{Credentials, Peer, Secret};

use crate::peer::{Defect, start};

pub(crate) async fn examined(peer: &Peer, options: &CheckOptions) -> CheckReport {
    let egress = switchboard_client::egress().unwrap();
    check(egress, peer, options, std::future::pending(), |_| {}).await.unwrap()
}

pub(crate) async fn report(defect: Defect, options: &CheckOptions) -> CheckReport {
    examined(&Peer::new(start(defect).await), options).await
}

pub(crate) fn key(text: &str) -> Credentials {
    Credentials::Bearer(Secret::Plain(text.to_owned()))
}

/// The same by a caller with a key, and with a second one who has another.
pub(crate) async fn report_with_keys(defect: Defect) -> CheckReport {
    let peer = Peer { credentials: key("key-of-one"), ..Peer::new(start(defect).await) };
    examined(&peer, &CheckOptions { other: key("key-of-two"), ..CheckOptions::default() }).await
}

pub(crate) fn that(report: &CheckReport, outcome: CheckOutcome) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| finding.outcome == outcome).map(|finding| finding.check.id).collect()
}

pub(crate) fn failed(report: &CheckReport) -> Vec<&'static str> {
    that(report, CheckOutcome::Fail)
}

pub(crate) fn finding<'a>(report: &'a CheckReport, id: &str) -> &'a Finding {
    report.findings.iter().find(|finding| finding.check.id == id).unwrap()
}

/// What is wrong, for the output of a test that fails.
pub(crate) fn faults(report: &CheckReport) -> String {
    let failed = report.findings.iter().filter(|finding| finding.outcome == CheckOutcome::Fail);
    failed.map(|finding| format!("{}: {} -> {}\n", finding.check.id, finding.sent, finding.seen)).collect()
}

#[track_caller]
pub(crate) fn assert_found(defect: Defect, report: &CheckReport, expected: &[&str]) {
    assert_eq!(failed(report), expected, "{defect:?}: {}", faults(report));
    for finding in report.findings.iter().filter(|finding| finding.outcome == CheckOutcome::Fail) {
        assert!(!finding.sent.is_empty() && !finding.seen.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    }
}

/// Reports on all of them at once: each takes its time, and none of them the machine's.
pub(crate) async fn all_found(options: &CheckOptions, expected: &[(Defect, &[&str])]) {
    let reports = expected.iter().map(|(defect, _)| report(*defect, options));
    for ((defect, expected), report) in expected.iter().zip(join_all(reports).await) {
        assert_found(*defect, &report, expected);
    }
}
