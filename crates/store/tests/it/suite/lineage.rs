//! Child tasks: what their rows say of where they come from, and how they are found.

use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::lineage::{Ancestors, Lineage, TreeLimits, Via};
use switchboard_engine::store::{Store, StoreError, TaskIdentity, TaskRow};

use super::Fixture;
use crate::build::{Writes, create, done, make, new_task, owner, parked, row, working};

fn keys(rows: Vec<TaskRow>) -> Vec<TaskKey> {
    rows.into_iter().map(|row| row.key).collect()
}

/// A task of an agent that the turn of another one has started.
fn child(agent: &str, parent: TaskKey, root: TaskKey) -> TaskIdentity {
    let lineage = Lineage { ancestors: Some(Ancestors { parent, root }), payer: Some("ann".into()), via: Via::Api };
    TaskIdentity { lineage, ..new_task("~boss@ann", agent, "c") }
}

pub(crate) async fn a_task_says_where_it_comes_from(fixture: impl Fixture) {
    let store = fixture.open();
    let (root_id, root) = make(&store, "ann", "boss", "c", working(1, 1)).await;
    let task = child("helper", root, root);
    let key = store.append(create(&task, &["made"], working(2, 1))).await.unwrap().key;
    let grandchild = child("helper", key, root);
    store.append(create(&grandchild, &["made"], working(3, 1))).await.unwrap();
    store.write(owner(key, 1, &["end"], done(4, 1))).await.unwrap();
    drop(store);
    let store = fixture.open();
    for task in [task, grandchild] {
        assert_eq!(store.row(&task.id).await.unwrap().unwrap().task, task);
    }
    assert_eq!(store.row(&root_id).await.unwrap().unwrap().task.lineage, Lineage::default());
}

pub(crate) async fn live_children_are_found_by_their_parent(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, root) = make(&store, "ann", "boss", "c", working(1, 1)).await;
    let (_, other) = make(&store, "ann", "boss", "c", working(1, 1)).await;
    let mut made = Vec::new();
    for row in [working(2, 1), parked(2, 9), done(2, 1), row(2)] {
        let child = child("helper", root, root);
        made.push(store.append(create(&child, &["made"], row)).await.unwrap().key);
    }
    for (parent, root) in [(made[0], root), (other, other)] {
        store.append(create(&child("helper", parent, root), &["made"], working(3, 1))).await.unwrap();
    }
    let live = [made[0], made[1], made[3]];
    assert_eq!(keys(store.children(root, TaskKey(0), 10).await.unwrap()), live);
    assert_eq!(keys(store.children(root, TaskKey(0), 2).await.unwrap()), live[..2]);
    assert_eq!(keys(store.children(root, live[1], 10).await.unwrap()), live[2..]);
    assert_eq!(keys(store.children(made[3], TaskKey(0), 10).await.unwrap()), []);
    store.write(owner(made[0], 1, &["end"], done(4, 1))).await.unwrap();
    assert_eq!(keys(store.children(root, TaskKey(0), 10).await.unwrap()), live[1..]);
}

pub(crate) async fn the_last_agent_of_a_conversation_is_that_of_its_newest_root(fixture: impl Fixture) {
    let store = fixture.open();
    let last = async |owner: &str, context: &str| {
        store.last_agent(owner.into(), context.into()).await.unwrap().map(|agent| agent.as_str().to_owned())
    };
    assert_eq!(last("ann", "c").await, None);
    let (_, first) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    make(&store, "ann", "guide", "c", done(2, 1)).await;
    make(&store, "ann", "probe", "d", done(3, 1)).await;
    make(&store, "bob", "probe", "c", done(4, 1)).await;
    make(&store, "ann", "probe", "c", crate::build::hidden(done(5, 1))).await;
    let lineage = Lineage { ancestors: Some(Ancestors { parent: first, root: first }), ..Lineage::default() };
    let fanned_out = TaskIdentity { lineage, ..new_task("ann", "probe", "c") };
    store.append(create(&fanned_out, &["made"], done(6, 1))).await.unwrap();
    assert_eq!(last("ann", "c").await.as_deref(), Some("guide"));
    store.write(owner(first, 1, &["end"], done(7, 1))).await.unwrap();
    assert_eq!(last("ann", "c").await.as_deref(), Some("echo"), "the one with the newest status");
    assert_eq!(last("ann", "d").await.as_deref(), Some("probe"));
    assert_eq!(last("carl", "c").await, None);
}

pub(crate) async fn a_tree_is_read_upwards_and_as_a_whole_and_is_limited(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, root) = make(&store, "ann", "boss", "c", working(1, 1)).await;
    let (_, other) = make(&store, "ann", "boss", "c", working(1, 1)).await;
    let limited = async |parent: TaskKey, max_children: usize, max_tree: usize| {
        let mut append = create(&child("helper", parent, root), &["made"], working(2, 1));
        append.sides.tree = Some(TreeLimits { max_children, max_tree });
        store.append(append).await.map(|appended| appended.key)
    };
    let first = limited(root, 2, 9).await.unwrap();
    let second = limited(root, 2, 9).await.unwrap();
    assert!(matches!(limited(root, 2, 9).await, Err(StoreError::TreeFull { max: 2, .. })));
    let below = limited(first, 2, 4).await.unwrap();
    assert!(
        matches!(limited(second, 2, 4).await, Err(StoreError::TreeFull { max: 4, .. })),
        "with the root it is four"
    );
    store.write(owner(second, 1, &["end"], done(4, 1))).await.unwrap();
    assert_eq!(keys(store.ancestors(below, 10).await.unwrap()), [below, first, root]);
    assert_eq!(keys(store.ancestors(below, 2).await.unwrap()), [below, first]);
    assert_eq!(keys(store.tree(root, TaskKey(0), 10).await.unwrap()), [first, second, below], "ended ones too");
    assert_eq!(keys(store.tree(root, first, 1).await.unwrap()), [second]);
    assert_eq!(keys(store.tree(other, TaskKey(0), 10).await.unwrap()), []);
}
