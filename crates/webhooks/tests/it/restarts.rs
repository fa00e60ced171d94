//! A killed process loses nothing: the next one goes on where the cursor is, with the same bytes under the same names.

use std::time::Duration;

use switchboard_a2a::{Timestamp, Version};
use switchboard_engine::Switches;
use switchboard_engine::store::Store;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{START, TestKernel, address, caller, options, to};

/// Runs part of a test in a runtime of its own and kills it: nothing is closed, nothing is told.
fn killed(work: impl Future<Output = TestKernel>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let kernel = runtime.block_on(work);
    drop(kernel);
    runtime.shutdown_timeout(Duration::from_secs(10));
}

#[test]
fn what_was_under_way_is_sent_again_the_same() {
    let folder = tempdir().unwrap();
    let outside = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let receiver = outside.block_on(Receiver::open());
    receiver.script([Answer::Hang]);
    killed(async {
        let kernel = TestKernel::open(folder.path()).await;
        let task = kernel.finish("say a; chunk 1; chunk 2; say b", Some((Version::V1, to(&receiver)))).await;
        receiver.got(1).await;
        drop(task);
        kernel
    });
    killed(async {
        let kernel = TestKernel::open(folder.path()).await;
        kernel.all_finished().await;
        kernel
    });
    let got = receiver.all();
    assert_eq!(receiver.abouts(), ["working", "working", "12", "working", "", "completed"]);
    assert_eq!((got[0].id(), &got[0].body), (got[1].id(), &got[1].body));
}

#[test]
fn retries_survive_with_their_times() {
    let folder = tempdir().unwrap();
    let outside = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let receiver = outside.block_on(Receiver::open());
    receiver.script([Answer::RetryAfter(503, "600".into())]);
    killed(async {
        let kernel = TestKernel::open(folder.path()).await;
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        kernel
            .until(async |service| {
                service.list(None, None, 0, 1).await.unwrap()[0].pending.clone().filter(|pending| pending.attempts == 1)
            })
            .await;
        kernel
    });
    killed(async {
        let now = Timestamp(START + 1_000);
        let kernel = TestKernel::at(folder.path(), options(), Switches::default(), now).await;
        kernel.settle().await;
        assert_eq!(receiver.all().len(), 1);
        kernel.advance(700);
        kernel.all_finished().await;
        kernel
    });
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}

#[tokio::test]
async fn an_ended_task_is_held_for_a_while_and_then_what_is_left_is_a_dead_letter() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(500));
    let task = kernel.finish("say a; chunk b; say c", Some((Version::V1, to(&receiver)))).await;
    kernel
        .until(async |service| {
            service.list(None, None, 0, 1).await.unwrap()[0].pending.clone().filter(|pending| pending.attempts == 1)
        })
        .await;
    let webhook = kernel.service.list(None, None, 0, 1).await.unwrap()[0].webhook;
    assert!(kernel.service.pause(webhook).await.unwrap());
    let retention = |kernel: &TestKernel| switchboard_engine::store::Retention {
        ended_before: kernel.engine.clock().now(),
        max_tasks: 0,
        max_bytes: 0,
        hold_since: kernel.engine.clock().now(),
    };
    kernel.advance(6 * 24 * 3_600);
    assert_eq!(kernel.store.evict(retention(&kernel), 10).await.unwrap(), 0, "it is held");
    kernel.advance(24 * 3_600);
    kernel
        .until(async |service| {
            kernel.advance(60);
            (service.dead_letters(0, 10).await.unwrap().len() == 5).then_some(())
        })
        .await;
    kernel.all_finished().await;
    let dead = kernel.service.dead_letters(0, 10).await.unwrap();
    let about: Vec<_> = dead.iter().map(|dead| dead.about.as_str()).collect();
    assert_eq!(about, ["working", "artifact", "working", "artifact", "completed"]);
    assert!(dead[1].problem.contains("webhooks.holdTasks"), "{}", dead[1].problem);
    assert_eq!(kernel.store.evict(retention(&kernel), 10).await.unwrap(), 1);
    assert!(kernel.engine.get(&address(), &caller(), &task).await.is_err());
    // Their bodies outlive the task.
    receiver.otherwise(Answer::Status(200));
    let before = receiver.all().len();
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 5);
    let got = receiver.got(before + 5).await;
    let mut told: Vec<_> = got[before..].iter().map(|delivery| delivery.about()).collect();
    told.sort();
    assert_eq!(told, ["", "b", "completed", "working", "working"]);
    kernel.until(async |service| service.dead_letters(0, 10).await.unwrap().is_empty().then_some(())).await;
}
