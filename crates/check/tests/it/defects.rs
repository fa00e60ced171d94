//! Every defect is found by its name, and nothing is found where there is none.

use switchboard_check::{Group, Options, Outcome, Report, check};
use switchboard_client::Peer;

use crate::peer::{Defect, start};

async fn report(defect: Defect, options: &Options) -> Report {
    let peer = Peer::new(start(defect).await);
    check(switchboard_client::egress().unwrap(), &peer, options, |_| {}).await.unwrap()
}

fn failed(report: &Report) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| finding.outcome == Outcome::Fail).map(|finding| finding.id).collect()
}

#[tokio::test]
async fn an_agent_without_defects_has_none() {
    let report = report(Defect::Nothing, &Options::default()).await;
    assert_eq!(failed(&report), [""; 0], "{report:#?}");
    assert!(report.counts.pass > 35, "{:?}", report.counts);
    assert!(!report.failed(true));
}

#[tokio::test]
async fn every_defect_is_found_and_nothing_else() {
    for (defect, expected) in [
        (Defect::ListOldestFirst, &["list-order"][..]),
        (Defect::ListWithArtifacts, &["list-artifacts-absent"]),
        (Defect::ListByNumber, &["list-cursor"]),
        (Defect::ListWithoutToken, &["list-members"]),
        (Defect::OldCallersRefused, &["version-old-callers"]),
        (Defect::VersionIgnored, &["version-unknown"]),
        (Defect::ErrorWithoutInfo, &["error-info"]),
        (Defect::StreamNeverCloses, &["stream-closes"]),
        (Defect::StreamWithoutTask, &["stream-first"]),
        (Defect::StreamGoesOnAfterTheEnd, &["stream-end-last"]),
        (Defect::SubscribeLosesTheTask, &["subscribe-open", "subscribe-twice"]),
        (Defect::SubscribeToEnded, &["subscribe-ended"]),
        (Defect::EndedTaskIsCanceled, &["error-cancel-ended"]),
        (Defect::HistoryAlways, &["get-no-history"]),
        (Defect::CardWithoutSkills, &["card-members"]),
        (Defect::CardWithoutCaching, &["card-caching"]),
        (Defect::WebhooksUndeclared, &["push-undeclared"]),
        (Defect::KeyDemandedAndNotChecked, &["security-enforced"]),
    ] {
        let report = report(defect, &Options::default()).await;
        assert_eq!(failed(&report), expected, "{defect:?}");
        for finding in report.findings.iter().filter(|finding| finding.outcome == Outcome::Fail) {
            assert!(!finding.sent.is_empty() && !finding.seen.is_empty() && !finding.fix.is_empty(), "{finding:?}");
        }
    }
}

#[tokio::test]
async fn defects_that_spoil_more_than_one_thing_are_found_too() {
    for (defect, expected) in [
        (Defect::ErrorWithoutCode, &["error-form", "error-task-unknown", "version-unknown"][..]),
        (Defect::HtmlForJson, &["send-answered", "error-form", "stream-media-type"]),
        (Defect::TaskLeftAtWork, &["send-answered", "failed-task-ends", "subscribe-open"]),
        (Defect::OldSpellings, &["send-waits", "task-members", "stream-events"]),
    ] {
        let report = report(defect, &Options::default()).await;
        let failed = failed(&report);
        assert!(expected.iter().all(|id| failed.contains(id)), "{defect:?}: {failed:?}");
        assert!(report.failed(false), "{defect:?}");
    }
}

#[tokio::test]
async fn advice_that_is_not_followed_fails_only_where_that_is_wanted() {
    let options = Options { only: vec![Group::Card], ..Options::default() };
    let report = report(Defect::CardWithoutCaching, &options).await;
    assert!(report.findings.iter().all(|finding| finding.group == Group::Card));
    assert!(!report.failed(false) && report.failed(true));
    let xml = report.junit();
    assert!(xml.contains("<testsuite name=\"card\" tests=\"9\" failures=\"1\" skipped=\"3\">"), "{xml}");
    assert!(xml.contains("<failure type=\"should\" message=\"Cache-Control: ; there is no ETag\">"), "{xml}");
}

#[tokio::test]
async fn what_agents_say_is_shown_without_what_a_terminal_obeys() {
    let report = report(Defect::OldCallersRefused, &Options::default()).await;
    let finding = report.findings.iter().find(|finding| finding.id == "version-old-callers").unwrap();
    assert!(finding.seen.contains("-32009") && !finding.seen.contains('\u{1b}'), "{finding:?}");
}
