//! Every defect is found by its name, and nothing is found where there is none.

use std::time::Duration;

use futures_util::future::join_all;
use switchboard_check::{CheckOptions, CheckOutcome, Group};
use switchboard_client::Peer;

use crate::examined::{all_found, assert_found, examined, failed, faults, finding, report, report_with_keys, that};
use crate::peer::{Defect, old};

fn said(text: &str) -> CheckOptions {
    CheckOptions { text: text.to_owned(), patience: Duration::from_secs(8), ..CheckOptions::default() }
}

fn slow() -> CheckOptions {
    said("slow:2000")
}

#[tokio::test]
async fn an_agent_without_defects_has_none() {
    let fast = report(Defect::Nothing, &CheckOptions::default()).await;
    assert_eq!(failed(&fast), [""; 0], "{}", faults(&fast));
    assert!(fast.counts.pass > 45, "{:?}", fast.counts);
    assert!(!fast.failed(true));

    let slow = report(Defect::Nothing, &slow()).await;
    assert_eq!(failed(&slow), [""; 0], "{}", faults(&slow));
    let passed = that(&slow, CheckOutcome::Pass);
    for id in ["stream-left", "subscribe-follows", "subscribe-twice", "cancel-final", "stream-keep-alive"] {
        assert!(passed.contains(&id), "{id}: {:?}", finding(&slow, id));
    }

    let rest = report(Defect::Rest, &CheckOptions::default()).await;
    assert_eq!(failed(&rest), [""; 0], "{}", faults(&rest));
    assert!(that(&rest, CheckOutcome::Pass).contains(&"error-status"));

    let extension = report(Defect::WithExtension, &CheckOptions::default()).await;
    assert_eq!(failed(&extension), [""; 0], "{}", faults(&extension));
    let passed = that(&extension, CheckOutcome::Pass);
    for id in ["extension-required", "extension-declared", "extension-echoed", "send-answered"] {
        assert!(passed.contains(&id), "{id}");
    }
    assert_eq!(failed(&report(Defect::WithoutWebhooks, &CheckOptions::default()).await), [""; 0]);
}

#[tokio::test]
async fn every_defect_is_found_and_nothing_else() {
    all_found(
        &said("hello"),
        &[
            (Defect::CardWithoutSkills, &["card-members"]),
            (Defect::CardWithoutCaching, &["card-caching"]),
            (Defect::CardWithEmptyLists, &["card-lists"]),
            (Defect::CardWithTwoSkillsOfOneName, &["card-skills"]),
            (Defect::CardSchemeWithoutFlow, &["card-schemes"]),
            (Defect::CardSchemeUnencrypted, &["card-schemes-https"]),
            (Defect::CardSignatureWithoutKey, &["card-signatures"]),
            (Defect::ExtendedCardUndeclared, &["card-extended-undeclared"]),
            (Defect::AnswersAsText, &["send-media-type"]),
            (Defect::AnswersWithOtherId, &["send-envelope"]),
            (Defect::AnswersWithBadMessage, &["message-members", "stream-events"]),
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
            (Defect::TasksOfAnyId, &["error-send-unknown"]),
            (Defect::ListOldestFirst, &["list-order"]),
            (Defect::ListWithArtifacts, &["list-artifacts-absent"]),
            (Defect::ListByNumber, &["list-cursor"]),
            (Defect::ListByPlace, &["list-cursor"]),
            (Defect::ListSecondPageTooLong, &["list-pages"]),
            (Defect::ListTotalWrong, &["list-members"]),
            (Defect::ListWithoutToken, &["list-members"]),
            (Defect::ListOfAllStates, &["list-status"]),
            (Defect::ListOfAllTimes, &["list-after"]),
            (Defect::ListWithHistory, &["list-no-history"]),
            (Defect::ListTakesAnyToken, &["list-token-unknown"]),
        ],
    )
    .await;
    all_found(
        &said("hello"),
        &[
            (Defect::StreamNeverCloses, &["stream-closes"]),
            (Defect::StreamWithoutTask, &["stream-first"]),
            (Defect::StreamWithoutEnvelope, &["stream-envelope"]),
            (Defect::StreamWithOtherId, &["stream-envelope"]),
            (Defect::StreamWithMessage, &["stream-events"]),
            (Defect::StreamOfTwoContexts, &["stream-events"]),
            (Defect::StreamOfTwoKinds, &["stream-events"]),
            (Defect::StreamOfAnError, &["stream-whole"]),
            (Defect::StreamGoesOnAfterTheEnd, &["stream-end-last"]),
            (Defect::StreamBreaksOffWithAnError, &["stream-whole"]),
            (Defect::StreamLosesAChunk, &["stream-matches-task"]),
            (Defect::StreamIsBuffered, &["stream-unbuffered"]),
            (Defect::SubscribeLosesTheTask, &["subscribe-open", "subscribe-twice"]),
            (Defect::SubscribeToEnded, &["subscribe-ended"]),
            (Defect::OldCallersRefused, &["version-old-callers"]),
            (Defect::VersionIgnored, &["version-unknown", "version-minor", "version-malformed"]),
            (Defect::VersionByMajor, &["version-minor"]),
            (Defect::VersionWithoutMinor, &["version-malformed"]),
            (Defect::ExtensionNotRequired, &["extension-required", "extension-echoed"]),
            (Defect::ExtensionNotEchoed, &["extension-echoed"]),
            (Defect::WebhooksUndeclared, &["push-undeclared"]),
            (Defect::WebhooksOfNoTask, &["push-unknown-task"]),
            (Defect::WebhookOfNoName, &["push-round-trip", "push-unknown-config"]),
            (Defect::WebhookGoneIsAnError, &["push-delete-again"]),
            (Defect::WebhookDeletedWithoutResult, &["push-delete-result"]),
            (Defect::WebhooksAreWaitedFor, &["push-not-waited-for"]),
            (Defect::WebhooksNeverCalled, &["push-delivered"]),
            (Defect::WebhooksToldNonsense, &["push-payload"]),
            (Defect::KeyDemandedAndNotChecked, &["security-enforced", "security-wrong"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_only_work_that_takes_time_shows_is_found_with_a_text_for_it() {
    all_found(
        &slow(),
        &[
            (Defect::CanceledTaskGoesOn, &["cancel-final"]),
            (Defect::LeavingCancels, &["stream-left"]),
            (Defect::SubscriptionStops, &["cancel-ends-streams", "subscribe-follows"]),
            (Defect::SubscribersHearOtherThings, &["subscribe-twice"]),
            (Defect::IdsOfTheStream, &["subscribe-resumes"]),
        ],
    )
    .await;
    all_found(&said("slow:3000"), &[(Defect::ReturnsLate, &["send-returns-immediately"])]).await;
    let silent = CheckOptions { silence: Duration::from_secs(1), ..said("slow:1500") };
    all_found(&silent, &[(Defect::StreamIsSilent, &["stream-keep-alive"])]).await;
}

#[tokio::test]
async fn a_message_that_is_never_answered_is_told_with_what_its_task_says_meanwhile() {
    let options = CheckOptions { patience: Duration::from_secs(3), ..CheckOptions::default() };
    let report = report(Defect::AnswersNever, &options).await;
    let finding = finding(&report, "send-in-time");
    assert_eq!(finding.outcome, CheckOutcome::Fail);
    let seen = "no answer within 3 s; its task is working since 2026-01-01T00:00:01.000Z, and can be subscribed to";
    assert!(finding.seen.ends_with(seen), "{}", finding.seen);
    assert!(!report.failed(true), "being slow breaks no rule: {:?}", failed(&report));
}

#[tokio::test]
async fn a_second_caller_who_gets_at_the_tasks_of_the_first_is_found_at_every_door() {
    let clean = report_with_keys(Defect::WithKeys).await;
    assert_eq!(failed(&clean), [""; 0], "{}", faults(&clean));
    let passed = that(&clean, CheckOutcome::Pass);
    let leaks: [(&str, &[&str]); 6] = [
        ("GetTask", &["security-other-read"]),
        ("ListTasks", &["security-other-list"]),
        ("CancelTask", &["security-other-cancel"]),
        ("SubscribeToTask", &["security-other-subscribe"]),
        ("SendMessage", &["security-other-answer"]),
        ("ListTaskPushNotificationConfigs", &["security-other-webhooks"]),
    ];
    let reports = join_all(leaks.iter().map(|(method, _)| report_with_keys(Defect::Shared(method)))).await;
    for ((method, expected), report) in leaks.iter().zip(reports) {
        assert!(expected.iter().all(|id| passed.contains(id)), "{method}: {clean:#?}");
        assert_found(Defect::Shared(method), &report, expected);
    }
    let alone = report(Defect::Nothing, &CheckOptions { only: vec![Group::Security], ..CheckOptions::default() }).await;
    let finding = finding(&alone, "security-other-read");
    assert!(
        finding.outcome == CheckOutcome::NotApplicable && finding.seen.contains("A2ACLI_OTHER_BEARER"),
        "{finding:?}"
    );
}

#[tokio::test]
async fn credentials_are_asked_for_at_every_door_and_looked_at() {
    let expected: [(Defect, &[&str]); 4] = [
        (
            Defect::OpenDoor("GetTask"),
            &["security-enforced", "security-wrong", "security-foreign-task", "security-other-read"],
        ),
        (Defect::OpenDoor("SendMessage"), &["security-enforced", "security-wrong", "security-other-answer"]),
        (Defect::OpenDoor("ListTasks"), &["security-enforced"]),
        (Defect::AnyKey, &["security-wrong"]),
    ];
    let reports = join_all(expected.iter().map(|(defect, _)| report_with_keys(*defect))).await;
    for ((defect, expected), report) in expected.iter().zip(reports) {
        assert_found(*defect, &report, expected);
    }
}

#[tokio::test]
async fn a_list_that_ignores_states_is_found_where_all_tasks_are_in_one() {
    let options = CheckOptions { only: vec![Group::List], ..said("slow:1") };
    all_found(&options, &[(Defect::ListOfAllStates, &["list-status"])]).await;
}

#[tokio::test]
async fn over_rest_an_error_must_say_its_reason() {
    let report = report(Defect::RestErrorWithoutInfo, &said("hello")).await;
    assert!(failed(&report).contains(&"error-info-rest") && report.failed(false), "{report:#?}");
}

#[tokio::test]
async fn an_old_stream_that_ends_with_a_question_must_say_that_it_is_final() {
    let options = CheckOptions { only: vec![Group::Streaming], ..said("hello") };
    for (old, outcome) in [
        (old::Old::AsksWithoutFinal, CheckOutcome::Fail),
        (old::Old::Asks, CheckOutcome::Pass),
        // It has not ended.
        (old::Old::AsksAndStays, CheckOutcome::NotApplicable),
    ] {
        let report = examined(&Peer::new(old::start(old).await), &options).await;
        let finding = finding(&report, "stream-final");
        assert_eq!(finding.outcome, outcome, "{old:?}: {finding:?}");
        let expected: &[&str] = if outcome == CheckOutcome::Fail { &["stream-final"] } else { &[] };
        assert_eq!(failed(&report), expected, "{old:?}: {}", faults(&report));
    }
}

#[tokio::test]
async fn an_old_webhook_that_is_deleted_without_a_result_is_found() {
    let options = CheckOptions { only: vec![Group::Push], ..said("hello") };
    for (old, outcome) in
        [(old::Old::DeletesWithoutResult, CheckOutcome::Fail), (old::Old::WithWebhooks, CheckOutcome::Pass)]
    {
        let report = examined(&Peer::new(old::start(old).await), &options).await;
        let finding = finding(&report, "push-delete-result");
        assert_eq!(finding.outcome, outcome, "{old:?}: {finding:?}");
        let expected: &[&str] = if outcome == CheckOutcome::Fail { &["push-delete-result"] } else { &[] };
        assert_eq!(failed(&report), expected, "{old:?}: {}", faults(&report));
    }
}

#[tokio::test]
async fn an_old_card_must_say_what_is_spoken_at_its_address() {
    let peer = Peer::new(old::start(old::Old::CardWithoutTransport).await);
    let report = examined(&peer, &CheckOptions { only: vec![Group::Card], ..said("hello") }).await;
    assert_eq!(failed(&report), ["card-members-v03"], "{}", faults(&report));
    assert_eq!(finding(&report, "card-members-v03").seen, "preferredTransport is missing");
}

#[tokio::test]
async fn the_card_for_known_callers_is_held_against_what_is_declared() {
    let clean = report_with_keys(Defect::WithExtendedCard).await;
    assert_eq!(failed(&clean), [""; 0], "{}", faults(&clean));
    let passed = that(&clean, CheckOutcome::Pass);
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
    let options = CheckOptions { only: vec![Group::Card], ..CheckOptions::default() };
    let other = report(Defect::CardOfAnotherAgent, &options).await;
    assert_found(Defect::CardOfAnotherAgent, &other, &["card-v03-agrees"]);
    assert_eq!(finding(&other, "card-v03-agrees").seen, "name is \"peer\" and \"another\"");
    let moved = report(Defect::CardOfAnotherHost, &options).await;
    let reachable = finding(&moved, "card-reachable");
    let says = "the card says http://127.0.0.1:1/rpc, and http://127.0.0.1:";
    assert!(reachable.outcome == CheckOutcome::NotApplicable && reachable.seen.starts_with(says), "{reachable:?}");
    assert!(moved.interfaces[0].ends_with("/rpc (the card says http://127.0.0.1:1/rpc)"), "{:?}", moved.interfaces);
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
    let options = CheckOptions::default();
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
    let options = CheckOptions { only: vec![Group::Card], ..CheckOptions::default() };
    let report = report(Defect::CardWithoutCaching, &options).await;
    assert!(report.findings.iter().all(|finding| finding.check.group == Group::Card));
    assert!(!report.failed(false) && report.failed(true));
    let xml = report.junit();
    assert!(xml.contains("<testsuite name=\"card\" tests=\"18\" failures=\"1\" skipped=\"9\">"), "{xml}");
    assert!(xml.contains("<failure type=\"should\" message=\"Cache-Control: ; there is no ETag\">"), "{xml}");
}

#[tokio::test]
async fn what_agents_say_is_shown_without_what_a_terminal_obeys() {
    let report = report(Defect::OldCallersRefused, &CheckOptions::default()).await;
    let finding = finding(&report, "version-old-callers");
    assert!(finding.seen.contains("-32009") && !finding.seen.contains('\u{1b}'), "{finding:?}");
}
