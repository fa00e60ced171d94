//! Bad endpoints hurt only themselves: they are called less and less, and the others as before.

use switchboard_a2a::{Timestamp, Version};
use switchboard_engine::Switches;
use switchboard_webhooks::Options;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, options, to};

/// Until when the endpoint of the first webhook is paused.
async fn paused_until(kernel: &TestKernel) -> Option<Timestamp> {
    kernel.service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until
}

#[tokio::test]
async fn an_endpoint_that_keeps_failing_is_paused_for_all_its_webhooks_and_then_caught_up_with() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (bad, good) = (Receiver::open().await, Receiver::open().await);
    bad.otherwise(Answer::Status(503));
    for _ in 0..100 {
        kernel.finish("say a", Some((Version::V1, to(&bad)))).await;
    }
    kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until).await;
    // Those that were under way when it was paused, and no more.
    kernel.finish("say a", Some((Version::V1, to(&good)))).await;
    good.got(2).await;
    let tried = bad.all().len();
    assert!(tried <= 5 + 8, "{tried}");
    // Each try that fails doubles the pause.
    let mut until = paused_until(&kernel).await.unwrap();
    for seconds in [10, 20, 40] {
        let before = bad.all().len();
        kernel.advance(seconds);
        bad.got(before + 1).await;
        until = kernel
            .until(async |_| {
                paused_until(&kernel).await.filter(|again| again.0 >= until.0 + 2_000 * i64::try_from(seconds).unwrap())
            })
            .await;
    }
    assert!(bad.all().len() <= tried + 3, "{}", bad.all().len());
    bad.otherwise(Answer::Status(200));
    kernel.advance(100);
    kernel.all_finished().await;
    let list = kernel.service.list(None, None, 0, 200).await.unwrap();
    assert!(list.iter().all(|webhook| webhook.dead == 0 && webhook.delivered == 2));
    // One pause, however often it was made longer.
    let journal = kernel.journal(2).await;
    let topics: Vec<&str> = journal.iter().map(|(topic, _)| topic.as_str()).collect();
    assert_eq!(topics, ["webhook.paused.127_0_0_1", "webhook.resumed.127_0_0_1"]);
    assert!(journal.iter().all(|(_, payload)| bad.url.starts_with(payload["endpoint"].as_str().unwrap())));
    assert!(journal.iter().all(|(_, payload)| payload["redacted"] == true), "{journal:?}");
}

#[tokio::test]
async fn a_hanging_endpoint_takes_its_own_places_only() {
    let folder = tempdir().unwrap();
    let options = Options { parallel: 6, parallel_per_endpoint: 2, ..options() };
    let kernel = TestKernel::with(folder.path(), options, Switches::default()).await;
    let (bad, good) = (Receiver::open().await, Receiver::open().await);
    bad.otherwise(Answer::Hang);
    for _ in 0..20 {
        kernel.finish("say a", Some((Version::V1, to(&bad)))).await;
    }
    bad.got(2).await;
    for _ in 0..20 {
        kernel.finish("say a", Some((Version::V1, to(&good)))).await;
    }
    good.got(40).await;
    assert_eq!(bad.all().len(), 2);
    bad.otherwise(Answer::Status(200));
    bad.let_go();
    kernel.all_finished().await;
}

#[tokio::test]
async fn no_more_deliveries_are_under_way_than_allowed() {
    let folder = tempdir().unwrap();
    let options = Options { parallel: 3, ..options() };
    let kernel = TestKernel::with(folder.path(), options, Switches::default()).await;
    let mut receivers = Vec::new();
    for _ in 0..5 {
        let receiver = Receiver::open().await;
        receiver.script([Answer::Hang]);
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        receivers.push(receiver);
    }
    let busy = |receivers: &[Receiver]| receivers.iter().filter(|receiver| !receiver.all().is_empty()).count();
    kernel.until(async |_| (busy(&receivers) == 3).then_some(())).await;
    let free = receivers.iter().position(|receiver| !receiver.all().is_empty()).unwrap();
    receivers[free].let_go();
    kernel.until(async |_| (busy(&receivers) == 4).then_some(())).await;
    assert_eq!(busy(&receivers), 4);
    for receiver in &receivers {
        receiver.otherwise(Answer::Status(200));
    }
    kernel
        .until(async |service| {
            receivers.iter().for_each(Receiver::let_go);
            let all = service.list(None, None, 0, 10).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
}
