//! Every change arrives, in order, each once if all goes well.

use serde_json::json;
use switchboard_a2a::{PushConfig, Version};
use switchboard_engine::Error;
use tempfile::tempdir;

use crate::receiver::{Answer, Receiver};
use crate::test_kernel::{TestKernel, address, caller, to};

#[tokio::test]
async fn all_changes_arrive_in_order_with_ids_that_rise() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let steps = (0..50).map(|number| format!("say {number}")).collect::<Vec<_>>().join(";");
    kernel.finish(&steps, Some((Version::V1, to(&receiver)))).await;
    kernel.all_finished().await;
    let got = receiver.all();
    assert_eq!(got.len(), 51);
    let texts = got[..50].iter().map(|delivery| {
        delivery.json().pointer("/statusUpdate/status/message/parts/0/text").unwrap().as_str().unwrap().to_owned()
    });
    assert_eq!(texts.collect::<Vec<_>>(), (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    let numbers: Vec<u64> =
        got.iter().map(|delivery| delivery.id().rsplit('.').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
    let found = kernel.service.list(None, None, 0, 10).await.unwrap();
    assert_eq!((found[0].delivered, found[0].dead, found[0].lags), (51, 0, false));
}

#[tokio::test]
async fn chunks_that_wait_behind_one_another_are_merged_and_statuses_never() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Hang]);
    kernel
        .send(
            "say a; wait; chunk 1; chunk 2; chunk 3; say b; say c; chunk 4; chunk 5",
            Some((Version::V1, to(&receiver))),
        )
        .await;
    receiver.got(1).await;
    kernel.pass(1);
    // The log is complete before the first delivery is taken.
    let task = switchboard_a2a::TaskId::from(kernel.service.list(None, None, 0, 1).await.unwrap()[0].task_id.as_str());
    kernel
        .until(async |_| {
            let task = kernel.engine.get(&address(), &caller(), &task).await.unwrap().into_task().unwrap();
            task.status.state.is_terminal().then_some(())
        })
        .await;
    receiver.let_go();
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "123", "working", "working", "45", "completed"]);
    let merged = receiver.all()[1].json();
    assert_eq!(merged.pointer("/artifactUpdate/append"), None);
    let merged = receiver.all()[4].json();
    assert_eq!(merged.pointer("/artifactUpdate/append"), Some(&true.into()));
}

#[tokio::test]
async fn updates_of_one_artifact_are_merged_until_another_one_comes() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Hang]);
    let steps = "say a; wait; add a old; put a new; add a er; end a est; put b y; add b z; put a x";
    let submitted = kernel.submit(steps, None, Some((Version::V1, to(&receiver)))).await;
    receiver.got(1).await;
    kernel.pass(1);
    submitted.answer().await;
    receiver.let_go();
    kernel.all_finished().await;
    let updates = receiver.all().iter().filter_map(|got| got.json().get("artifactUpdate").cloned()).collect::<Vec<_>>();
    let expected = [
        json!({"artifact": {"artifactId": "a", "name": "whole", "parts": [{"text": "newerest"}]}, "lastChunk": true}),
        json!({"artifact": {"artifactId": "b", "parts": [{"text": "yz"}]}}),
        json!({"artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}),
    ];
    assert_eq!(updates.len(), expected.len(), "{updates:?}");
    for (update, expected) in updates.iter().zip(expected) {
        for field in ["artifact", "append", "lastChunk"] {
            assert_eq!(update.get(field), expected.get(field), "{update}");
        }
    }
}

#[tokio::test]
async fn many_webhooks_of_one_task_are_independent() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (good, bad) = (Receiver::open().await, Receiver::open().await);
    bad.otherwise(Answer::Status(503));
    let task = kernel.send("wait; say a; say b", Some((Version::V1, to(&good)))).await;
    for id in ["x", "y"] {
        let config = PushConfig { id: Some(id.to_owned()), ..to(&good) };
        kernel.set(Version::V03, &task, &config).await.unwrap();
    }
    kernel.set(Version::V1, &task, &to(&bad)).await.unwrap();
    kernel.pass(1);
    let got = good.got(9).await;
    for id in ["x", "y"] {
        let told = got.iter().filter(|delivery| delivery.id().contains(&format!(":{id}:")));
        assert_eq!(told.map(|delivery| delivery.about()).collect::<Vec<_>>(), ["working", "working", "completed"]);
    }
    bad.got(1).await;
    assert_eq!(bad.abouts()[0], "working");
}

#[tokio::test]
async fn a_webhook_set_after_the_end_is_told_the_end_at_once() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let task = kernel.finish("say a; chunk b", None).await;
    for (version, about) in
        [(Version::V1, "/task/artifacts/0/parts/0/text"), (Version::V03, "/artifacts/0/parts/0/text")]
    {
        let receiver = Receiver::open().await;
        kernel
            .set(version, &task, &PushConfig { id: Some(version.as_str().to_owned()), ..to(&receiver) })
            .await
            .unwrap();
        let got = receiver.got(1).await;
        assert_eq!(got[0].about(), "completed");
        assert_eq!(got[0].json().pointer(about), Some(&"b".into()), "{}", got[0].json());
        kernel.all_finished().await;
        assert_eq!(receiver.all().len(), 1);
        // Set once more, it is told once more.
        kernel
            .set(version, &task, &PushConfig { id: Some(version.as_str().to_owned()), ..to(&receiver) })
            .await
            .unwrap();
        let got = receiver.got(2).await;
        assert_ne!(got[0].id(), got[1].id(), "a receiver must not take it for a repetition");
        kernel.all_finished().await;
        kernel.webhooks.delete(&address(), &caller(), &task, version.as_str()).await.unwrap();
        kernel
            .set(version, &task, &PushConfig { id: Some(version.as_str().to_owned()), ..to(&receiver) })
            .await
            .unwrap();
        kernel.advance(1);
        let got = receiver.got(3).await;
        assert!(got[2].id() != got[0].id() && got[2].id() != got[1].id());
    }
}

#[tokio::test]
async fn a_webhook_set_while_a_question_is_open_gets_the_question() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.finish("say a; ask b; say c", None).await;
    // However often it has to be told so, only that is the whole task.
    receiver.script([Answer::Status(503)]);
    kernel.set(Version::V1, &task, &to(&receiver)).await.unwrap();
    kernel
        .until(async |service| {
            let pending = service.list(None, None, 0, 1).await.unwrap()[0].pending.clone();
            pending.filter(|pending| pending.attempts == 1).map(drop)
        })
        .await;
    kernel.submit("yes", Some(&task), None).await.answer().await;
    kernel.advance(2);
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["input_required", "input_required", "working", "working", "completed"]);
    let whole: Vec<_> = receiver.all().iter().map(|delivery| delivery.json().get("task").is_some()).collect();
    assert_eq!(whole, [true, true, false, false, false]);
}

#[tokio::test]
async fn a_webhook_set_in_the_middle_is_told_what_follows() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let (first, second) = (Receiver::open().await, Receiver::open().await);
    let task = kernel.send("say a; wait; say b", Some((Version::V1, to(&first)))).await;
    first.got(1).await;
    kernel.set(Version::V1, &task, &to(&second)).await.unwrap();
    kernel.pass(1);
    kernel.all_finished().await;
    assert_eq!(first.abouts(), ["working", "working", "completed"]);
    assert_eq!(second.abouts(), ["working", "completed"]);
}

#[tokio::test]
async fn a_webhook_that_comes_with_a_later_message_is_told_from_there() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.finish("say a; ask b; say c", None).await;
    kernel.submit("yes", Some(&task), Some((Version::V1, to(&receiver)))).await.answer().await;
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}

#[tokio::test]
async fn cancel_is_told_exactly_once() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let task = kernel.send("say a; hold", Some((Version::V1, to(&receiver)))).await;
    receiver.got(1).await;
    kernel.engine.cancel(&address(), &caller(), &task).await.unwrap();
    kernel.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "canceled"]);
    assert!(matches!(kernel.engine.cancel(&address(), &caller(), &task).await, Err(Error::NotCancelable { .. })));
    assert_eq!(receiver.all().len(), 2);
}

#[tokio::test]
async fn a_direct_reply_goes_out_to_no_webhook_and_leaves_none() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let submitted = kernel.submit("reply hello", None, Some((Version::V1, to(&receiver)))).await;
    submitted.answer().await;
    kernel.until(async |service| service.list(None, None, 0, 10).await.unwrap().is_empty().then_some(())).await;
    assert!(receiver.all().is_empty());
}

#[tokio::test]
async fn deleting_a_webhook_drops_what_it_was_not_told() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.otherwise(Answer::Status(500));
    let config = PushConfig { id: Some("x".to_owned()), ..to(&receiver) };
    let task = kernel.finish("say a; say b", Some((Version::V1, config))).await;
    receiver.got(1).await;
    kernel
        .until(async |service| {
            service.list(None, None, 0, 1).await.unwrap()[0]
                .pending
                .as_ref()
                .filter(|pending| pending.attempts == 1)
                .map(drop)
        })
        .await;
    kernel.webhooks.delete(&address(), &caller(), &task, "x").await.unwrap();
    kernel.advance(3_600);
    // Another webhook's delivery comes after anything that was left of the first.
    let other = Receiver::open().await;
    kernel.finish("say c", Some((Version::V1, to(&other)))).await;
    other.got(2).await;
    assert_eq!(receiver.all().len(), 1);
    assert!(kernel.service.dead_letters(0, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_taken_stays_taken_if_what_comes_next_cannot_be_read() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::HangThen(200)]);
    let submitted = kernel.submit("say a; wait; say b", None, Some((Version::V1, to(&receiver)))).await;
    receiver.got(1).await;
    kernel.pass(1);
    submitted.answer().await;
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let spoiled = database.execute("UPDATE event SET blob = x'ff' WHERE id = (SELECT max(id) FROM event)", []);
    assert_eq!(spoiled.unwrap(), 1);
    receiver.let_go();
    let taken = kernel.until(async |service| {
        let webhooks = service.list(None, None, 0, 1).await.unwrap();
        webhooks[0].pending.is_none().then(|| webhooks[0].clone())
    });
    assert!(taken.await.lags, "there is more that cannot be told");
    kernel.advance(3_600);
    kernel.settle().await;
    assert_eq!(receiver.all().len(), 1, "nothing is sent twice over it");
}
