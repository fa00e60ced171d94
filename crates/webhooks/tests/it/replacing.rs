//! A webhook that is set again while something is under way: what comes of that concerns the old address only.

use switchboard_a2a::{PushConfig, Version};
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, to};

fn named(receiver: &Receiver) -> PushConfig {
    PushConfig { id: Some("x".to_owned()), ..to(receiver) }
}

#[tokio::test]
async fn what_the_old_address_answers_is_not_held_against_the_new_one() {
    let folder = tempdir().unwrap();
    for status in [200, 404, 410, 429, 500] {
        let kernel = TestKernel::open(&folder.path().join(status.to_string())).await;
        let (old, new) = (Receiver::open().await, Receiver::open().await);
        old.script([Answer::HangThen(status)]);
        let task = kernel.finish("say a; say b", Some((Version::V1, named(&old)))).await;
        old.got(1).await;
        kernel.set(Version::V1, &task, &named(&new)).await.unwrap();
        old.let_go();
        kernel.all_finished().await;
        assert_eq!(new.abouts(), ["working", "working", "completed"], "{status}");
        assert!(kernel.service.dead_letters(0, 1).await.unwrap().is_empty(), "{status}");
        assert_eq!(old.all().len(), 1);
    }
}

#[tokio::test]
async fn what_the_new_wishes_want_is_not_left_out_by_the_old_ones() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Hang]);
    let task = kernel.send("say a; wait; chunk one; say b", Some((Version::V03, named(&receiver)))).await;
    receiver.got(1).await;
    kernel.set(Version::V1, &task, &named(&receiver)).await.unwrap();
    kernel.pass(1);
    kernel
        .until(async |service| {
            let webhooks = service.list(None, None, 0, 1).await.unwrap();
            (webhooks[0].lags && webhooks[0].version == "1.0").then_some(())
        })
        .await;
    receiver.let_go();
    kernel.all_finished().await;
    let got = receiver.all();
    assert_eq!(receiver.abouts(), ["working", "working", "one", "working", "", "completed"]);
    let versions: Vec<_> = got.iter().map(|delivery| delivery.header("a2a-version").unwrap()).collect();
    assert_eq!(versions, ["0.3", "1.0", "1.0", "1.0", "1.0", "1.0"]);
    assert_ne!(got[0].id(), got[1].id(), "another body has another name");
}

#[tokio::test]
async fn a_webhook_that_moves_away_from_a_paused_endpoint_does_not_wait_for_it() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (bad, good) = (Receiver::open().await, Receiver::open().await);
    bad.otherwise(Answer::Status(503));
    let mut last = None;
    for _ in 0..40 {
        last = Some(kernel.finish("say a", Some((Version::V1, named(&bad)))).await);
    }
    kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until).await;
    kernel.set(Version::V1, &last.unwrap(), &named(&good)).await.unwrap();
    good.got(2).await;
    assert_eq!(good.abouts(), ["working", "completed"]);
}

#[tokio::test]
async fn what_a_receiver_asks_for_holds_also_when_its_endpoint_is_back() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script(std::iter::repeat_n(Answer::RetryAfter(429, "3600".into()), 5));
    for _ in 0..5 {
        kernel.finish("say a", Some((Version::V1, to(&receiver)))).await;
    }
    kernel.until(async |service| service.list(None, None, 0, 1).await.unwrap()[0].endpoint_paused_until).await;
    kernel.finish("say b", Some((Version::V1, to(&receiver)))).await;
    kernel.advance(10);
    // The sixth finds it well; the five wait as they were told to.
    receiver.got(7).await;
    let other = Receiver::open().await;
    kernel.finish("say c", Some((Version::V1, to(&other)))).await;
    other.got(2).await;
    assert_eq!(receiver.all().len(), 7);
    kernel
        .until(async |service| {
            kernel.advance(600);
            let all = service.list(None, None, 0, 10).await.unwrap();
            all.iter().all(|webhook| webhook.state == "finished").then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_webhook_set_long_after_the_end_has_its_time_too() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.finish("say a", None).await;
    kernel.advance(8 * 24 * 3_600);
    receiver.script([Answer::Status(503), Answer::Status(503)]);
    kernel.set(Version::V1, &task, &named(&receiver)).await.unwrap();
    kernel
        .until(async |service| {
            kernel.advance(20);
            (service.list(None, None, 0, 1).await.unwrap()[0].state == "finished").then_some(())
        })
        .await;
    assert!(kernel.service.dead_letters(0, 1).await.unwrap().is_empty());
    assert_eq!(receiver.all().len(), 3);
}

#[tokio::test]
async fn who_has_a_delivery_does_not_get_it_again_for_setting_what_is_set() {
    let folder = tempdir().unwrap();
    for version in [Version::V1, Version::V03] {
        let kernel = TestKernel::open(&folder.path().join(version.as_str())).await;
        let receiver = Receiver::open().await;
        receiver.otherwise(Answer::HangThen(200));
        let task = kernel.finish("say a; say b", Some((version, named(&receiver)))).await;
        for count in 1..=3 {
            receiver.got(count).await;
            // As it is, and with another token: a receiver that has it keeps it.
            kernel.set(version, &task, &named(&receiver)).await.unwrap();
            let token = Some(format!("token {count}"));
            kernel.set(version, &task, &PushConfig { token, ..named(&receiver) }).await.unwrap();
            receiver.let_go();
        }
        kernel.all_finished().await;
        assert_eq!(receiver.abouts(), ["working", "working", "completed"], "{version:?}");
        let tokens: Vec<_> =
            receiver.all().iter().map(|got| got.header("x-a2a-notification-token").is_some()).collect();
        assert_eq!(tokens, [false, true, true]);
    }
}

#[tokio::test]
async fn what_was_refused_for_its_token_is_sent_with_the_new_one() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::HangThen(401)]);
    let task = kernel.finish("say a", Some((Version::V1, named(&receiver)))).await;
    receiver.got(1).await;
    let token = Some("right".to_owned());
    kernel.set(Version::V1, &task, &PushConfig { token, ..named(&receiver) }).await.unwrap();
    receiver.let_go();
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
    assert!(kernel.service.dead_letters(0, 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn who_answers_a_question_before_it_says_that_it_has_it_is_not_asked_twice() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::HangThen(200)]);
    // Clients send their webhook with every message.
    let webhook = || Some((Version::V1, named(&receiver)));
    let task = kernel.finish("ask which", webhook()).await;
    receiver.got(1).await;
    kernel.submit("that one", Some(&task), webhook()).await.answer().await;
    receiver.let_go();
    kernel.all_finished().await;
    let asked = receiver.abouts().iter().filter(|about| *about == "input_required").count();
    assert_eq!(asked, 1, "{:?}", receiver.abouts());
    assert_eq!(receiver.abouts().last().unwrap(), "completed");
}

#[tokio::test]
async fn a_receiver_that_sets_its_webhook_again_and_fails_uses_up_its_attempts() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::HangThen(503)]);
    let task = kernel.finish("say a", Some((Version::V1, named(&receiver)))).await;
    receiver.got(1).await;
    kernel.set(Version::V1, &task, &named(&receiver)).await.unwrap();
    receiver.let_go();
    let pending = kernel
        .until(async |service| {
            let pending = service.list(None, None, 0, 1).await.unwrap()[0].pending.clone();
            pending.filter(|pending| pending.attempts > 0)
        })
        .await;
    assert_eq!((pending.attempts, pending.status), (1, Some(503)));
    // Set again after that, it need not wait.
    kernel.set(Version::V1, &task, &named(&receiver)).await.unwrap();
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}
