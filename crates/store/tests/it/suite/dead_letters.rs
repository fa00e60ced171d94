//! What was given up is kept, sent once more if the operator wants it, and outlives its task.

use switchboard_a2a::Timestamp;
use switchboard_engine::ids::Seq;
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryState, OutboxCounts, OutboxWrite, WebhookFilter, WebhookKey, WebhookState, WebhookStore,
};
use switchboard_engine::store::{Retention, Store};

use super::Fixture;
use crate::build::{
    Writes, attempt, bury, create, delivery, done, hidden, make_watched, new_task, next, prepare, query, webhook,
    with_webhook, working,
};

const EVICT_ALL: Retention = Retention {
    ended_before: Timestamp(i64::MAX),
    max_tasks: u64::MAX,
    max_bytes: u64::MAX,
    hold_since: Timestamp(i64::MAX),
};

async fn dead(store: &impl WebhookStore) -> Vec<DeliveryKey> {
    store.dead_letters(DeliveryKey(0), 100).await.unwrap().into_iter().map(|(_, delivery)| delivery.key).collect()
}

async fn counts(store: &impl WebhookStore) -> (u64, u64) {
    let all = store.list_webhooks(WebhookFilter { max: 1, ..WebhookFilter::default() }).await.unwrap();
    (all[0].delivered, all[0].dead)
}

pub(crate) async fn what_is_given_up_is_kept_and_sent_once_more(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let first = bury(&store, hook, delivery(1, 1, 10), 11).await;
    let second = bury(&store, hook, delivery(2, 2, 12), 13).await;
    assert_eq!(store.head(hook).await.unwrap().unwrap().webhook.cursor, Seq(2));
    assert_eq!(dead(&store).await, [first, second]);
    let one = store.dead_letters(first, 1).await.unwrap();
    assert_eq!((one[0].0.key, one[0].1.key, one[0].1.body.as_ref()), (hook, second, None));
    assert_eq!(one[0].1.last_attempt, Some(attempt(13, 500)));
    assert_eq!(store.dead_letters(DeliveryKey(0), 1).await.unwrap().len(), 1);

    let head = prepare(&store, hook, delivery(3, 3, 14)).await;
    assert!(!store.replay(head, Timestamp(20)).await.unwrap(), "it is pending anyway");
    assert!(!store.replay(DeliveryKey(404), Timestamp(20)).await.unwrap());
    assert!(store.replay(first, Timestamp(20)).await.unwrap());
    assert!(store.replay(first, Timestamp(20)).await.unwrap(), "it waits already");
    let due = store.due_deliveries((Timestamp(14), head), Timestamp(99), 9).await.unwrap();
    assert_eq!((due.len(), due[0].delivery, due[0].due_at), (1, first, Timestamp(20)));
    assert_eq!(next(&store, hook).await.unwrap().key, head, "beside what comes in order");
    let census = OutboxCounts { behind: 2, behind_since: Some(Timestamp(14)), dead: 1 };
    assert_eq!(store.outbox_census().await.unwrap(), census);

    // Once more in vain, and the order does not move.
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: first, attempt: attempt(21, 502), finished: true })
        .await
        .unwrap();
    let (row, again) = store.delivery(first).await.unwrap().unwrap();
    assert_eq!((row.cursor, row.state), (Seq(2), WebhookState::Active));
    assert_eq!(
        (again.state, again.attempts, again.body.as_deref()),
        (DeliveryState::Dead, 2, Some(&b"events 1 to 1"[..]))
    );
    assert_eq!(counts(&store).await, (0, 2));
    assert!(store.replay(first, Timestamp(30)).await.unwrap());
    let taken = |delivery| OutboxWrite::Delivered { delivery, attempt: attempt(31, 200), finished: true, next: None };
    store.outbox(taken(first)).await.unwrap();
    let (row, taken_at_last) = store.delivery(first).await.unwrap().unwrap();
    assert_eq!((row.cursor, row.state), (Seq(2), WebhookState::Active));
    assert_eq!((taken_at_last.state, taken_at_last.body), (DeliveryState::Delivered, None));
    assert_eq!((dead(&store).await, counts(&store).await), (vec![second], (1, 1)));
    // Given up and at its end in one.
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: head, attempt: attempt(32, 500), finished: true })
        .await
        .unwrap();
    let ended = store.head(hook).await.unwrap().unwrap().webhook;
    assert_eq!((ended.cursor, ended.state), (Seq(3), WebhookState::Finished));
    assert!(store.replay(head, Timestamp(33)).await.unwrap(), "even then");
    assert_eq!(store.next_due(Timestamp(0)).await.unwrap(), Some(Timestamp(33)));
}

pub(crate) async fn what_was_delivered_can_be_sent_once_more(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let sent = prepare(&store, hook, delivery(1, 1, 10)).await;
    let taken = OutboxWrite::Delivered { delivery: sent, attempt: attempt(11, 200), finished: false, next: None };
    store.outbox(taken.clone()).await.unwrap();
    assert!(store.replay(sent, Timestamp(20)).await.unwrap());
    let (_, again) = store.delivery(sent).await.unwrap().unwrap();
    assert_eq!((again.state, again.replay, again.body), (DeliveryState::Pending, true, None));
    store.outbox(taken).await.unwrap();
    assert_eq!(counts(&store).await, (1, 0), "it is still one");
    assert!(store.replay(sent, Timestamp(20)).await.unwrap());
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: sent, attempt: attempt(21, 500), finished: false })
        .await
        .unwrap();
    assert_eq!(counts(&store).await, (0, 1));
}

pub(crate) async fn what_was_never_tried_is_given_up(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    assert!(store.set_webhook_state(hook, WebhookState::Paused, Timestamp(2)).await.unwrap());
    let problem = "held for seven days".to_owned();
    store.outbox(OutboxWrite::Abandon { webhook: hook, delivery: delivery(1, 3, 40), problem }).await.unwrap();
    let given_up = store.dead_letters(DeliveryKey(0), 9).await.unwrap().pop().unwrap();
    assert_eq!((given_up.0.cursor, given_up.1.attempts, given_up.1.state), (Seq(3), 0, DeliveryState::Dead));
    let attempt = given_up.1.last_attempt.unwrap();
    assert_eq!((attempt.at, attempt.status, attempt.problem.as_str()), (Timestamp(40), None, "held for seven days"));
    let (_, whole) = store.delivery(given_up.1.key).await.unwrap().unwrap();
    assert_eq!(whole.body.as_deref(), Some(&b"events 1 to 3"[..]));
    store.outbox(OutboxWrite::Finished { webhook: hook, cursor: Seq(3) }).await.unwrap();
    assert_eq!(store.webhook(key, "a").await.unwrap().unwrap().state, WebhookState::Finished);
}

pub(crate) async fn dead_letters_go_by_age_and_by_number(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let mut letters = Vec::new();
    // The first one dies last.
    for (seq, at) in [(1, 900), (2, 100), (3, 200), (4, 300)] {
        letters.push(bury(&store, hook, delivery(seq, seq, 10), at).await);
    }
    assert_eq!(store.prune_dead_letters(Timestamp(100), 10, u64::MAX).await.unwrap(), 0);
    assert_eq!(store.prune_dead_letters(Timestamp(101), 10, u64::MAX).await.unwrap(), 1);
    assert_eq!(dead(&store).await, [letters[0], letters[2], letters[3]]);
    assert_eq!(store.prune_dead_letters(Timestamp(0), 2, u64::MAX).await.unwrap(), 1);
    assert_eq!(dead(&store).await, [letters[0], letters[3]]);
    for seq in 5..205 {
        bury(&store, hook, delivery(seq, seq, 10), 1_000).await;
    }
    assert_eq!(store.prune_dead_letters(Timestamp(301), 150, u64::MAX).await.unwrap(), 52);
    assert_eq!(store.prune_dead_letters(Timestamp(0), 0, u64::MAX).await.unwrap(), 150);
    assert_eq!(counts(&store).await, (0, 0));
    let head = prepare(&store, hook, delivery(205, 205, 10)).await;
    drop(store);
    let store = fixture.open();
    let (_, other) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    assert!(prepare(&store, other, delivery(1, 1, 10)).await > head);
}

pub(crate) async fn a_task_stays_while_a_webhook_has_to_read_it(fixture: impl Fixture) {
    let store = fixture.open();
    let (held, first) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    let (_, paused) = make_watched(&store, "a", "https://one", done(2, 1)).await;
    let (_, ended) = make_watched(&store, "a", "https://one", done(3, 1)).await;
    let (_, disabled) = make_watched(&store, "a", "https://one", done(4, 1)).await;
    // A direct reply has no webhook to tell.
    let unseen = with_webhook(create(&new_task("ann", "echo", "c"), &["1"], hidden(done(1, 1))), webhook("a", "x", 0));
    store.write(unseen).await.unwrap();
    store.set_webhook_state(paused, WebhookState::Paused, Timestamp(5)).await.unwrap();
    let sent = prepare(&store, ended, delivery(1, 3, 10)).await;
    let taken = |delivery| OutboxWrite::Delivered { delivery, attempt: attempt(11, 200), finished: true, next: None };
    store.outbox(taken(sent)).await.unwrap();
    let refused = prepare(&store, disabled, delivery(1, 3, 10)).await;
    store.outbox(OutboxWrite::Disabled { body: None, delivery: refused, attempt: attempt(11, 410) }).await.unwrap();
    // Two that are held and older do not keep others from being found.
    assert_eq!(store.evict(EVICT_ALL, 1).await.unwrap(), 1);
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 2);
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 0);
    assert_eq!(store.list(query("ann")).await.unwrap().total, 2);
    assert!(store.head(ended).await.unwrap().is_none() && store.delivery(sent).await.unwrap().is_none());
    assert!(store.head(disabled).await.unwrap().is_some(), "it has a dead letter");

    store.outbox(OutboxWrite::Finished { webhook: paused, cursor: Seq(3) }).await.unwrap();
    assert!(store.delete_webhook(held, "a").await.unwrap());
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 2);
    assert!(store.head(first).await.unwrap().is_none() && store.head(paused).await.unwrap().is_none());
}

pub(crate) async fn what_is_held_is_not_kept_at_the_cost_of_others(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    for at in 2..5 {
        store.write(create(&new_task("bob", "echo", "c"), &["1"], done(at, 1))).await.unwrap();
    }
    let retention = |max_tasks| Retention {
        ended_before: Timestamp(0),
        max_tasks,
        max_bytes: u64::MAX,
        hold_since: Timestamp(i64::MAX),
    };
    assert!(store.held_beyond_caps(retention(4), 10).await.unwrap().is_empty());
    // The oldest is to go, and as long as it cannot no other goes in its place.
    assert_eq!(store.evict(retention(3), 10).await.unwrap(), 0);
    assert_eq!(store.held_beyond_caps(retention(3), 10).await.unwrap(), [hook]);
    store.outbox(OutboxWrite::Finished { webhook: hook, cursor: Seq(3) }).await.unwrap();
    assert!(store.held_beyond_caps(retention(3), 10).await.unwrap().is_empty());
    assert_eq!(store.evict(retention(3), 10).await.unwrap(), 1);
    assert_eq!(store.list(query("bob")).await.unwrap().total, 3);
}

pub(crate) async fn no_more_is_given_up_than_there_is_too_much(fixture: impl Fixture) {
    let store = fixture.open();
    let mut held = Vec::new();
    for at in 1..21 {
        held.push(make_watched(&store, "a", "https://one", done(at, 1)).await.1);
    }
    for _ in 0..11 {
        store.write(create(&new_task("bob", "echo", "c"), &["1"], working(1, 1))).await.unwrap();
    }
    // Their time is over, and still each of them is held as long as it is not in the way.
    let aged = |max_tasks| Retention {
        ended_before: Timestamp(100),
        max_tasks,
        max_bytes: u64::MAX,
        hold_since: Timestamp(i64::MAX),
    };
    assert!(store.held_beyond_caps(aged(31), 200).await.unwrap().is_empty());
    assert_eq!(store.held_beyond_caps(aged(30), 200).await.unwrap(), held[..1]);
    assert_eq!(store.held_beyond_caps(aged(28), 200).await.unwrap(), held[..3]);
    assert_eq!(store.held_beyond_caps(aged(28), 2).await.unwrap(), held[..2]);
    // What can go goes first, however many older ones are held.
    for at in 50..52 {
        store.write(create(&new_task("bob", "echo", "c"), &["1"], done(at, 1))).await.unwrap();
    }
    assert!(store.held_beyond_caps(aged(31), 200).await.unwrap().is_empty());
    assert_eq!(store.held_beyond_caps(aged(30), 200).await.unwrap(), held[..1]);
    assert_eq!(store.evict(aged(30), 10).await.unwrap(), 2);
    // Given up and not deleted yet, it counts as gone.
    store.outbox(OutboxWrite::Finished { webhook: held[0], cursor: Seq(3) }).await.unwrap();
    assert!(store.held_beyond_caps(aged(30), 200).await.unwrap().is_empty());
    assert_eq!(store.evict(aged(30), 10).await.unwrap(), 1);
    assert_eq!(store.evict(aged(30), 10).await.unwrap(), 0);
}

pub(crate) async fn dead_letters_outlive_their_task(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    let first = bury(&store, hook, delivery(1, 1, 10), 11).await;
    let second = bury(&store, hook, delivery(2, 2, 12), 13).await;
    let sent = prepare(&store, hook, delivery(3, 3, 14)).await;
    let taken = |delivery| OutboxWrite::Delivered { delivery, attempt: attempt(15, 200), finished: true, next: None };
    store.outbox(taken(sent)).await.unwrap();
    // One of them is just sent once more.
    assert!(store.replay(second, Timestamp(16)).await.unwrap());
    let task = store.webhook(key, "a").await.unwrap().unwrap().task;
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 1);
    assert!(store.row(&task).await.unwrap().is_none());

    let filter = WebhookFilter { task: Some(task.clone()), max: 9, ..WebhookFilter::default() };
    let seen = store.list_webhooks(filter.clone()).await.unwrap().pop().unwrap();
    assert_eq!((seen.webhook.key, &seen.webhook.task, seen.dead, seen.lags), (hook, &task, 1, false));
    assert_eq!(seen.webhook.owner.as_str(), "ann");
    assert!(store.delivery(sent).await.unwrap().is_none(), "its history went with the task");
    let (_, kept) = store.delivery(second).await.unwrap().unwrap();
    assert!(kept.body.is_some());
    let head = store.head(hook).await.unwrap().unwrap();
    assert_eq!((head.task_last, head.task_ended_at), (Seq(3), None));
    assert!(!store.set_webhook_state(hook, WebhookState::Active, Timestamp(17)).await.unwrap());
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: second, attempt: attempt(17, 500), finished: false })
        .await
        .unwrap();
    assert_eq!(dead(&store).await, [first, second]);

    // The last one takes the webhook with it, delivered or not.
    assert_eq!(store.prune_dead_letters(Timestamp(12), 10, u64::MAX).await.unwrap(), 1);
    assert!(store.head(hook).await.unwrap().is_some());
    assert!(store.replay(second, Timestamp(18)).await.unwrap());
    store.outbox(taken(second)).await.unwrap();
    assert!(store.list_webhooks(filter).await.unwrap().is_empty());
    assert!(store.delivery(second).await.unwrap().is_none());
    assert_eq!(store.outbox_census().await.unwrap(), OutboxCounts::default());
    assert!(store.lagging_webhooks(WebhookKey(0), 9).await.unwrap().is_empty());

    let (_, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    let letter = prepare(&store, hook, delivery(1, 3, 10)).await;
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: letter, attempt: attempt(11, 500), finished: true })
        .await
        .unwrap();
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 1);
    assert_eq!(store.prune_dead_letters(Timestamp(99), 10, u64::MAX).await.unwrap(), 1);
    assert!(store.head(hook).await.unwrap().is_none());
}
