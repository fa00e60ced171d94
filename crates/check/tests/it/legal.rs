//! Agents that do what the specification allows, however unusual, have no faults.

use std::time::Duration;

use futures_util::future::join_all;
use switchboard_check::{CheckOptions, CheckOutcome, Group};
use switchboard_client::Peer;

use crate::examined::{
    all_found, assert_found, examined, failed, faults, finding, key, report, report_with_keys, that,
};
use crate::peer::{Defect, old, start};

fn said(text: &str) -> CheckOptions {
    CheckOptions { text: text.to_owned(), ..CheckOptions::default() }
}

#[tokio::test]
async fn what_is_allowed_is_no_fault() {
    let flavours = [
        Defect::Both,
        Defect::WithTenant,
        Defect::KeyOptional,
        Defect::AnswersWithMessage,
        Defect::Limited,
        Defect::WebhooksOfOpenTasks,
        Defect::WebhooksElsewhere,
        Defect::ListByTaskNumber,
    ];
    all_found(&said("hello"), &flavours.map(|flavour| (flavour, &[][..]))).await;
    let limited = report(Defect::Limited, &said("hello")).await;
    assert!(limited.counts.pass > 45, "the checker comes back later where it is asked to: {limited:#?}");
    let tenant = report(Defect::WithTenant, &said("hello")).await;
    assert!(that(&tenant, CheckOutcome::Pass).contains(&"error-params-invalid"), "{tenant:#?}");
    let webhooks = report(Defect::WebhooksOfOpenTasks, &said("hello")).await;
    assert_eq!(
        finding(&webhooks, "push-round-trip").outcome,
        CheckOutcome::Pass,
        "{:?}",
        finding(&webhooks, "push-round-trip")
    );
    let over = report(Defect::WebhooksOfOpenTasks, &said("slow:1")).await;
    assert_eq!(
        finding(&over, "push-round-trip").outcome,
        CheckOutcome::NotApplicable,
        "{:?}",
        finding(&over, "push-round-trip")
    );
}

#[tokio::test]
async fn what_agents_do_with_questions_is_theirs_to_say() {
    let flavours =
        [Defect::Nothing, Defect::ClosesAtQuestions, Defect::TellsLate, Defect::CancelsTwice, Defect::ForgetsCanceled];
    all_found(&said("ask"), &flavours.map(|flavour| (flavour, &[][..]))).await;
    let closing = report(Defect::ClosesAtQuestions, &said("ask")).await;
    assert_eq!(finding(&closing, "cancel-ends-streams").outcome, CheckOutcome::NotApplicable);
    let late = report(Defect::TellsLate, &said("ask")).await;
    assert_eq!(finding(&late, "cancel-ends-streams").outcome, CheckOutcome::Pass);
}

#[tokio::test]
async fn an_agent_without_any_time_is_not_to_blame() {
    let options = CheckOptions { patience: Duration::from_secs(3), ..said("hello") };
    let report = report(Defect::Overloaded, &options).await;
    assert_eq!(failed(&report), [""; 0], "{}", faults(&report));
    assert_eq!(finding(&report, "error-task-unknown").seen, "the agent has no time for it (503)");
}

#[tokio::test]
async fn an_agent_far_away_is_not_slow() {
    let options = CheckOptions { only: vec![Group::Operations], ..said("hello") };
    let report = report(Defect::Far, &options).await;
    assert_eq!(failed(&report), [""; 0], "{}", faults(&report));
    assert_eq!(finding(&report, "send-returns-immediately").outcome, CheckOutcome::Pass);
}

#[tokio::test]
async fn tasks_that_are_thrown_away_are_told_of_once() {
    let expected: &[&str] = &["task-kept"];
    all_found(&said("hello"), &[(Defect::Purges, expected)]).await;
    all_found(&said("slow:300"), &[(Defect::Purges, expected)]).await;
}

#[tokio::test]
async fn where_no_credentials_are_demanded_no_caller_is_foreign() {
    let peer = Peer { credentials: key("key-of-one"), ..Peer::new(start(Defect::Public).await) };
    let header = (http::HeaderName::from_static("x-trace"), http::HeaderValue::from_static("one-two"));
    let with_header = Peer { headers: vec![header], ..Peer::new(start(Defect::Public).await) };
    let options = CheckOptions::default();
    for report in join_all([&peer, &with_header].map(|peer| examined(peer, &options))).await {
        assert_found(Defect::Public, &report, &[]);
        assert_eq!(finding(&report, "security-foreign-task").outcome, CheckOutcome::NotApplicable);
    }
    let keys = report_with_keys(Defect::WithKeys).await;
    assert_found(Defect::WithKeys, &keys, &[]);
    for id in ["security-enforced", "security-wrong", "security-challenge", "security-foreign-task"] {
        assert_eq!(finding(&keys, id).outcome, CheckOutcome::Pass, "{id}");
    }
}

#[tokio::test]
async fn old_agents_are_held_to_their_own_version() {
    for flavour in [old::Old::Plain, old::Old::TasksOfAnyId] {
        let peer = Peer::new(old::start(flavour).await);
        let report = examined(&peer, &said("hello")).await;
        assert_eq!(failed(&report), [""; 0], "{flavour:?}: {}", faults(&report));
        assert!(report.counts.pass > 15, "{:?}", report.counts);
    }
}

#[tokio::test]
async fn work_that_ends_after_the_reader_left_is_no_fault_of_the_stream() {
    let patience = Duration::from_millis(1_500);
    let options = CheckOptions { patience, only: vec![Group::Streaming], ..said("slow:5000") };
    let report = report(Defect::Nothing, &options).await;
    assert_eq!(failed(&report), [""; 0], "{}", faults(&report));
    assert_eq!(finding(&report, "subscribe-follows").outcome, CheckOutcome::NotApplicable, "{report:#?}");
}

#[tokio::test]
async fn a_message_whose_task_has_ended_meanwhile_was_worked_on() {
    let patience = Duration::from_secs(3);
    let options = CheckOptions { patience, only: vec![Group::Operations], ..said("slow:3500") };
    let report = report(Defect::Both, &options).await;
    assert_eq!(failed(&report), [""; 0], "{}", faults(&report));
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_read_is_said_so() {
    let options = CheckOptions { only: vec![Group::List], ..said("big:5000000") };
    let report = report(Defect::Nothing, &options).await;
    assert_eq!(failed(&report), [""; 0], "{}", faults(&report));
    let seen = &finding(&report, "list-artifacts-asked").seen;
    assert_eq!(seen, "the answer has more than 8388608 bytes, and is not read");
}
