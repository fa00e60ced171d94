//! Large tasks: their bodies are not written for every webhook, and still are the same each time.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use switchboard_a2a::{PushConfig, TaskId, Version};
use switchboard_engine::Switches;
use switchboard_engine::store::webhooks::{DeliveryKey, WebhookKey, WebhookStore};
use switchboard_engine::store::{Retention, Store};
use switchboard_webhooks::Options;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, options, to};

#[tokio::test]
async fn a_large_body_is_made_again_and_kept_when_it_is_given_up() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(503), Answer::Status(404)]);
    let large = "x".repeat(100_000);
    kernel.finish(&format!("chunk {large}; say a"), Some((Version::V03, to(&receiver)))).await;
    kernel
        .until(async |service| {
            let pending = service.list(None, None, 0, 1).await.unwrap()[0].pending.clone();
            pending.filter(|pending| pending.attempts == 1).map(drop)
        })
        .await;
    let head = kernel.store.head(WebhookKey(1)).await.unwrap().unwrap();
    assert!(head.delivery.unwrap().body.is_none(), "it can be made again");
    kernel.advance(2);
    kernel.all_finished().await;
    let got = receiver.all();
    assert!(got[0].body.len() > 100_000);
    assert_eq!((got[0].id(), &got[0].body), (got[1].id(), &got[1].body));
    let dead = kernel.service.dead_letters(0, 1).await.unwrap();
    let (_, row) = kernel.store.delivery(DeliveryKey(dead[0].delivery)).await.unwrap().unwrap();
    assert_eq!(row.body.as_ref(), Some(&got[0].body), "it outlives the log");
    let all = Retention {
        ended_before: kernel.engine.clock().now(),
        max_tasks: 0,
        max_bytes: 0,
        hold_since: kernel.engine.clock().now(),
    };
    assert_eq!(kernel.store.evict(all, 10).await.unwrap(), 1);
    kernel.service.retry_dead(None).await.unwrap();
    assert_eq!(receiver.got(4).await[3].body, got[0].body);
}

#[tokio::test]
async fn what_a_webhook_does_not_want_is_put_behind() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let chunk = "x".repeat(40_000);
    let steps = format!("say a; chunk {chunk}; chunk {chunk}; chunk {chunk}; wait; say b");
    kernel.send(&steps, Some((Version::V03, to(&receiver)))).await;
    receiver.got(1).await;
    // Past the status it was told of, though nothing after it was for it.
    kernel.until(async |service| (service.list(None, None, 0, 1).await.unwrap()[0].cursor > 3).then_some(())).await;
    kernel.pass(1);
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}

/// Sets so many webhooks of an ended task, whose receiver takes nothing, and waits until they are given up.
async fn give_up(kernel: &TestKernel, receiver: &Receiver, task: &TaskId, count: usize) {
    for number in 0..count {
        let webhook = PushConfig { id: Some(number.to_string()), ..to(receiver) };
        kernel.set(Version::V03, task, &webhook).await.unwrap();
    }
    kernel
        .until(async |service| {
            kernel.advance(60);
            let all = service.list(None, None, 0, 100).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
}

/// One that gives up soon what an endpoint does not take.
fn impatient() -> Options {
    Options { hold_tasks: Duration::from_secs(60), ..options() }
}

#[tokio::test]
async fn a_very_large_body_that_was_waited_for_long_enough_is_not_written() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::with(folder.path(), impatient(), Switches::default()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(503));
    // Bodies hold it twice: as it was asked for and as it was made.
    let (large, fitting) = ("x".repeat(600_000), "x".repeat(500_000));
    for (text, is_kept) in [(large, false), (fitting, true)] {
        let task = kernel.finish(&format!("chunk {text}"), None).await;
        give_up(&kernel, &receiver, &task, 1).await;
        let dead = kernel.service.dead_letters(0, 10).await.unwrap().pop().unwrap();
        let (_, row) = kernel.store.delivery(DeliveryKey(dead.delivery)).await.unwrap().unwrap();
        assert_eq!(row.body.is_some(), is_kept, "{} bytes", text.len());
    }
    // As long as there is the log, both can be sent.
    receiver.otherwise(Answer::Status(200));
    let before = receiver.all().len();
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 2);
    // An attempt that was given up while its body was on the way may still come in between.
    let mut count = before + 2;
    let sizes = async |count: usize| -> BTreeSet<usize> {
        receiver.got(count).await[before..].iter().map(|got| got.body.len() / 10_000).collect()
    };
    while sizes(count).await != BTreeSet::from([100, 120]) {
        count += 1;
    }
}

#[tokio::test]
async fn dead_letters_do_not_fill_the_disk_before_there_are_too_many() {
    let folder = tempdir().unwrap();
    let options = Options { dead_letter_bytes: 2_000_000, ..impatient() };
    let kernel = TestKernel::with(folder.path(), options, Switches::default()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(503));
    let task = kernel.finish(&format!("chunk {}", "x".repeat(450_000)), None).await;
    let before = pages(folder.path());
    give_up(&kernel, &receiver, &task, 60).await;
    // What was deleted leaves its pages to what comes after it, so that the file shows how much there was at once.
    let grown = (pages(folder.path()) - before) * 4_096;
    assert!(grown < 12_000_000, "{grown} bytes for 2,000,000 allowed, 54,000,000 written");
    kernel.until(async |service| (service.dead_letters(0, 100).await.unwrap().len() <= 2).then_some(())).await;
}

/// How large the database is.
fn pages(folder: &Path) -> i64 {
    let connection = rusqlite::Connection::open(folder.join("switchboard.db")).unwrap();
    connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
}
