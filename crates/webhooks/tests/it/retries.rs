//! What is not taken is sent again, the same bytes under the same name, until the waits are used up.

use std::time::Duration;

use switchboard_a2a::{PushConfig, Timestamp, Version};
use switchboard_engine::Switches;
use switchboard_webhooks::{Options, WebhookService};
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{START, TestKernel, config, options, to};

/// The number of attempts of the first webhook's pending delivery.
async fn attempts(kernel: &TestKernel) -> Option<u32> {
    let webhooks = kernel.service.list(None, None, 0, 1).await.unwrap();
    webhooks[0].pending.as_ref().map(|pending| pending.attempts)
}

#[tokio::test]
async fn attempts_follow_the_waits_and_then_the_next_delivery_goes_on() {
    let folder = tempdir().unwrap();
    let options = Options { pause_after: u32::MAX, ..options() };
    let waits = options.retries.clone();
    let seconds: Vec<u64> = waits.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [1, 3, 9, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    let kernel = TestKernel::with(folder.path(), options, Switches::default()).await;
    let receiver = Receiver::open().await;
    receiver.script(std::iter::repeat_n(Answer::Status(500), waits.len() + 1));
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    for (index, wait) in waits.iter().enumerate() {
        receiver.got(index + 1).await;
        let tried = u32::try_from(index + 1).unwrap();
        kernel.until(async |_| (attempts(&kernel).await == Some(tried)).then_some(())).await;
        // Not a moment before its time.
        kernel.clock.advance(*wait - Duration::from_millis(1));
        kernel.settle().await;
        assert_eq!(receiver.all().len(), index + 1);
        kernel.clock.advance(wait.mul_f64(0.1) + Duration::from_millis(2));
    }
    kernel.all_finished().await;
    let got = receiver.all();
    assert_eq!(got.len(), waits.len() + 2);
    let (tried, next) = got.split_at(waits.len() + 1);
    assert!(tried.iter().all(|delivery| delivery.id() == tried[0].id() && delivery.body == tried[0].body));
    assert_eq!(next[0].about(), "completed");
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].attempts, dead[0].status), (1, 13, Some(500)));
    assert_eq!(dead[0].problem, "the endpoint answered 500, and it was the last attempt");
    let journal = kernel.journal(1).await;
    let (topic, payload) = &journal[0];
    assert_eq!((journal.len(), topic.as_str(), &payload["agent"]), (1, "webhook.dead.127_0_0_1", &"steps".into()));
    assert_eq!(payload["problem"], dead[0].problem);
    assert_eq!(payload["redacted"], true, "it was written without secrets: {payload}");
}

#[tokio::test]
async fn refusals_are_final_at_once_and_successors_go_on() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let elsewhere = Receiver::open().await;
    receiver.script([Answer::Status(404), Answer::Redirect(elsewhere.url.clone()), Answer::Status(401)]);
    kernel.finish("say a; say b; say c", Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "working", "completed"]);
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    assert_eq!(dead.iter().map(|dead| dead.status).collect::<Vec<_>>(), [Some(404), Some(302), Some(401)]);
    assert!(elsewhere.all().is_empty(), "redirects are not followed");
}

#[tokio::test]
async fn an_endpoint_that_wants_no_more_gets_no_more() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(410)]);
    let task =
        kernel.finish("say a; say b", Some((Version::V1, PushConfig { id: Some("x".into()), ..to(&receiver) }))).await;
    kernel
        .until(async |service| (service.list(None, None, 0, 1).await.unwrap()[0].state == "disabled").then_some(()))
        .await;
    assert_eq!(receiver.all().len(), 1);
    // Set again it is wanted again.
    kernel.set(Version::V1, &task, &PushConfig { id: Some("x".into()), ..to(&receiver) }).await.unwrap();
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "completed"]);
}

#[tokio::test]
async fn a_receiver_says_when_to_come_again() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([
        Answer::RetryAfter(429, "120".into()),
        Answer::Status(408),
        Answer::Status(425),
        Answer::Status(503),
    ]);
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    for (tried, seconds) in [(1, 119), (2, 2), (3, 8), (4, 29)] {
        kernel.until(async |_| (attempts(&kernel).await == Some(tried)).then_some(())).await;
        kernel.advance(seconds);
        kernel.settle().await;
        assert_eq!(receiver.all().len(), usize::try_from(tried).unwrap());
        kernel.advance(5);
        receiver.got(usize::try_from(tried).unwrap() + 1).await;
    }
    kernel.all_finished().await;
}

#[tokio::test]
async fn every_status_has_its_meaning() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let statuses = [200, 204, 299, 300, 304, 400, 404, 405, 408, 409, 410, 424, 425, 429, 499, 500, 501, 599, 600, 999];
    for (webhook, status) in (1..).zip(statuses) {
        let receiver = Receiver::open().await;
        receiver.script([Answer::Status(status)]);
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        let first = kernel
            .until(async |service| {
                let (_, mut deliveries) = service.show(webhook).await.unwrap()?;
                deliveries.pop().filter(|first| first.attempts == 1)
            })
            .await;
        let (view, _) = kernel.service.show(webhook).await.unwrap().unwrap();
        let expected = match status {
            200..=299 => "delivered",
            408 | 425 | 429 | 500.. => "pending",
            _ => "dead",
        };
        assert_eq!((first.state.as_str(), view.state == "disabled"), (expected, status == 410), "{status}");
    }
}

#[tokio::test]
async fn a_receiver_can_ask_for_more_time_but_not_for_ever() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let date = |seconds: i64| {
        let now = std::time::SystemTime::now();
        let ago = Duration::from_secs(seconds.unsigned_abs());
        httpdate::fmt_http_date(if seconds < 0 { now - ago } else { now + ago })
    };
    let (backoff, day) = (1_000..=1_100, 24 * 60 * 60_000);
    let asked = [
        ("7".to_owned(), 7_000..=7_000),
        (date(3_600), 3_000_000..=3_600_000),
        (date(-3_600), backoff.clone()),
        ("99999999".to_owned(), day..=day),
        ("0".to_owned(), backoff.clone()),
        ("-1".to_owned(), backoff.clone()),
        ("soon".to_owned(), backoff.clone()),
        (String::new(), backoff.clone()),
        ("1.5".to_owned(), backoff),
    ];
    for (webhook, (value, wait)) in (1..).zip(asked) {
        let receiver = Receiver::open().await;
        receiver.script([Answer::RetryAfter(503, value.clone())]);
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        let next = kernel
            .until(async |service| {
                let pending = service.show(webhook).await.unwrap()?.0.pending;
                pending.filter(|pending| pending.attempts == 1)?.next_attempt_at
            })
            .await;
        assert!(wait.contains(&(next.0 - START)), "{value:?}: {next}");
    }
}

#[tokio::test]
async fn a_retry_sends_the_same_body_with_the_configuration_as_it_is_now() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (first, second) = (Receiver::open().await, Receiver::open().await);
    first.script([Answer::Status(503)]);
    let named = |receiver: &Receiver, token: &str| PushConfig {
        id: Some("x".to_owned()),
        token: Some(token.to_owned()),
        ..to(receiver)
    };
    let task = kernel.finish("say a", Some((Version::V03, named(&first, "old")))).await;
    kernel.until(async |_| (attempts(&kernel).await == Some(1)).then_some(())).await;
    kernel.set(Version::V03, &task, &named(&second, "new")).await.unwrap();
    kernel.advance(2);
    kernel.all_finished().await;
    let (first, second) = (first.all(), second.all());
    assert_eq!((first.len(), second.len()), (1, 2));
    assert_eq!((first[0].id(), &first[0].body), (second[0].id(), &second[0].body));
    assert_eq!(second[0].header("x-a2a-notification-token"), Some("new"));
}

#[tokio::test]
async fn connections_that_fail_are_tried_again() {
    let folder = tempdir().unwrap();
    let options = Options { timeout: Duration::from_millis(300), ..options() };
    let kernel = TestKernel::with(folder.path(), options, Switches::default()).await;
    // Bound and never listening, so that no other program gets the port.
    let unheard = tokio::net::TcpSocket::new_v4().unwrap();
    unheard.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = unheard.local_addr().unwrap();
    kernel.finish("say a", Some((Version::V1, config(&format!("http://{closed}/hook"))))).await;
    kernel.until(async |_| (attempts(&kernel).await == Some(1)).then_some(())).await;
    let hanging = Receiver::open().await;
    hanging.script([Answer::Hang]);
    kernel.finish("say a", Some((Version::V1, to(&hanging)))).await;
    kernel
        .until(async |service| {
            let all = service.list(None, None, 0, 10).await.unwrap();
            all[1].pending.as_ref().filter(|pending| pending.problem.contains("timed out")).map(drop)
        })
        .await;
    kernel
        .until(async |_| {
            kernel.advance(2);
            (hanging.all().len() >= 3).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_delays_nothing() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    kernel.settle().await;
    kernel.clock.turn_to(Timestamp(START - 3_600_000));
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(503)]);
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    let tried = async |service: &WebhookService| {
        let all = service.list(None, None, 0, 10).await.unwrap();
        all[1].pending.as_ref().filter(|pending| pending.attempts == 1).map(drop)
    };
    kernel.until(tried).await;
    kernel.advance(2);
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}

#[tokio::test]
async fn what_waits_when_the_clock_is_set_back_is_tried_again_at_once() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (receiver, patient) = (Receiver::open().await, Receiver::open().await);
    patient.script([Answer::RetryAfter(503, "7200".into())]);
    kernel.finish("say a", Some((Version::V1, to(&patient)))).await;
    kernel.until(async |_| (attempts(&kernel).await == Some(1)).then_some(())).await;
    kernel.advance(3_600);
    receiver.script([Answer::Status(503)]);
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    kernel
        .until(async |service| {
            let all = service.list(None, None, 0, 10).await.unwrap();
            all[1].pending.as_ref().filter(|pending| pending.attempts == 1).map(drop)
        })
        .await;
    kernel.clock.turn_to(Timestamp(START + 1_800_000));
    // Something happens, so that the clock is looked at.
    kernel.settle().await;
    receiver.got(3).await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
    kernel.settle().await;
    assert_eq!(patient.all().len(), 1, "its wait began before the time it is now");
    kernel.advance(5_401);
    kernel.all_finished().await;
}

#[tokio::test]
async fn a_restart_with_a_clock_far_back_delays_nothing() {
    let folder = tempdir().unwrap();
    let receiver = Receiver::open().await;
    {
        let kernel = TestKernel::open(folder.path()).await;
        receiver.script([Answer::Status(503)]);
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        kernel.until(async |_| (attempts(&kernel).await == Some(1)).then_some(())).await;
        kernel.engine.shutdown().await.unwrap();
    }
    let long_ago = Timestamp(START - 365 * 24 * 60 * 60 * 1_000);
    let kernel = TestKernel::at(folder.path(), options(), Switches::default(), long_ago).await;
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}

#[tokio::test]
async fn a_wait_holds_over_a_restart_if_a_backoff_or_a_receiver_can_have_set_it() {
    let retries = |seconds: u64| Options { retries: vec![Duration::from_secs(seconds)], ..options() };
    // What the receiver asked for is longer than any backoff; and the longest backoff was once longer than any is now.
    for (first, answer, is_kept) in
        [(1, Answer::RetryAfter(503, "3600".into()), true), (200_000, Answer::Status(503), false)]
    {
        let folder = tempdir().unwrap();
        let receiver = Receiver::open().await;
        receiver.script([answer]);
        {
            let kernel = TestKernel::with(folder.path(), retries(first), Switches::default()).await;
            kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
            kernel.until(async |_| (attempts(&kernel).await == Some(1)).then_some(())).await;
            kernel.engine.shutdown().await.unwrap();
        }
        let kernel = TestKernel::with(folder.path(), retries(1), Switches::default()).await;
        if is_kept {
            kernel.settle().await;
            assert_eq!(receiver.all().len(), 1, "the receiver has asked for an hour");
            kernel.advance(3_601);
        }
        kernel.all_finished().await;
        assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
    }
}
