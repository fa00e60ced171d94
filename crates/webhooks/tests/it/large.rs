//! Large tasks: their bodies are not written for every webhook, and still are the same each time.

use switchboard_a2a::Version;
use switchboard_engine::store::webhooks::{DeliveryKey, WebhookKey, WebhookStore};
use switchboard_engine::store::{Retention, Store};
use tempfile::tempdir;

use crate::house::{House, to};
use crate::receiver::{Answer, Receiver};

#[tokio::test]
async fn a_large_body_is_made_again_and_kept_when_it_is_given_up() {
    let folder = tempdir().unwrap();
    let house = House::open(folder.path()).await;
    let receiver = Receiver::open().await;
    receiver.script([Answer::Status(503), Answer::Status(404)]);
    let large = "x".repeat(100_000);
    house.finish(&format!("chunk {large}; say a"), Some((Version::V03, to(&receiver)))).await;
    house
        .until(async |desk| {
            let pending = desk.list(None, None, 0, 1).await.unwrap()[0].pending.clone();
            pending.filter(|pending| pending.attempts == 1).map(drop)
        })
        .await;
    let head = house.store.head(WebhookKey(1)).await.unwrap().unwrap();
    assert!(head.delivery.unwrap().body.is_none(), "it can be made again");
    house.advance(2);
    house.all_finished().await;
    let got = receiver.all();
    assert!(got[0].body.len() > 100_000);
    assert_eq!((got[0].id(), &got[0].body), (got[1].id(), &got[1].body));
    let dead = house.desk.dead_letters(0, 1).await.unwrap();
    let (_, row) = house.store.delivery(DeliveryKey(dead[0].delivery)).await.unwrap().unwrap();
    assert_eq!(row.body.as_ref(), Some(&got[0].body), "it outlives the log");
    let all = Retention { ended_before: house.engine.clock().now(), max_tasks: 0, max_bytes: 0 };
    assert_eq!(house.store.evict(all, 10).await.unwrap(), 1);
    house.desk.retry_dead(None).await.unwrap();
    assert_eq!(receiver.got(4).await[3].body, got[0].body);
}

#[tokio::test]
async fn what_a_webhook_does_not_want_is_put_behind() {
    let folder = tempdir().unwrap();
    let house = House::open(folder.path()).await;
    let receiver = Receiver::open().await;
    let chunk = "x".repeat(40_000);
    let steps = format!("say a; chunk {chunk}; chunk {chunk}; chunk {chunk}; wait; say b");
    house.send(&steps, Some((Version::V03, to(&receiver)))).await;
    receiver.got(1).await;
    // Past the status it was told of, though nothing after it was for it.
    house.until(async |desk| (desk.list(None, None, 0, 1).await.unwrap()[0].cursor > 3).then_some(())).await;
    house.pass(1);
    house.all_finished().await;
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
}
