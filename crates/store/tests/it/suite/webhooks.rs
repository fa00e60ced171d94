//! Webhooks come with an append to their task, and go on or begin again when they are replaced.

use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::webhooks::{
    NewWebhook, OutboxWrite, WebhookFilter, WebhookKey, WebhookRoute, WebhookState, WebhookStore,
};
use switchboard_engine::store::{Store, StoreError};

use super::Fixture;
use crate::build::{
    Writes, attempt, bury, create, delivery, done, hidden, inbox, make, make_watched, new_task, next, owner, parked,
    prepare, refused, row, scope, webhook, with_send, with_webhook, working,
};

fn late(webhook: NewWebhook) -> NewWebhook {
    NewWebhook { late: true, ..webhook }
}

pub(crate) async fn a_webhook_is_set_with_an_append(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let created = with_webhook(create(&task, &["1"], working(1, 1)), webhook("a", "https://one", 0));
    let key = store.write(created).await.unwrap().key;
    store.write(owner(key, 1, &["2"], done(2, 1))).await.unwrap();
    // On a task that has ended, with an append that changes nothing else.
    let set = with_webhook(inbox(key, 2, &[], done(2, 1)), late(webhook("b", "https://two", 1)));
    let appended = store.write(set).await.unwrap();
    assert_eq!((appended.first_seq, appended.row), (Seq(3), 0));

    let found = store.webhook(key, "b").await.unwrap().unwrap();
    assert_eq!((found.task_key, &found.task, &found.owner, &found.agent), (key, &task.id, &task.owner, &task.agent));
    assert_eq!((found.id.as_str(), found.endpoint.as_str()), ("b", "https://two"));
    assert_eq!(found.config, "{\"url\":\"https://two/b\"}");
    assert_eq!((found.cursor, found.late, found.state), (Seq(1), true, WebhookState::Active));
    assert_eq!(found.began_at, Timestamp(5));
    let all = store.webhooks(key, WebhookKey(0), 10).await.unwrap();
    assert_eq!(all.iter().map(|webhook| webhook.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(store.webhooks(key, all[0].key, 10).await.unwrap().len(), 1);
    assert_eq!(store.webhooks(key, WebhookKey(0), 1).await.unwrap().len(), 1);
    assert!(store.webhook(key, "c").await.unwrap().is_none());
    assert!(store.webhooks(TaskKey(404), WebhookKey(0), 10).await.unwrap().is_empty());

    assert!(store.row(&task.id).await.unwrap().unwrap().watched);
    let (unwatched, _) = make(&store, "ann", "echo", "c", row(1)).await;
    assert!(!store.row(&unwatched).await.unwrap().unwrap().watched);
    let head = store.head(found.key).await.unwrap().unwrap();
    assert!(head.delivery.is_none());
    assert_eq!((head.task_last, head.task_ended_at), (Seq(2), Some(Timestamp(2))));
}

pub(crate) async fn one_webhook_too_many_is_refused_and_leaves_nothing(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, _) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let set =
        |id: &str, version| with_webhook(inbox(key, version, &["x"], working(1, 1)), webhook(id, "https://one", 3));
    store.write(set("b", 3)).await.unwrap();
    let too_many = with_send(set("c", 4), "ann", "echo", "k");
    refused(store.write(too_many).await, &StoreError::TooManyWebhooks { max: 2 });
    assert!(store.find_send(scope("ann", "echo", "k")).await.unwrap().is_none());
    assert_eq!(store.read(key, Seq(4), 100).await.unwrap().len(), 0);
    assert_eq!(store.webhooks(key, WebhookKey(0), 10).await.unwrap().len(), 2);
    // One in the place of another is none too many.
    store.write(set("b", 4)).await.unwrap();
    assert!(store.delete_webhook(key, "a").await.unwrap());
    store.write(set("c", 5)).await.unwrap();

    let none = with_webhook(
        create(&new_task("bob", "echo", "c"), &["1"], row(1)),
        NewWebhook { max: 0, ..webhook("a", "https://one", 0) },
    );
    refused(store.write(none).await, &StoreError::TooManyWebhooks { max: 0 });
    assert_eq!(store.list(crate::build::query("bob")).await.unwrap().total, 0);
}

pub(crate) async fn a_webhook_that_goes_on_keeps_its_place_when_it_is_replaced(fixture: impl Fixture) {
    let store = fixture.open();
    for paused in [false, true] {
        let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
        let first = bury(&store, hook, delivery(1, 1, 10), 11).await;
        let head = prepare(&store, hook, delivery(2, 2, 12)).await;
        assert!(store.replay(first, Timestamp(13)).await.unwrap());
        if paused {
            assert!(store.set_webhook_state(hook, WebhookState::Paused, Timestamp(14)).await.unwrap());
        }
        let set = with_webhook(inbox(key, 3, &[], working(1, 1)), late(webhook("a", "https://two", 3)));
        store.write(set).await.unwrap();
        let replaced = store.webhook(key, "a").await.unwrap().unwrap();
        let state = if paused { WebhookState::Paused } else { WebhookState::Active };
        assert_eq!((replaced.key, replaced.cursor, replaced.late, replaced.state), (hook, Seq(1), false, state));
        assert_eq!(
            (replaced.endpoint.as_str(), replaced.config.as_str()),
            ("https://two", "{\"url\":\"https://two/a\"}")
        );
        let due = store.due_deliveries((Timestamp(0), head), Timestamp(99), 10).await.unwrap();
        let route = WebhookRoute { webhook: hook, owner: "ann".into(), endpoint: "https://two".to_owned() };
        assert_eq!(due.len(), if paused { 1 } else { 2 });
        assert!(due.iter().all(|due| due.route == route), "{due:?}");
        assert!(store.delete_webhook(key, "a").await.unwrap());
    }
}

pub(crate) async fn a_webhook_at_its_end_begins_again_when_it_is_replaced(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let sent = prepare(&store, hook, delivery(1, 1, 10)).await;
    store.outbox(OutboxWrite::Disabled { body: None, delivery: sent, attempt: attempt(11, 410) }).await.unwrap();
    assert_eq!(store.webhook(key, "a").await.unwrap().unwrap().state, WebhookState::Disabled);
    let again = |cursor| with_webhook(inbox(key, 3, &[], working(1, 1)), late(webhook("a", "https://two", cursor)));
    store.write(again(2)).await.unwrap();
    let found = store.webhook(key, "a").await.unwrap().unwrap();
    assert_eq!((found.key, found.cursor, found.late, found.state), (hook, Seq(2), true, WebhookState::Active));

    store.outbox(OutboxWrite::Finished { webhook: hook, cursor: Seq(3) }).await.unwrap();
    let found = store.webhook(key, "a").await.unwrap().unwrap();
    assert_eq!((found.cursor, found.late, found.state), (Seq(3), false, WebhookState::Finished));
    store.write(again(2)).await.unwrap();
    let found = store.webhook(key, "a").await.unwrap().unwrap();
    assert_eq!((found.key, found.cursor, found.late, found.state), (hook, Seq(2), true, WebhookState::Active));
    let head = prepare(&store, hook, delivery(3, 3, 20)).await;
    assert_eq!(next(&store, hook).await.unwrap().key, head);

    // A replay of what it was told before does not count as told again.
    store
        .outbox(OutboxWrite::Dead { body: None, delivery: head, attempt: attempt(21, 500), finished: true })
        .await
        .unwrap();
    store.write(again(2)).await.unwrap();
    assert!(store.replay(head, Timestamp(22)).await.unwrap());
    let taken = OutboxWrite::Delivered { delivery: head, attempt: attempt(23, 200), finished: true, next: None };
    store.outbox(taken).await.unwrap();
    let found = store.webhook(key, "a").await.unwrap().unwrap();
    assert_eq!((found.cursor, found.late, found.state), (Seq(2), true, WebhookState::Active));
}

pub(crate) async fn what_is_under_way_counts_unless_its_webhook_was_set_to_something_else(fixture: impl Fixture) {
    let store = fixture.open();
    let same = webhook("a", "https://one", 0);
    let token = NewWebhook { config: same.config.replace('}', ",\"token\":\"new\"}"), ..same.clone() };
    let path = NewWebhook { config: same.config.replace("/a", "/b"), ..same.clone() };
    let form = NewWebhook { form: 1, ..same.clone() };
    let unreadable = NewWebhook { config: "{".to_owned(), ..same.clone() };
    for (set, any_counts, taken_counts) in [
        (vec![], true, true),
        (vec![same.clone()], true, true),
        (vec![token.clone()], false, true),
        (vec![token.clone(), token.clone(), same.clone()], false, true),
        (vec![path.clone()], false, false),
        (vec![path, same.clone()], false, false),
        (vec![form], false, false),
        (vec![webhook("a", "https://two", 0)], false, false),
        (vec![unreadable.clone()], false, false),
        (vec![unreadable, same.clone(), token], false, false),
    ] {
        for was_taken in [true, false] {
            let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
            let sent = prepare(&store, hook, delivery(1, 1, 10)).await;
            let revision = store.head(hook).await.unwrap().unwrap().webhook.revision;
            for webhook in &set {
                store.write(with_webhook(inbox(key, 3, &[], working(1, 1)), webhook.clone())).await.unwrap();
            }
            let write = match was_taken {
                true => {
                    OutboxWrite::Delivered { delivery: sent, attempt: attempt(11, 200), finished: false, next: None }
                }
                false => OutboxWrite::Dead { delivery: sent, body: None, attempt: attempt(11, 401), finished: false },
            };
            store.outbox(OutboxWrite::IfStill { webhook: hook, revision, write: Box::new(write) }).await.unwrap();
            let counted = store.webhook(key, "a").await.unwrap().unwrap().cursor == Seq(1);
            assert_eq!(counted, if was_taken { taken_counts } else { any_counts }, "{was_taken} {set:?}");
        }
    }
    // What begins again is another one, though it looks the same.
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let revision = store.head(hook).await.unwrap().unwrap().webhook.revision;
    let finished = OutboxWrite::Finished { webhook: hook, cursor: Seq(3) };
    store.outbox(finished.clone()).await.unwrap();
    store.write(with_webhook(inbox(key, 3, &[], working(1, 1)), same)).await.unwrap();
    store.outbox(OutboxWrite::IfStill { webhook: hook, revision, write: Box::new(finished) }).await.unwrap();
    assert_eq!(store.webhook(key, "a").await.unwrap().unwrap().state, WebhookState::Active);
}

pub(crate) async fn what_waits_is_due_when_its_webhook_is_set_again_the_same(fixture: impl Fixture) {
    let store = fixture.open();
    let (key, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let sent = prepare(&store, hook, delivery(1, 1, 1)).await;
    let (due_at, not_before) = (Timestamp(900), Timestamp(900));
    store.outbox(OutboxWrite::Failed { delivery: sent, attempt: attempt(2, 503), due_at, not_before }).await.unwrap();
    store.write(with_webhook(inbox(key, 3, &[], working(1, 1)), webhook("a", "https://one", 0))).await.unwrap();
    assert_eq!(next(&store, hook).await.unwrap().due_at, Timestamp(5));
}

pub(crate) async fn a_direct_reply_goes_to_no_webhook(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let created = with_webhook(create(&task, &["1"], hidden(working(1, 1))), webhook("a", "https://one", 0));
    let key = store.write(created).await.unwrap().key;
    let hook = store.webhook(key, "a").await.unwrap().unwrap().key;
    let head = prepare(&store, hook, delivery(1, 1, 10)).await;
    store.write(owner(key, 1, &["2"], hidden(done(2, 1)))).await.unwrap();
    assert!(store.webhook(key, "a").await.unwrap().is_none());
    assert!(store.delivery(head).await.unwrap().is_none());
    assert!(!store.row(&task.id).await.unwrap().unwrap().watched);
    // Made and ended in one.
    let task = new_task("ann", "echo", "c");
    let created = with_webhook(create(&task, &["1"], hidden(done(1, 1))), webhook("a", "https://one", 0));
    let key = store.write(created).await.unwrap().key;
    assert!(store.webhook(key, "a").await.unwrap().is_none());
    assert!(!store.row(&task.id).await.unwrap().unwrap().watched);
    // One that shows itself at its end is told like any other.
    let created = with_webhook(
        create(&new_task("ann", "echo", "c"), &["1"], hidden(working(1, 1))),
        webhook("a", "https://one", 0),
    );
    let key = store.write(created).await.unwrap().key;
    store.write(owner(key, 1, &["2"], done(2, 1))).await.unwrap();
    assert_eq!(store.active_webhooks(key).await.unwrap().len(), 1);
}

pub(crate) async fn a_deleted_webhook_is_gone_for_good(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let created = with_webhook(create(&task, &["1", "2", "3"], working(1, 1)), webhook("a", "https://one", 0));
    let key = store.write(created).await.unwrap().key;
    let hook = store.webhook(key, "a").await.unwrap().unwrap().key;
    let dead = bury(&store, hook, delivery(1, 1, 10), 11).await;
    let head = prepare(&store, hook, delivery(2, 2, 12)).await;
    assert!(!store.delete_webhook(key, "b").await.unwrap());
    assert!(store.delete_webhook(key, "a").await.unwrap());
    assert!(!store.delete_webhook(key, "a").await.unwrap());
    assert!(store.head(hook).await.unwrap().is_none());
    assert!(store.delivery(dead).await.unwrap().is_none() && store.delivery(head).await.unwrap().is_none());
    assert!(!store.row(&task.id).await.unwrap().unwrap().watched);
    assert_eq!(store.outbox_census().await.unwrap(), switchboard_engine::store::webhooks::OutboxCounts::default());
    drop(store);
    // Neither its key nor those of its deliveries name anything else, not even after a restart.
    let store = fixture.open();
    let (_, other) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let made = prepare(&store, other, delivery(1, 1, 20)).await;
    assert!(other > hook && made > head);
}

pub(crate) async fn webhooks_with_something_to_tell_are_found(fixture: impl Fixture) {
    let store = fixture.open();
    let (quiet, told) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let (_, busy) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let (_, held) = make_watched(&store, "a", "https://one", done(7, 1)).await;
    let (lags, behind) = make_watched(&store, "a", "https://two", parked(1, 9)).await;
    let (ended, at_end) = make_watched(&store, "a", "https://one", done(8, 1)).await;
    bury(&store, told, delivery(1, 3, 10), 11).await;
    bury(&store, at_end, delivery(1, 3, 10), 11).await;
    prepare(&store, busy, delivery(1, 1, 10)).await;
    store.set_webhook_state(held, WebhookState::Paused, Timestamp(12)).await.unwrap();
    let route = |webhook, endpoint: &str| WebhookRoute { webhook, owner: "ann".into(), endpoint: endpoint.to_owned() };

    let lagging = store.lagging_webhooks(WebhookKey(0), 10).await.unwrap();
    assert_eq!(lagging, [route(behind, "https://two"), route(at_end, "https://one")]);
    assert_eq!(store.lagging_webhooks(behind, 10).await.unwrap(), [route(at_end, "https://one")]);
    assert_eq!(store.lagging_webhooks(WebhookKey(0), 1).await.unwrap(), [route(behind, "https://two")]);
    store.write(inbox(quiet, 3, &["4"], working(1, 1))).await.unwrap();
    assert_eq!(store.lagging_webhooks(WebhookKey(0), 1).await.unwrap(), [route(told, "https://one")]);

    assert_eq!(store.active_webhooks(lags).await.unwrap(), [route(behind, "https://two")]);
    assert_eq!(store.overdue_webhooks(Timestamp(7), 10).await.unwrap(), []);
    assert_eq!(store.overdue_webhooks(Timestamp(8), 10).await.unwrap(), [held]);
    assert_eq!(store.overdue_webhooks(Timestamp(9), 10).await.unwrap(), [held, at_end]);
    assert_eq!(store.overdue_webhooks(Timestamp(9), 1).await.unwrap(), [held]);
    store.outbox(OutboxWrite::Finished { webhook: at_end, cursor: Seq(3) }).await.unwrap();
    assert_eq!(store.overdue_webhooks(Timestamp(9), 10).await.unwrap(), [held]);
    assert_eq!(store.lagging_webhooks(behind, 10).await.unwrap(), []);
    assert_eq!(store.active_webhooks(ended).await.unwrap(), []);
}

pub(crate) async fn operators_see_webhooks(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, first) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    let (_, second) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    bury(&store, first, delivery(1, 1, 10), 11).await;
    let sent = prepare(&store, first, delivery(2, 2, 12)).await;
    let next = Some(delivery(3, 3, 13));
    store
        .outbox(OutboxWrite::Delivered { delivery: sent, attempt: attempt(13, 200), finished: false, next })
        .await
        .unwrap();
    store.set_webhook_state(second, WebhookState::Paused, Timestamp(12)).await.unwrap();
    let filter = WebhookFilter { max: 10, ..WebhookFilter::default() };
    let all = store.list_webhooks(filter.clone()).await.unwrap();
    let seen: Vec<_> = all.iter().map(|one| (one.webhook.key, one.delivered, one.dead, one.lags)).collect();
    assert_eq!(seen, [(first, 1, 1, true), (second, 0, 0, true)]);
    let pending = all[0].pending.as_ref().unwrap();
    assert_eq!((pending.first, pending.body.as_ref()), (Seq(3), None));
    assert!(all[1].pending.is_none());
    let keys = async |filter| -> Vec<WebhookKey> {
        store.list_webhooks(filter).await.unwrap().into_iter().map(|one| one.webhook.key).collect()
    };
    assert_eq!(keys(WebhookFilter { max: 1, ..filter.clone() }).await, [first]);
    assert_eq!(keys(WebhookFilter { after: first, ..filter.clone() }).await, [second]);
    assert_eq!(keys(WebhookFilter { state: Some(WebhookState::Paused), ..filter.clone() }).await, [second]);
    assert_eq!(keys(WebhookFilter { task: Some(all[1].webhook.task.clone()), ..filter.clone() }).await, [second]);
    assert_eq!(keys(WebhookFilter { task: Some(TaskId::generate()), ..filter.clone() }).await, []);
    let both = WebhookFilter { task: Some(all[0].webhook.task.clone()), state: Some(WebhookState::Paused), ..filter };
    assert_eq!(keys(both).await, []);
    let newest: Vec<_> = store.deliveries(first, 2).await.unwrap().iter().map(|one| one.first).collect();
    assert_eq!(newest, [Seq(3), Seq(2)]);
    assert_eq!(store.deliveries(first, 10).await.unwrap().len(), 3);
}
