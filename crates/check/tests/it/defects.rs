//! Every defect is found by its name, and nothing is found where there is none.

use std::time::Duration;

use futures_util::future::join_all;
use switchboard_check::{Finding, Group, Options, Outcome, Report, check};
use switchboard_client::{Credentials, Peer, Secret};

use crate::peer::{Defect, start};

async fn report(defect: Defect, options: &Options) -> Report {
    let peer = Peer::new(start(defect).await);
    check(switchboard_client::egress().unwrap(), &peer, options, |_| {}).await.unwrap()
}

/// The same by a caller with a key, and with a second one who has another.
async fn report_with_keys(defect: Defect) -> Report {
    let key = |text: &str| Credentials::Bearer(Secret::Plain(text.to_owned()));
    let peer = Peer { credentials: key("key-of-one"), ..Peer::new(start(defect).await) };
    let options = Options { other: key("key-of-two"), ..Options::default() };
    check(switchboard_client::egress().unwrap(), &peer, &options, |_| {}).await.unwrap()
}

fn that(report: &Report, outcome: Outcome) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| finding.outcome == outcome).map(|finding| finding.id).collect()
}

fn failed(report: &Report) -> Vec<&'static str> {
    that(report, Outcome::Fail)
}

fn finding<'a>(report: &'a Report, id: &str) -> &'a Finding {
    report.findings.iter().find(|finding| finding.id == id).unwrap()
}

fn assert_found(defect: Defect, report: &Report, expected: &[&str]) {
    assert_eq!(failed(report), expected, "{defect:?}");
    for finding in report.findings.iter().filter(|finding| finding.outcome == Outcome::Fail) {
        assert!(!finding.sent.is_empty() && !finding.seen.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    }
}

/// Reports on all of them at once: each takes its time, and none of them the machine's.
async fn all_found(text: &str, expected: &[(Defect, &[&str])]) {
    let (patience, silence) = (Duration::from_secs(6), Duration::from_secs(1));
    let options = Options { text: text.to_owned(), patience, silence, ..Options::default() };
    let reports = expected.iter().map(|(defect, _)| report(*defect, &options));
    for ((defect, expected), report) in expected.iter().zip(join_all(reports).await) {
        assert_found(*defect, &report, expected);
    }
}

fn slow() -> Options {
    Options { text: "slow:800".to_owned(), silence: Duration::from_secs(1), ..Options::default() }
}

#[tokio::test]
async fn an_agent_without_defects_has_none() {
    let fast = report(Defect::Nothing, &Options::default()).await;
    assert_eq!(failed(&fast), [""; 0], "{fast:#?}");
    assert!(fast.counts.pass > 45, "{:?}", fast.counts);
    assert!(!fast.failed(true));

    let slow = report(Defect::Nothing, &slow()).await;
    assert_eq!(failed(&slow), [""; 0], "{slow:#?}");
    let passed = that(&slow, Outcome::Pass);
    for id in ["stream-left", "subscribe-follows", "subscribe-twice", "cancel-final", "stream-keep-alive"] {
        assert!(passed.contains(&id), "{id}: {:?}", finding(&slow, id));
    }

    let rest = report(Defect::Rest, &Options::default()).await;
    assert_eq!(failed(&rest), [""; 0], "{rest:#?}");
    assert!(that(&rest, Outcome::Pass).contains(&"error-status"));

    let extension = report(Defect::WithExtension, &Options::default()).await;
    assert_eq!(failed(&extension), [""; 0], "{extension:#?}");
    let passed = that(&extension, Outcome::Pass);
    for id in ["extension-required", "extension-declared", "extension-echoed", "send-answered"] {
        assert!(passed.contains(&id), "{id}");
    }
    assert_eq!(failed(&report(Defect::WithoutWebhooks, &Options::default()).await), [""; 0]);
}

#[tokio::test]
async fn every_defect_is_found_and_nothing_else() {
    all_found(
        "hello",
        &[
            (Defect::CardWithoutSkills, &["card-members"]),
            (Defect::CardWithoutCaching, &["card-caching"]),
            (Defect::CardWithTwoSkillsOfOneName, &["card-skills"]),
            (Defect::CardSchemeWithoutFlow, &["card-schemes"]),
            (Defect::CardSchemeUnencrypted, &["card-schemes-https"]),
            (Defect::CardSignatureWithoutKey, &["card-signatures"]),
            (Defect::ExtendedCardUndeclared, &["card-extended-undeclared"]),
            (Defect::AnswersAsText, &["send-media-type"]),
            (Defect::HistoryAlways, &["get-no-history"]),
            (Defect::HistoryTooLong, &["get-history-length"]),
            (Defect::HistoryNegative, &["get-history-negative"]),
            (Defect::CanceledStreamGoesOn, &["cancel-ends-streams"]),
            (Defect::ErrorWithoutInfo, &["error-info"]),
            (Defect::ErrorWithPlainData, &["error-form"]),
            (Defect::ErrorsAsText, &["error-media-type"]),
            (Defect::ErrorsWithRpcStatus, &["error-status-rpc"]),
            (Defect::ErrorsWithRestStatus, &["error-status"]),
            (Defect::EndedTaskIsCanceled, &["error-cancel-ended"]),
            (Defect::ListOldestFirst, &["list-order"]),
            (Defect::ListWithArtifacts, &["list-artifacts-absent"]),
            (Defect::ListByNumber, &["list-cursor"]),
            (Defect::ListWithoutToken, &["list-members"]),
            (Defect::ListOfAllStates, &["list-status"]),
            (Defect::ListOfAllTimes, &["list-after"]),
            (Defect::ListWithHistory, &["list-no-history"]),
            (Defect::ListTakesAnyToken, &["list-token-unknown"]),
        ],
    )
    .await;
    all_found(
        "hello",
        &[
            (Defect::StreamNeverCloses, &["stream-closes"]),
            (Defect::StreamWithoutTask, &["stream-first"]),
            (Defect::StreamGoesOnAfterTheEnd, &["stream-end-last"]),
            (Defect::StreamBreaksOffWithAnError, &["stream-whole"]),
            (Defect::StreamLosesAChunk, &["stream-matches-task"]),
            (Defect::StreamIsBuffered, &["stream-unbuffered"]),
            (Defect::SubscribeLosesTheTask, &["subscribe-open", "subscribe-twice"]),
            (Defect::SubscribeToEnded, &["subscribe-ended"]),
            (Defect::OldCallersRefused, &["version-old-callers"]),
            (Defect::VersionIgnored, &["version-unknown"]),
            (Defect::ExtensionNotRequired, &["extension-required", "extension-echoed"]),
            (Defect::ExtensionNotEchoed, &["extension-echoed"]),
            (Defect::WebhooksUndeclared, &["push-undeclared"]),
            (Defect::WebhooksOfNoTask, &["push-unknown-task"]),
            (Defect::WebhookOfNoName, &["push-round-trip", "push-unknown-config"]),
            (Defect::WebhookGoneIsAnError, &["push-delete-again"]),
            (Defect::WebhooksAreWaitedFor, &["push-not-waited-for"]),
            (Defect::WebhooksNeverCalled, &["push-delivered"]),
            (Defect::KeyDemandedAndNotChecked, &["security-enforced"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_only_work_that_takes_time_shows_is_found_with_a_text_for_it() {
    all_found(
        "slow:800",
        &[
            (Defect::CanceledTaskGoesOn, &["cancel-final"]),
            (Defect::LeavingCancels, &["stream-left"]),
            (Defect::SubscriptionStops, &["cancel-ends-streams", "subscribe-follows"]),
            (Defect::SubscribersHearOtherThings, &["subscribe-twice"]),
            (Defect::IdsOfTheStream, &["subscribe-resumes"]),
        ],
    )
    .await;
    let longer: [(Defect, &[&str]); 2] =
        [(Defect::ReturnsLate, &["send-returns-immediately"]), (Defect::StreamIsSilent, &["stream-keep-alive"])];
    all_found("slow:1500", &longer).await;
}

#[tokio::test]
async fn a_message_that_is_never_answered_is_told_with_what_its_task_says_meanwhile() {
    let options = Options { patience: Duration::from_secs(1), ..Options::default() };
    let report = report(Defect::AnswersNever, &options).await;
    let finding = finding(&report, "send-in-time");
    assert_eq!(finding.outcome, Outcome::Fail);
    let seen = "no answer within 1 s; its task is working since 2026-01-01T00:00:01.000Z, and can be subscribed to";
    assert!(finding.seen.ends_with(seen), "{}", finding.seen);
    assert!(!report.failed(true), "being slow breaks no rule: {:?}", failed(&report));
}

#[tokio::test]
async fn a_second_caller_who_gets_at_the_tasks_of_the_first_is_found_at_every_door() {
    let clean = report_with_keys(Defect::Nothing).await;
    assert_eq!(failed(&clean), [""; 0], "{clean:#?}");
    let passed = that(&clean, Outcome::Pass);
    let doors: [(&str, &[&str]); 6] = [
        ("GetTask", &["security-foreign-task", "security-other-read"]),
        ("ListTasks", &["security-other-list"]),
        ("CancelTask", &["security-other-cancel"]),
        ("SubscribeToTask", &["security-other-subscribe"]),
        ("SendMessage", &["security-other-answer"]),
        ("ListTaskPushNotificationConfigs", &["security-other-webhooks"]),
    ];
    let reports = join_all(doors.iter().map(|(method, _)| report_with_keys(Defect::Shared(method)))).await;
    for ((method, expected), report) in doors.iter().zip(reports) {
        assert!(expected.iter().all(|id| passed.contains(id)), "{method}: {clean:#?}");
        assert_found(Defect::Shared(method), &report, expected);
    }
    let alone = report(Defect::Nothing, &Options { only: vec![Group::Security], ..Options::default() }).await;
    let finding = finding(&alone, "security-other-read");
    assert!(finding.outcome == Outcome::NotApplicable && finding.seen.contains("A2ACLI_OTHER_BEARER"), "{finding:?}");
}

#[tokio::test]
async fn the_card_for_known_callers_is_held_against_what_is_declared() {
    let clean = report_with_keys(Defect::WithExtendedCard).await;
    assert_eq!(failed(&clean), [""; 0], "{clean:#?}");
    let passed = that(&clean, Outcome::Pass);
    assert!(passed.contains(&"card-extended") && passed.contains(&"card-extended-guarded"), "{passed:?}");
    for (defect, expected) in [
        (Defect::ExtendedCardForAnybody, &["card-extended-guarded"][..]),
        (Defect::ExtendedCardNotThere, &["card-extended"]),
    ] {
        assert_found(defect, &report_with_keys(defect).await, expected);
    }
}

#[tokio::test]
async fn cards_are_held_against_what_is_there() {
    let options = Options { only: vec![Group::Card], ..Options::default() };
    let other = report(Defect::CardOfAnotherAgent, &options).await;
    assert_found(Defect::CardOfAnotherAgent, &other, &["card-v03-agrees"]);
    assert_eq!(finding(&other, "card-v03-agrees").seen, "name is \"peer\" and \"another\"");
    let nowhere = report(Defect::CardInterfaceNotThere, &options).await;
    assert!(finding(&nowhere, "card-reachable").seen.starts_with("HTTP+JSON 1.0: 404 text/plain"), "{nowhere:#?}");
}

#[tokio::test]
async fn defects_that_spoil_more_than_one_thing_are_found_too() {
    let expected: [(Defect, &[&str]); 6] = [
        (Defect::ErrorWithoutCode, &["error-form", "error-task-unknown", "version-unknown"]),
        (Defect::HtmlForJson, &["card-reachable", "send-answered", "error-form", "stream-media-type"]),
        (Defect::TaskLeftAtWork, &["send-answered", "failed-task-ends", "subscribe-open"]),
        (Defect::AnswerLost, &["send-answered"]),
        (Defect::OldSpellings, &["send-waits", "task-members", "stream-events"]),
        (Defect::ExtensionNeverTaken, &["extension-declared"]),
    ];
    let options = Options::default();
    let reports = join_all(expected.iter().map(|(defect, _)| report(*defect, &options))).await;
    for ((defect, expected), report) in expected.iter().zip(reports) {
        let failed = failed(&report);
        assert!(expected.iter().all(|id| failed.contains(id)), "{defect:?}: {failed:?}");
        assert!(report.failed(false), "{defect:?}");
        if *defect == Defect::AnswerLost {
            let seen = &finding(&report, "send-answered").seen;
            assert!(seen.contains("its task is \"TASK_STATE_COMPLETED\": 200"), "{seen}");
        }
    }
}

#[tokio::test]
async fn advice_that_is_not_followed_fails_only_where_that_is_wanted() {
    let options = Options { only: vec![Group::Card], ..Options::default() };
    let report = report(Defect::CardWithoutCaching, &options).await;
    assert!(report.findings.iter().all(|finding| finding.group == Group::Card));
    assert!(!report.failed(false) && report.failed(true));
    let xml = report.junit();
    assert!(xml.contains("<testsuite name=\"card\" tests=\"17\" failures=\"1\" skipped=\"9\">"), "{xml}");
    assert!(xml.contains("<failure type=\"should\" message=\"Cache-Control: ; there is no ETag\">"), "{xml}");
}

#[tokio::test]
async fn what_agents_say_is_shown_without_what_a_terminal_obeys() {
    let report = report(Defect::OldCallersRefused, &Options::default()).await;
    let finding = finding(&report, "version-old-callers");
    assert!(finding.seen.contains("-32009") && !finding.seen.contains('\u{1b}'), "{finding:?}");
}
