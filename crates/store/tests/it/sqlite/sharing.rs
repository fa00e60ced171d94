//! Steps of webhooks share commits with appends, and neither spoils the other.

use bytes::Bytes;
use futures_util::future::{join_all, join3};
use switchboard_engine::ids::Seq;
use switchboard_engine::store::webhooks::{NewDelivery, OutboxWrite, WebhookKey, WebhookStore};
use switchboard_engine::store::{Store, StoreError};
use switchboard_store::{Options, check};

use super::SqliteFixture;
use crate::build::{Writes, create, delivery, done, make_watched, new_task, next, owner, prepare, query, row, working};
use crate::suite::Fixture;

#[tokio::test]
async fn a_broken_step_fails_alone() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    // The number that the delivery is to have is taken, so that it breaks in the middle of a commit.
    fixture.tamper(
        "INSERT INTO delivery (key, webhook, endpoint, first_seq, last_seq, last_epoch, form, state, replay, held, attempts, \
         due_at, created_at, began_at, about) VALUES (1, 404, 'x', 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 'x')",
    );
    let good = |_| store.write(create(&new_task("bob", "echo", "c"), &["x"], row(1)));
    let broken = store.outbox(OutboxWrite::Prepare { webhook: hook, delivery: delivery(1, 1, 10) });
    let (before, broken, after) = join3(join_all((0..20).map(good)), broken, join_all((0..20).map(good))).await;
    assert!(matches!(broken, Err(StoreError::Failed(_))), "{broken:?}");
    assert!(before.iter().chain(&after).all(Result::is_ok));
    assert_eq!(store.list(query("bob")).await.unwrap().total, 40);
    assert!(next(&store, hook).await.is_none());
    assert!(store.ready().is_ok());
}

#[tokio::test]
async fn a_broken_append_spoils_no_step() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    fixture.tamper(&format!("INSERT INTO event VALUES (1000, {}, 4, 1, 1, x'31', NULL)", key.0));
    let step = store.outbox(OutboxWrite::Prepare { webhook: hook, delivery: delivery(1, 1, 10) });
    let broken = store.write(owner(key, 1, &["4"], done(2, 1)));
    // Says what it found the second time, which is the one that counts.
    let rotated = store.rotate_signing(switchboard_a2a::Timestamp(1), switchboard_a2a::Timestamp(9));
    let (step, broken, rotated) = join3(step, broken, rotated).await;
    assert!(matches!(broken, Err(StoreError::Failed(_))), "{broken:?}");
    step.unwrap();
    assert_eq!(rotated.unwrap().generation, 2);
    assert_eq!(store.signing().await.unwrap().generation, 2);
    assert_eq!(next(&store, hook).await.unwrap().first, Seq(1));
}

#[tokio::test]
async fn a_step_on_a_full_disk_is_refused_and_nothing_of_it_stays() {
    let fixture = SqliteFixture::new();
    let store = fixture.open_with(Options { max_file_bytes: Some(1 << 20), ..Options::default() });
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let large = NewDelivery { body: Some(Bytes::from(vec![b'x'; 2 << 20])), ..delivery(1, 1, 10) };
    let error = store.outbox(OutboxWrite::Prepare { webhook: hook, delivery: large }).await.unwrap_err();
    assert!(matches!(&error, StoreError::Failed(words) if words.contains("full")), "{error}");
    assert!(next(&store, hook).await.is_none());
    prepare(&store, hook, delivery(1, 1, 10)).await;
    store.close().await.unwrap();
    let error = store.outbox(OutboxWrite::Finished { webhook: WebhookKey(1), cursor: Seq(3) }).await;
    assert!(matches!(error, Err(StoreError::Closed)));
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}
