//! Much at once: nothing stands still for good, and a slow or large webhook keeps no other waiting.

use switchboard_a2a::{PushConfig, Version};
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, to};

/// What makes a body of version 0.3 large: it holds the task.
fn large() -> String {
    format!("say {}", "x".repeat(1 << 20))
}

fn named(receiver: &Receiver, name: &str) -> PushConfig {
    PushConfig { id: Some(name.to_owned()), ..to(receiver) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_large_bodies_than_there_is_room_for_all_arrive() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let mut receivers = Vec::new();
    let task = kernel.send(&format!("say a; wait; {}; ask b", large()), None).await;
    for number in 0..16 {
        let receiver = Receiver::open().await;
        receiver.script([Answer::HangThen(200), Answer::HangThen(200)]);
        kernel.set(Version::V03, &task, &named(&receiver, &number.to_string())).await.unwrap();
        receivers.push(receiver);
    }
    kernel.pass(1);
    kernel
        .until(async |_| {
            receivers.iter().for_each(Receiver::let_go);
            let has_come =
                |receiver: &Receiver| receiver.all().last().is_some_and(|last| last.about() == "input_required");
            receivers.iter().all(has_come).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_of_a_stuck_receiver_keep_no_small_one_waiting() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let task = kernel.finish(&large(), None).await;
    let mut all_silent = Vec::new();
    for endpoint in 0..4 {
        let silent = Receiver::open().await;
        silent.otherwise(Answer::Hang);
        for number in 0..8 {
            kernel.set(Version::V03, &task, &named(&silent, &format!("{endpoint}-{number}"))).await.unwrap();
        }
        all_silent.push(silent);
    }
    all_silent[0].got(1).await;
    let receiver = Receiver::open().await;
    kernel.finish("say small", Some((Version::V03, to(&receiver)))).await;
    assert_eq!(receiver.got(2).await.len(), 2);
}

#[tokio::test]
async fn a_healthy_endpoint_has_its_turn_however_many_others_wait() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        let receiver = Receiver::open().await;
        receiver.otherwise(Answer::HangThen(200));
        for _ in 0..8 {
            kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
        }
        silent.push(receiver);
    }
    let (healthy, ninth) = (Receiver::open().await, Receiver::open().await);
    ninth.otherwise(Answer::HangThen(200));
    kernel.finish("say healthy", Some((Version::V1, to(&healthy)))).await;
    for _ in 0..60 {
        kernel.finish("say a", Some((Version::V1, to(&ninth)))).await;
    }
    kernel
        .until(async |_| {
            silent.iter().for_each(Receiver::let_go);
            (healthy.all().len() == 2).then_some(())
        })
        .await;
    kernel
        .until(async |service| {
            silent.iter().chain([&ninth]).for_each(Receiver::let_go);
            let all = service.list(None, None, 0, 10_000).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_room_takes_no_place_at_an_endpoint() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (silent, shared) = (Receiver::open().await, Receiver::open().await);
    silent.otherwise(Answer::Hang);
    let task = kernel.finish(&large(), None).await;
    for number in 0..8 {
        kernel.set(Version::V03, &task, &named(&silent, &format!("silent-{number}"))).await.unwrap();
    }
    silent.got(1).await;
    // More of them than an endpoint has places, all without room.
    for number in 0..16 {
        kernel.set(Version::V03, &task, &named(&shared, &format!("shared-{number}"))).await.unwrap();
    }
    kernel.finish("say small", Some((Version::V03, to(&shared)))).await;
    kernel.until(async |_| shared.abouts().contains(&"working".to_owned()).then_some(())).await;
    // Once there is room again they all arrive.
    kernel
        .until(async |service| {
            silent.let_go();
            let all = service.list(None, None, 0, 100).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
    assert_eq!(shared.all().len(), 18);
}
