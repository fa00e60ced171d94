//! A retry of what cannot be sent once more changes nothing.

use switchboard_a2a::Version;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, to};

#[tokio::test]
async fn a_retry_of_a_delivery_that_is_pending_anyway_does_not_end_the_pause_of_its_endpoint() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(503));
    for _ in 0..40 {
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    }
    let paused = async |kernel: &TestKernel| {
        kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until).await
    };
    paused(&kernel).await;
    // Those that were under way when it was paused come back first.
    kernel.settle().await;
    let until = paused(&kernel).await;
    let (asked, list) = (receiver.all().len(), kernel.service.list(None, None, 0, 100).await.unwrap());
    // The delivery that has shown that all is settled has arrived, and may not be stored as delivered yet.
    let paused_ones = list.iter().filter(|webhook| webhook.endpoint_paused_until.is_some());
    let pending: Vec<i64> = paused_ones.filter_map(|webhook| Some(webhook.pending.as_ref()?.delivery)).collect();
    assert!(!pending.is_empty(), "{list:?}");
    for delivery in pending {
        assert!(!kernel.service.retry(delivery).await.unwrap(), "it is no dead letter");
    }
    assert_eq!(kernel.service.retry_dead(None).await.unwrap(), 0);
    kernel.settle().await;
    assert_eq!((paused(&kernel).await, receiver.all().len()), (until, asked), "nothing was tried");
}
