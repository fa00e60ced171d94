//! What operators see and do.

use switchboard_a2a::{PushConfig, Version};
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, to};

#[tokio::test]
async fn a_dead_letter_and_a_delivered_one_are_sent_once_more_the_same() {
    let folder = tempdir().unwrap();
    for version in [Version::V1, Version::V03] {
        let kernel = TestKernel::open(&folder.path().join(version.as_str())).await;
        let receiver = Receiver::open().await;
        receiver.script([Answer::Hang, Answer::Status(404)]);
        kernel.send("say a; wait; say b; chunk 1; chunk 2; say c", Some((version, to(&receiver)))).await;
        receiver.got(1).await;
        kernel.pass(1);
        kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].lags.then_some(())).await;
        receiver.let_go();
        kernel.all_finished().await;
        let first = receiver.all();
        let (_, deliveries) = kernel.service.show(1).await.unwrap().unwrap();
        assert_eq!(deliveries.len(), first.len());
        for (count, view) in deliveries.iter().rev().enumerate() {
            assert!(kernel.service.retry(view.delivery).await.unwrap());
            let again = receiver.got(first.len() + count + 1).await;
            let (again, original) = (&again[first.len() + count], &first[count]);
            assert_eq!((again.id(), &again.body), (original.id(), &original.body));
        }
        kernel.until(async |service| service.dead_letters(0, 10).await.unwrap().is_empty().then_some(())).await;
        assert!(!kernel.service.retry(999).await.unwrap());
    }
}

#[tokio::test]
async fn dead_letters_of_one_webhook_are_sent_again_in_order_and_one_at_a_time() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(404));
    let steps = (0..20).map(|number| format!("say {number}")).collect::<Vec<_>>().join(";");
    kernel.finish(&steps, Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    let first = receiver.all();
    assert_eq!(first.len(), 21);
    receiver.otherwise(Answer::Status(200));
    receiver.script([Answer::Hang]);
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 21);
    receiver.got(22).await;
    // What is new does not overtake what is sent again.
    let task = switchboard_a2a::TaskId::from(kernel.service.list(None, None, 0, 1).await.unwrap()[0].task_id.as_str());
    let other = Receiver::open().await;
    kernel.finish("say x", Some((Version::V1, to(&other)))).await;
    other.got(2).await;
    assert_eq!(receiver.all().len(), 22, "one at a time");
    receiver.let_go();
    kernel.until(async |service| service.dead_letters(0, 1).await.unwrap().is_empty().then_some(())).await;
    let again = receiver.got(42).await;
    let ids = |deliveries: &[crate::receiver::Delivery]| {
        deliveries.iter().map(|delivery| delivery.id().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&again[21..]), ids(&first), "{task}");
}

#[tokio::test]
async fn many_dead_letters_share_the_commits_that_send_them_once_more() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(404));
    let steps = (0..300).map(|number| format!("say {number}")).collect::<Vec<_>>().join(";");
    kernel.finish(&steps, Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    receiver.otherwise(Answer::Hang);
    // While a connection reads as of now, the log of the database only grows, by whole pages per commit.
    let reader = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM delivery").unwrap();
    let written = || std::fs::metadata(folder.path().join("switchboard.db-wal")).unwrap().len();
    let before = written();
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 301);
    let grown = written() - before;
    assert!(grown < 2_000_000, "{grown} bytes");
}

#[tokio::test]
async fn how_far_behind_the_outbox_is_counts_what_is_paused_and_what_waits_at_an_endpoint() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(503));
    for _ in 0..20 {
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    }
    use switchboard_engine::store::webhooks::WebhookStore;
    let census = kernel.store.outbox_census().await.unwrap();
    assert_eq!((census.behind, census.dead), (20, 0));
    assert!(census.behind_since.unwrap().0 <= crate::test_kernel::START + 5, "{census:?}");
    kernel.service.pause(20).await.unwrap();
    assert_eq!(kernel.store.outbox_census().await.unwrap().behind, 20);
    receiver.otherwise(Answer::Status(200));
    let minutes = std::cell::Cell::new(0);
    kernel
        .until(async |_| {
            // Less than the time after which a paused webhook is given up.
            if minutes.get() < 24 * 60 {
                minutes.set(minutes.get() + 1);
                kernel.advance(60);
            }
            (kernel.store.outbox_census().await.unwrap().behind == 1).then_some(())
        })
        .await;
    kernel.service.resume(20).await.unwrap();
    kernel.all_finished().await;
    let census = kernel.store.outbox_census().await.unwrap();
    assert_eq!((census.behind, census.behind_since), (0, None));
}

#[tokio::test]
async fn a_retry_that_fails_is_a_dead_letter_again() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(400), Answer::Status(200), Answer::Status(500)]);
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    assert!(kernel.service.retry(dead[0].delivery).await.unwrap());
    receiver.got(3).await;
    let dead = kernel
        .until(async |service| {
            service.dead_letters(0, 10).await.unwrap().into_iter().find(|dead| dead.status == Some(500))
        })
        .await;
    assert_eq!(dead.attempts, 2);
}

#[tokio::test]
async fn a_paused_webhook_is_told_nothing_until_it_goes_on_and_loses_no_attempt() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(500)]);
    kernel.send("say a; wait; say b", Some((Version::V1, to(&receiver)))).await;
    kernel
        .until(async |service| {
            service.list(None, None, 0, 1).await.unwrap()[0].pending.clone().filter(|pending| pending.attempts == 1)
        })
        .await;
    assert!(kernel.service.pause(1).await.unwrap());
    assert!(!kernel.service.pause(1).await.unwrap());
    kernel.pass(1);
    kernel.advance(24 * 3_600);
    let other = Receiver::open().await;
    kernel.finish("say x", Some((Version::V1, to(&other)))).await;
    other.got(2).await;
    assert_eq!(receiver.all().len(), 1);
    assert!(kernel.service.resume(1).await.unwrap());
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "working", "completed"]);
    assert!(!kernel.service.resume(1).await.unwrap());
}

#[tokio::test]
async fn views_hold_no_secrets() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(400)]);
    let config = switchboard_a2a::PushConfig {
        token: Some("s3cr3t-token".to_owned()),
        url: format!("{}/s3cr3t-path?key=s3cr3t-query", receiver.url),
        ..to(&receiver)
    };
    kernel.finish("say a", Some((Version::V1, config))).await;
    kernel.all_finished().await;
    let (webhook, deliveries) = kernel.service.show(1).await.unwrap().unwrap();
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    let all = serde_json::to_string(&(webhook, deliveries, dead)).unwrap();
    assert!(!all.contains("s3cr3t"), "{all}");
}

#[tokio::test]
async fn a_retry_does_not_wait_for_the_end_of_a_pause() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(404), Answer::Status(404)]);
    kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    receiver.otherwise(Answer::Status(503));
    for _ in 0..40 {
        kernel.finish("say b", Some((Version::V1, to(&receiver)))).await;
    }
    kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until).await;
    receiver.otherwise(Answer::Status(200));
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    assert!(kernel.service.retry(dead[0].delivery).await.unwrap());
    // It is the try that ends the pause for all others too; the clock stands still.
    kernel.until(async |service| (service.dead_letters(0, 10).await.unwrap().len() == 1).then_some(())).await;
    kernel.all_finished().await;
}

#[tokio::test]
async fn a_dead_letter_keeps_its_name_though_its_webhook_begins_again() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (bad, good) = (Receiver::open().await, Receiver::open().await);
    bad.otherwise(Answer::Status(400));
    let named = |receiver: &Receiver| PushConfig { id: Some("x".to_owned()), ..to(receiver) };
    let task = kernel.finish("say a; say b", Some((Version::V1, named(&bad)))).await;
    kernel.all_finished().await;
    kernel.set(Version::V1, &task, &named(&good)).await.unwrap();
    good.got(1).await;
    kernel.all_finished().await;
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 3);
    let again = good.got(4).await;
    let first = bad.all();
    for (again, first) in again[1..].iter().zip(&first) {
        assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    }
    assert!(first.iter().all(|first| first.id() != again[0].id()), "another body has another name");
}
