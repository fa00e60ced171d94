//! Steps of webhooks: one delivery after the other, when it is due, each step once.

use futures_util::future::join_all;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Cursor, Epoch, Seq};
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryState, DueDelivery, OutboxCounts, OutboxWrite, Signing, WebhookFilter, WebhookKey,
    WebhookRoute, WebhookState, WebhookStore,
};

use super::Fixture;
use crate::build::{
    Writes, attempt, bury, delivery, done, inbox, make_watched, next, prepare, webhook, with_webhook, working,
};

const BEGINNING: (Timestamp, DeliveryKey) = (Timestamp(i64::MIN), DeliveryKey(0));

async fn due_until(store: &impl WebhookStore, until: i64) -> Vec<DeliveryKey> {
    let due = store.due_deliveries(BEGINNING, Timestamp(until), 100).await.unwrap();
    due.into_iter().map(|due| due.delivery).collect()
}

pub(crate) async fn deliveries_come_one_after_the_other(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    let set = with_webhook(inbox(key, 3, &[], done(1, 1)), webhook("b", "https://one", 0));
    store.write(set).await.unwrap();
    let first = prepare(&store, hook, delivery(1, 2, 10)).await;
    store.outbox(OutboxWrite::Prepare { webhook: hook, delivery: delivery(1, 3, 11) }).await.unwrap();
    let head = next(&store, hook).await.unwrap();
    assert_eq!((head.key, head.webhook, head.first), (first, hook, Seq(1)));
    assert_eq!(head.last, Cursor { epoch: Epoch(1), seq: Seq(2) });
    assert_eq!((head.about.as_str(), head.form, head.body.as_deref()), ("working", 3, Some(&b"events 1 to 2"[..])));
    assert_eq!((head.state, head.replay, head.attempts, head.last_attempt), (DeliveryState::Pending, false, 0, None));
    assert_eq!((head.due_at, head.created_at), (Timestamp(10), Timestamp(10)));

    let failed = OutboxWrite::Failed {
        delivery: first,
        attempt: attempt(12, 503),
        due_at: Timestamp(20),
        not_before: Timestamp(0),
    };
    store.outbox(failed).await.unwrap();
    let (row, tried) = store.delivery(first).await.unwrap().unwrap();
    assert_eq!((row.key, row.cursor), (hook, Seq(0)));
    assert_eq!((tried.attempts, tried.due_at, tried.last_attempt), (1, Timestamp(20), Some(attempt(12, 503))));
    assert!(tried.body.is_some());

    let next_one = Some(delivery(3, 3, 21));
    let taken = OutboxWrite::Delivered { delivery: first, attempt: attempt(21, 200), finished: false, next: next_one };
    store.outbox(taken).await.unwrap();
    let (row, taken) = store.delivery(first).await.unwrap().unwrap();
    assert_eq!((row.cursor, row.state), (Seq(2), WebhookState::Active));
    assert_eq!((taken.state, taken.attempts, taken.body), (DeliveryState::Delivered, 2, None));
    assert_eq!(taken.last_attempt, Some(attempt(21, 200)));
    let head = next(&store, hook).await.unwrap();
    assert_eq!((head.first, head.due_at), (Seq(3), Timestamp(21)));
    let last = OutboxWrite::Delivered { delivery: head.key, attempt: attempt(22, 200), finished: true, next: None };
    store.outbox(last).await.unwrap();
    let ended = store.head(hook).await.unwrap().unwrap();
    assert_eq!((ended.webhook.cursor, ended.webhook.state), (Seq(3), WebhookState::Finished));
    assert!(ended.delivery.is_none());
    // The other webhook of the task has its own order.
    let other = store.webhook(key, "b").await.unwrap().unwrap();
    assert_eq!((other.cursor, other.state), (Seq(0), WebhookState::Active));
}

pub(crate) async fn a_step_that_comes_too_late_does_nothing(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let late = with_webhook(
        inbox(key, 3, &[], working(1, 1)),
        switchboard_engine::store::webhooks::NewWebhook { late: true, ..webhook("b", "https://one", 2) },
    );
    store.write(late).await.unwrap();
    let late = store.webhook(key, "b").await.unwrap().unwrap().key;
    let sent = prepare(&store, hook, delivery(1, 1, 10)).await;
    let taken = |finished, next| OutboxWrite::Delivered { delivery: sent, attempt: attempt(11, 200), finished, next };
    store.outbox(taken(false, None)).await.unwrap();
    let gone = DeliveryKey(404);
    let no_hook = WebhookKey(404);
    for step in [
        taken(true, Some(delivery(2, 2, 12))),
        OutboxWrite::Failed {
            delivery: sent,
            attempt: attempt(12, 500),
            due_at: Timestamp(13),
            not_before: Timestamp(0),
        },
        OutboxWrite::Dead { body: None, delivery: sent, attempt: attempt(12, 500), finished: true },
        OutboxWrite::Disabled { body: None, delivery: sent, attempt: attempt(12, 410) },
        OutboxWrite::Delivered { delivery: gone, attempt: attempt(12, 200), finished: true, next: None },
        OutboxWrite::Dead { body: None, delivery: gone, attempt: attempt(12, 500), finished: true },
        OutboxWrite::Prepare { webhook: no_hook, delivery: delivery(1, 1, 12) },
        OutboxWrite::Finished { webhook: no_hook, cursor: Seq(3) },
        // Of what it was told already.
        OutboxWrite::Prepare { webhook: hook, delivery: delivery(1, 2, 12) },
        OutboxWrite::Abandon { webhook: hook, delivery: delivery(1, 2, 12), problem: "no".to_owned() },
    ] {
        store.outbox(step.clone()).await.unwrap();
        let head = store.head(hook).await.unwrap().unwrap();
        assert_eq!((head.webhook.cursor, head.webhook.state), (Seq(1), WebhookState::Active), "{step:?}");
        assert!(head.delivery.is_none(), "{step:?}");
        let (_, row) = store.delivery(sent).await.unwrap().unwrap();
        assert_eq!((row.state, row.attempts), (DeliveryState::Delivered, 1), "{step:?}");
    }
    // What is next has to be told first.
    prepare(&store, hook, delivery(2, 2, 12)).await;
    store.outbox(OutboxWrite::Finished { webhook: hook, cursor: Seq(3) }).await.unwrap();
    let abandon = OutboxWrite::Abandon { webhook: hook, delivery: delivery(2, 3, 13), problem: "no".to_owned() };
    store.outbox(abandon).await.unwrap();
    let head = store.head(hook).await.unwrap().unwrap();
    assert_eq!((head.webhook.cursor, head.webhook.state), (Seq(1), WebhookState::Active));
    assert_eq!(store.outbox_census().await.unwrap().dead, 0);
    // It begins with the task as it is only as long as it has heard nothing.
    assert!(store.head(late).await.unwrap().unwrap().webhook.late);
    bury(&store, late, delivery(3, 3, 12), 13).await;
    assert!(!store.head(late).await.unwrap().unwrap().webhook.late);
    // At its end nothing more is made for it.
    store.outbox(OutboxWrite::Finished { webhook: late, cursor: Seq(3) }).await.unwrap();
    store.outbox(OutboxWrite::Prepare { webhook: late, delivery: delivery(4, 4, 14) }).await.unwrap();
    assert!(next(&store, late).await.is_none());
}

pub(crate) async fn what_is_due_comes_in_its_order(fixture: impl Fixture) {
    let store = fixture.open();
    let mut made = Vec::new();
    for (endpoint, at) in [("https://one", 30), ("https://two", 10), ("https://one", 20), ("https://one", 20)] {
        let (_, hook) = make_watched(&store, "a", endpoint, working(1, 1)).await;
        made.push((hook, prepare(&store, hook, delivery(1, 1, at)).await));
    }
    let due = store.due_deliveries(BEGINNING, Timestamp(20), 100).await.unwrap();
    let route = WebhookRoute { webhook: made[1].0, owner: "ann".into(), endpoint: "https://two".to_owned() };
    assert_eq!(due[0], DueDelivery { due_at: Timestamp(10), delivery: made[1].1, route });
    assert_eq!(due_until(&store, 20).await, [made[1].1, made[2].1, made[3].1]);
    assert_eq!(due_until(&store, 9).await, []);
    let after = store.due_deliveries((Timestamp(20), made[2].1), Timestamp(99), 100).await.unwrap();
    assert_eq!(after.iter().map(|due| due.delivery).collect::<Vec<_>>(), [made[3].1, made[0].1]);
    let one = store.due_deliveries((Timestamp(10), made[1].1), Timestamp(99), 1).await.unwrap();
    assert_eq!(one[0].delivery, made[2].1);
    assert_eq!(store.next_due(Timestamp(0)).await.unwrap(), Some(Timestamp(10)));
    assert_eq!(store.next_due(Timestamp(20)).await.unwrap(), Some(Timestamp(30)));
    assert_eq!(store.next_due(Timestamp(30)).await.unwrap(), None);
    let census = OutboxCounts { behind: 4, behind_since: Some(Timestamp(10)), dead: 0 };
    assert_eq!(store.outbox_census().await.unwrap(), census);
    let again = OutboxWrite::Failed {
        delivery: made[1].1,
        attempt: attempt(11, 500),
        due_at: Timestamp(40),
        not_before: Timestamp(0),
    };
    store.outbox(again).await.unwrap();
    assert_eq!(due_until(&store, 99).await.last(), Some(&made[1].1));
}

pub(crate) async fn a_paused_webhook_is_not_due(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let (_, empty) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let dead = bury(&store, hook, delivery(1, 1, 10), 11).await;
    let head = prepare(&store, hook, delivery(2, 2, 50)).await;
    let set = |hook, state, now| store.set_webhook_state(hook, state, Timestamp(now));
    assert!(set(hook, WebhookState::Paused, 20).await.unwrap() && set(empty, WebhookState::Paused, 20).await.unwrap());
    assert!(!set(hook, WebhookState::Paused, 20).await.unwrap());
    assert!(!set(hook, WebhookState::Finished, 20).await.unwrap());
    assert!(!set(WebhookKey(404), WebhookState::Active, 20).await.unwrap());
    // Made while it is paused, and sent once more by the operator who paused it.
    let made = prepare(&store, empty, delivery(1, 1, 21)).await;
    assert!(store.replay(dead, Timestamp(22)).await.unwrap());
    assert_eq!(due_until(&store, 99).await, [dead]);
    assert_eq!(store.next_due(Timestamp(22)).await.unwrap(), None);
    assert_eq!(next(&store, hook).await.unwrap().key, head, "it stays");

    // What was under way when it was paused is still delivered, and what follows waits.
    let next_one = Some(delivery(3, 3, 23));
    let taken = OutboxWrite::Delivered { delivery: head, attempt: attempt(23, 200), finished: false, next: next_one };
    store.outbox(taken).await.unwrap();
    let follows = next(&store, hook).await.unwrap().key;
    assert_eq!(due_until(&store, 99).await, [dead]);
    assert!(set(hook, WebhookState::Active, 60).await.unwrap() && set(empty, WebhookState::Active, 61).await.unwrap());
    assert!(!set(hook, WebhookState::Active, 60).await.unwrap());
    assert_eq!(due_until(&store, 99).await, [dead, follows, made]);
    assert_eq!(next(&store, hook).await.unwrap().due_at, Timestamp(60));
}

pub(crate) async fn a_disabled_webhook_is_told_nothing(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let sent = prepare(&store, hook, delivery(1, 1, 10)).await;
    store.outbox(OutboxWrite::Disabled { body: None, delivery: sent, attempt: attempt(11, 410) }).await.unwrap();
    let head = store.head(hook).await.unwrap().unwrap();
    assert_eq!((head.webhook.cursor, head.webhook.state), (Seq(1), WebhookState::Disabled));
    let (_, dead) = store.delivery(sent).await.unwrap().unwrap();
    assert_eq!(
        (dead.state, dead.last_attempt, dead.body.is_some()),
        (DeliveryState::Dead, Some(attempt(11, 410)), true)
    );
    assert!(store.lagging_webhooks(WebhookKey(0), 10).await.unwrap().is_empty());
    store.outbox(OutboxWrite::Prepare { webhook: hook, delivery: delivery(2, 2, 12) }).await.unwrap();
    assert!(next(&store, hook).await.is_none());
    assert!(!store.set_webhook_state(hook, WebhookState::Paused, Timestamp(12)).await.unwrap());
    assert!(store.set_webhook_state(hook, WebhookState::Active, Timestamp(12)).await.unwrap());
    let second = prepare(&store, hook, delivery(2, 2, 12)).await;

    // A replay that is told so disables it too; what was next waits until it is wanted again.
    assert!(store.replay(sent, Timestamp(13)).await.unwrap());
    store.outbox(OutboxWrite::Disabled { body: None, delivery: sent, attempt: attempt(14, 410) }).await.unwrap();
    assert_eq!(due_until(&store, 99).await, []);
    assert_eq!(store.head(hook).await.unwrap().unwrap().webhook.cursor, Seq(1));
    assert!(store.set_webhook_state(hook, WebhookState::Active, Timestamp(15)).await.unwrap());
    assert_eq!(due_until(&store, 99).await, [second]);
}

pub(crate) async fn an_endpoint_is_released_at_once(fixture: impl Fixture) {
    let store = fixture.open();
    let mut made = Vec::new();
    for (number, endpoint) in ["https://one", "https://one", "https://two", "https://one"].into_iter().enumerate() {
        let (_, hook) = make_watched(&store, "a", endpoint, working(1, 1)).await;
        made.push(prepare(&store, hook, delivery(1, 1, if number == 0 { 5 } else { 100 })).await);
    }
    assert_eq!(store.release_endpoint("https://none", Timestamp(50)).await.unwrap(), 0);
    assert_eq!(store.release_endpoint("https://one", Timestamp(50)).await.unwrap(), 2);
    assert_eq!(due_until(&store, 50).await, [made[0], made[1], made[3]]);
    assert_eq!(store.release_endpoint("https://one", Timestamp(50)).await.unwrap(), 0);
    assert_eq!(due_until(&store, 100).await, [made[0], made[1], made[3], made[2]]);

    // More of them than one commit moves.
    let many = (0..600).map(async |_| {
        let (_, hook) = make_watched(&store, "a", "https://three", working(1, 1)).await;
        prepare(&store, hook, delivery(1, 1, 100)).await
    });
    let many = join_all(many).await;
    assert_eq!(store.release_endpoint("https://three", Timestamp(50)).await.unwrap(), many.len());
    assert_eq!(store.due_deliveries(BEGINNING, Timestamp(50), 1_000).await.unwrap().len(), 603);
}

pub(crate) async fn the_newest_hundred_deliveries_are_kept(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let (_, other) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let kept = prepare(&store, other, delivery(1, 1, 1)).await;
    let taken = |delivery, next| OutboxWrite::Delivered { delivery, attempt: attempt(9, 200), finished: false, next };
    store.outbox(taken(kept, None)).await.unwrap();
    let dead = bury(&store, hook, delivery(1, 1, 1), 2).await;
    let mut head = prepare(&store, hook, delivery(2, 2, 2)).await;
    for seq in 3..130 {
        store.outbox(taken(head, Some(delivery(seq, seq, 3)))).await.unwrap();
        head = next(&store, hook).await.unwrap().key;
    }
    let rows = store.deliveries(hook, 1_000).await.unwrap();
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    assert_eq!(
        (count(DeliveryState::Pending), count(DeliveryState::Delivered), count(DeliveryState::Dead)),
        (1, 100, 1)
    );
    assert_eq!(rows[0].key, head);
    assert_eq!(rows[100].first, Seq(29), "the oldest of the newest hundred");
    assert_eq!(rows[101].key, dead);
    let all = store.list_webhooks(WebhookFilter { max: 10, ..WebhookFilter::default() }).await.unwrap();
    assert_eq!((all[0].delivered, all[0].dead, all[1].delivered), (127, 1, 1));
    assert!(store.delivery(kept).await.unwrap().is_some());
}

pub(crate) async fn a_crash_keeps_webhooks_and_deliveries(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let dead = bury(&store, hook, delivery(1, 1, 10), 11).await;
    let head = prepare(&store, hook, delivery(2, 2, 12)).await;
    let rotated = store.rotate_signing(Timestamp(1), Timestamp(7)).await.unwrap();
    drop(store);
    let store = fixture.open();
    let found = store.webhook(key, "a").await.unwrap().unwrap();
    assert_eq!((found.key, found.cursor, found.endpoint.as_str()), (hook, Seq(1), "https://one"));
    assert_eq!(due_until(&store, 99).await, [head]);
    assert_eq!(store.delivery(dead).await.unwrap().unwrap().1.state, DeliveryState::Dead);
    assert_eq!(store.signing().await.unwrap(), rotated);
    let taken = OutboxWrite::Delivered { delivery: head, attempt: attempt(13, 200), finished: false, next: None };
    store.outbox(taken).await.unwrap();
    assert!(prepare(&store, hook, delivery(3, 3, 14)).await > head);
}

pub(crate) async fn secrets_are_rotated(fixture: impl Fixture) {
    let store = fixture.open();
    assert_eq!(store.signing().await.unwrap(), Signing { generation: 1, previous: Vec::new() });
    let second = Signing { generation: 2, previous: vec![(1, Timestamp(70))] };
    assert_eq!(store.rotate_signing(Timestamp(10), Timestamp(70)).await.unwrap(), second);
    assert_eq!(store.signing().await.unwrap(), second);
    // What was promised for the first holds, and no longer.
    let third = store.rotate_signing(Timestamp(20), Timestamp(60)).await.unwrap();
    assert_eq!(third, Signing { generation: 3, previous: vec![(2, Timestamp(60)), (1, Timestamp(70))] });
    let fourth = store.rotate_signing(Timestamp(65), Timestamp(90)).await.unwrap();
    assert_eq!(fourth, Signing { generation: 4, previous: vec![(3, Timestamp(90)), (1, Timestamp(70))] });
    // At once means all of them.
    let fifth = store.rotate_signing(Timestamp(66), Timestamp(66)).await.unwrap();
    assert_eq!(fifth, Signing { generation: 5, previous: Vec::new() });
    assert_eq!(store.signing().await.unwrap(), fifth);
}
