//! Whatever an agent does, a report comes in time, is short, keeps its secrets, and leaves no connection open.

use std::time::Duration;

use switchboard_check::{CheckOptions, CheckOutcome, Group, check};
use switchboard_client::{Credentials, Peer, Secret};
use tokio::time::timeout;

use crate::examined::{examined, failed, finding, key, report};
use crate::peer::{Defect, start, start_watched};

/// A hang guard, not a measure of speed: streams without an end that are not left take for ever.
const HANG_GUARD: Duration = Duration::from_secs(300);

#[tokio::test]
async fn streams_without_an_end_are_left() {
    for defect in [Defect::StreamEndless, Defect::StreamHuge] {
        let (url, agent) = start_watched(defect).await;
        let (patience, only) = (Duration::from_secs(1), vec![Group::Streaming]);
        let (peer, options) = (Peer::new(url), CheckOptions { patience, only, ..CheckOptions::default() });
        let report = timeout(HANG_GUARD, examined(&peer, &options)).await.expect("the stream was not left");
        assert!(agent.messages() <= 6, "{defect:?}: {} messages", agent.messages());
        assert_eq!(finding(&report, "stream-whole").outcome, CheckOutcome::NotApplicable, "{report:#?}");
        assert_eq!(agent.open_tasks(), 0, "{defect:?}");
    }
}

#[tokio::test]
async fn a_report_that_is_stopped_says_what_is_known_and_leaves_nothing_at_work() {
    let (url, agent) = start_watched(Defect::Nothing).await;
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut stop = Some(stop);
    let begins = |check: &switchboard_check::Check| {
        if check.group == Group::List {
            stop.take().map(|stop| stop.send(()));
        }
    };
    let stopped = async { stopped.await.unwrap() };
    let (peer, options) = (
        Peer::new(url),
        CheckOptions { text: "slow:60000".to_owned(), patience: Duration::from_secs(1), ..CheckOptions::default() },
    );
    let report = check(switchboard_client::egress().unwrap(), &peer, &options, stopped, begins).await.unwrap();
    assert!(
        !report.complete && report.findings.iter().any(|finding| finding.check.group == Group::Errors),
        "{report:#?}"
    );
    assert!(report.findings.iter().all(|finding| finding.check.group != Group::Streaming));
    assert!(agent.messages() > 1, "something was begun");
    assert_eq!(agent.open_tasks(), 0, "and is ended");
}

#[tokio::test]
async fn a_fault_that_is_there_five_thousand_times_is_told_in_one_line() {
    let options = CheckOptions { only: vec![Group::Card], ..CheckOptions::default() };
    let report = report(Defect::CardWithManySkills, &options).await;
    let seen = &finding(&report, "card-skills").seen;
    assert!(seen.len() < 1_000 && seen.ends_with("more like these"), "{seen}");
}

#[tokio::test]
async fn secrets_that_agents_repeat_are_not_in_the_report() {
    let secret = "s3cret-of-the-first/\"quoted\"";
    let plain = || Secret::Plain(secret.to_owned());
    let header = http::HeaderName::from_static("x-api-key");
    let in_query = Credentials::ApiKeyInQuery { name: "key".to_owned(), key: plain() };
    let typed = vec![(header.clone(), http::HeaderValue::from_str(secret).unwrap())];
    for (credentials, headers) in [
        (key(secret), Vec::new()),
        (Credentials::ApiKey { header, key: plain() }, Vec::new()),
        (in_query, Vec::new()),
        (Credentials::None, typed),
    ] {
        let peer = Peer { credentials, headers, ..Peer::new(start(Defect::Reflects).await) };
        let report =
            examined(&peer, &CheckOptions { patience: Duration::from_secs(3), ..CheckOptions::default() }).await;
        let shown = format!("{}{}{report:?}", report.junit(), serde_json::to_string(&report).unwrap());
        for part in ["s3cret", "quoted"] {
            assert!(!shown.to_ascii_lowercase().contains(part), "{shown}");
        }
        assert!(shown.contains("***") && failed(&report).contains(&"stream-events"), "it was repeated: {shown}");
    }
}
