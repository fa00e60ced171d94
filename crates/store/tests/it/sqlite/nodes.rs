//! Several nodes of one process on one store: who holds a turn, who may claim it, and who is dead.

use switchboard_engine::Announcement;
use switchboard_engine::ids::{Fence, Seq, TaskKey};
use switchboard_engine::store::{Holder, Phase, RowState, Store, StoreError, TaskHead};
use switchboard_store::{Durability, Options, SqliteStore};

use super::SqliteFixture;
use crate::build::{
    Writes, claim, create, done, inbox, make, new_task, owner, refused, row, scope, with_send, working,
};
use crate::suite::Fixture;

fn two_nodes(fixture: &SqliteFixture) -> (SqliteStore, SqliteStore) {
    let options = Options { durability: Durability::Process, ..Options::default() };
    let mut nodes = SqliteStore::open_nodes(fixture.directory.path(), options, 2).unwrap();
    let second = nodes.pop().unwrap();
    (nodes.pop().unwrap(), second)
}

#[tokio::test]
async fn a_turn_is_held_by_the_node_that_claimed_it_and_no_other_takes_it_while_that_lives() {
    let fixture = SqliteFixture::new();
    let (first, second) = two_nodes(&fixture);
    let (id, key) = make(&first, "ann", "echo", "c", working(1, 1)).await;
    let holders = async || {
        let holder = async |store: &SqliteStore| store.row(&id).await.unwrap().unwrap().holder;
        (holder(&first).await, holder(&second).await)
    };
    assert_eq!(holders().await, (Holder::This, Holder::Other));
    let heads = second.heads(vec![key, TaskKey(key.0 + 1)]).await.unwrap();
    let head = TaskHead { key, last_seq: Seq(1), fence: Fence(1), phase: Phase::Running, holder: Holder::Other };
    assert_eq!(heads, [head], "one that is not there is left out");
    // Messages come from any node, and change nothing about who holds it.
    second.write(inbox(key, 1, &["a message"], working(1, 1))).await.unwrap();
    assert_eq!(holders().await, (Holder::This, Holder::Other));
    refused(second.write(claim(key, 2, &[], working(1, 2))).await, &StoreError::Held);
    // The holder may claim again, which fences its own earlier turn.
    first.write(claim(key, 2, &[], working(1, 2))).await.unwrap();
    refused(first.write(owner(key, 1, &["late"], working(2, 1))).await, &StoreError::Fenced);
    // A turn that waits has no holder: the first claim wins.
    first.write(owner(key, 2, &["a question"], RowState { phase: Phase::Parked, ..working(2, 2) })).await.unwrap();
    assert_eq!(holders().await, (Holder::Unheld, Holder::Unheld));
    second.write(claim(key, 3, &["an answer"], working(3, 3))).await.unwrap();
    assert_eq!(holders().await, (Holder::Other, Holder::This));
    second.write(owner(key, 3, &["end"], done(4, 3))).await.unwrap();
    assert_eq!(holders().await, (Holder::Unheld, Holder::Unheld));
}

#[tokio::test]
async fn turns_of_a_dead_node_are_unfinished_for_the_others_and_its_writes_are_refused() {
    let fixture = SqliteFixture::new();
    let (first, second) = two_nodes(&fixture);
    let keys = async |store: &SqliteStore| {
        let rows = store.unfinished(TaskKey(0), 10).await.unwrap();
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    let (of_first, first_key) = make(&first, "ann", "echo", "c", working(1, 1)).await;
    let (_, second_key) = make(&second, "ann", "echo", "c", working(1, 1)).await;
    let (_, queued) = make(&second, "ann", "echo", "c", row(1)).await;
    assert_eq!((keys(&first).await, keys(&second).await), (vec![queued], vec![queued]));
    first.close().await.unwrap();
    refused(first.append(create(&new_task("ann", "echo", "c"), &["late"], row(1))).await, &StoreError::Closed);
    refused(first.write(owner(first_key, 1, &["late"], working(2, 1))).await, &StoreError::Closed);
    assert_eq!(second.row(&of_first).await.unwrap().unwrap().holder, Holder::Dead);
    assert_eq!(keys(&second).await, [first_key, queued]);
    second.write(claim(first_key, 1, &["recovered"], working(2, 2))).await.unwrap();
    assert_eq!(keys(&second).await, [queued]);
    drop(first);
    // The last one closes the store, and what both held is free for the next process.
    second.close().await.unwrap();
    drop(second);
    let next = fixture.open();
    assert_eq!(keys(&next).await, [first_key, second_key, queued]);
    assert_eq!(next.row(&of_first).await.unwrap().unwrap().holder, Holder::Dead);
    assert!(!next.is_shared(), "one node alone has no other to tell");
}

#[tokio::test]
async fn a_node_that_is_dropped_is_dead_and_numbers_are_never_used_again() {
    let fixture = SqliteFixture::new();
    let (first, second) = two_nodes(&fixture);
    let (id, key) = make(&second, "ann", "echo", "c", working(1, 1)).await;
    drop(second);
    assert_eq!(first.row(&id).await.unwrap().unwrap().holder, Holder::Dead);
    drop(first);
    // The next start must not take the number of the second node of the last one.
    let next = fixture.open();
    assert_eq!(next.row(&id).await.unwrap().unwrap().holder, Holder::Dead);
    next.write(claim(key, 1, &[], working(1, 2))).await.unwrap();
    assert_eq!(next.row(&id).await.unwrap().unwrap().holder, Holder::This);
}

#[tokio::test]
async fn a_node_hears_what_others_announce_and_not_itself() {
    let fixture = SqliteFixture::new();
    let (first, second) = two_nodes(&fixture);
    assert!(first.is_shared() && second.is_shared());
    let (first, second) = (first.bus().unwrap(), second.bus().unwrap());
    let mut heard = first.listen();
    first.announce(TaskKey(1));
    second.announce(TaskKey(2));
    assert_eq!(heard.next().await, Some(Announcement::Task(TaskKey(2))));
    for _ in 0..10_000 {
        second.announce(TaskKey(3));
    }
    assert_eq!(heard.next().await, Some(Announcement::Any), "some were lost, and it is told so");
}

#[tokio::test]
async fn a_key_that_one_node_has_committed_is_known_to_the_other() {
    let fixture = SqliteFixture::new();
    let (first, second) = two_nodes(&fixture);
    for key in ["k1", "k2"] {
        for node in [&first, &second] {
            assert!(node.find_send(scope("ann", "echo", key)).await.unwrap().is_none(), "{key}");
        }
        let send = || with_send(create(&new_task("ann", "echo", "c"), &["1"], row(1)), "ann", "echo", key);
        first.write(send()).await.unwrap();
        assert!(second.find_send(scope("ann", "echo", key)).await.unwrap().is_some(), "{key}");
        refused(second.write(send()).await, &StoreError::KeyTaken);
    }
}
