//! Lists, totals, pages, conversations.

use switchboard_a2a::{TaskId, TaskState, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{ListFilter, ListPage, ListQuery, LoadedTask, Retention, Store};

use super::Fixture;
use crate::build::{
    Writes, conversation, create, done, filtered, hidden, inbox, make, new_task, owner, page, parked, query, row,
    with_snapshot, working,
};

/// All tasks of a page.
async fn tasks(store: &impl Store, page: &ListPage) -> Vec<LoadedTask> {
    let tasks = store.load_some(keys(page), usize::MAX).await.unwrap();
    let places: Vec<_> = tasks.iter().map(|task| (task.row.state.status_at, task.row.key)).collect();
    assert_eq!(places, page.places);
    tasks
}

fn keys(page: &ListPage) -> Vec<TaskKey> {
    page.places.iter().map(|(_, key)| *key).collect()
}

async fn ids(store: &impl Store, page: &ListPage) -> Vec<TaskId> {
    tasks(store, page).await.into_iter().map(|task| task.row.task.id).collect()
}

pub(crate) async fn a_list_shows_its_owners_tasks_newest_first(fixture: impl Fixture) {
    let store = fixture.open();
    let (old, _) = make(&store, "ann", "echo", "c", done(10, 1)).await;
    let (new, _) = make(&store, "ann", "guide", "d", row(30)).await;
    let (middle, middle_key) = make(&store, "ann", "echo", "d", working(20, 1)).await;
    make(&store, "bob", "echo", "c", row(40)).await;
    let page = store.list(query("ann")).await.unwrap();
    assert_eq!(
        (ids(&store, &page).await, page.total, page.next),
        (vec![new.clone(), middle.clone(), old.clone()], 3, None)
    );

    store.write(owner(middle_key, 1, &["end"], done(50, 1))).await.unwrap();
    let page = store.list(query("ann")).await.unwrap();
    assert_eq!((ids(&store, &page).await, page.total), (vec![middle, new, old], 3));
    let none = store.list(query("eve")).await.unwrap();
    assert_eq!((none.places.len(), none.total, none.next), (0, 0, None));
}

pub(crate) async fn filters_narrow_page_and_total(fixture: impl Fixture) {
    let store = fixture.open();
    for at in 0..6 {
        let (agent, context) = (if at % 2 == 0 { "echo" } else { "guide" }, if at < 3 { "c" } else { "d" });
        make(&store, "ann", agent, context, if at < 4 { done(at, 1) } else { row(at) }).await;
        make(&store, "bob", agent, context, done(at, 1)).await;
    }
    let cases = [
        (ListQuery { agents: Some(vec!["echo".into()]), ..query("ann") }, vec![4, 2, 0]),
        (ListQuery { agents: Some(vec!["unknown".into()]), ..query("ann") }, vec![]),
        (ListQuery { agents: Some(Vec::new()), ..query("ann") }, vec![]),
        (ListQuery { agents: Some(vec!["echo".into(), "guide".into()]), ..query("ann") }, vec![5, 4, 3, 2, 1, 0]),
        (filtered("ann", ListFilter { state: Some(TaskState::Submitted), ..page() }), vec![5, 4]),
        (filtered("ann", ListFilter { context: Some("c".into()), ..page() }), vec![2, 1, 0]),
        (filtered("ann", ListFilter { context: Some("nowhere".into()), ..page() }), vec![]),
        (filtered("ann", ListFilter { since: Some(Timestamp(3)), ..page() }), vec![5, 4, 3]),
        (filtered("ann", ListFilter { context: Some("d".into()), since: Some(Timestamp(4)), ..page() }), vec![5, 4]),
        (
            ListQuery {
                agents: Some(vec!["echo".into(), "unknown".into()]),
                ..filtered("ann", ListFilter { context: Some("c".into()), ..page() })
            },
            vec![2, 0],
        ),
        (
            filtered("ann", ListFilter { context: Some("d".into()), state: Some(TaskState::Completed), ..page() }),
            vec![3],
        ),
        (
            ListQuery {
                agents: Some(vec!["guide".into()]),
                ..filtered("ann", ListFilter { state: Some(TaskState::Completed), since: Some(Timestamp(2)), ..page() })
            },
            vec![3],
        ),
    ];
    for (query, expected) in cases {
        let page = store.list(query.clone()).await.unwrap();
        let times: Vec<_> = page.places.iter().map(|(at, _)| at.0).collect();
        assert_eq!((times, page.total), (expected.clone(), expected.len() as u64), "{query:?}");
        assert!(tasks(&store, &page).await.iter().all(|task| task.row.task.owner == "ann".into()));
    }
}

pub(crate) async fn pages_cover_everything_once(fixture: impl Fixture) {
    let store = fixture.open();
    for number in 0..25 {
        // Several tasks share a time, across and within groups.
        let agent = ["echo", "guide", "poet"][number % 3];
        let at = i64::try_from(number / 5).unwrap();
        make(&store, "ann", agent, "c", if number % 4 == 0 { row(at) } else { done(at, 1) }).await;
    }
    let filters = [
        query("ann"),
        filtered("ann", ListFilter { context: Some("c".into()), ..page() }),
        filtered("ann", ListFilter { since: Some(Timestamp(0)), ..page() }),
    ];
    for filter in filters {
        let whole = store.list(filter.clone()).await.unwrap();
        assert_eq!((whole.places.len(), whole.total), (25, 25));
        assert!(whole.places.is_sorted_by(|left, right| left > right), "newest first, larger key first: {whole:?}");
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let portion = ListFilter { after, page_size: 4, ..filter.filter.clone() };
            let page = store.list(filtered("ann", portion)).await.unwrap();
            assert_eq!(page.total, 25);
            seen.extend(ids(&store, &page).await);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids(&store, &whole).await);
    }
    let exact = store.list(filtered("ann", ListFilter { page_size: 25, ..page() })).await.unwrap();
    assert_eq!((exact.places.len(), exact.next), (25, None));
}

pub(crate) async fn hidden_tasks_are_not_listed(fixture: impl Fixture) {
    let store = fixture.open();
    make(&store, "ann", "echo", "c", hidden(done(1, 1))).await;
    let (id, key) = make(&store, "ann", "echo", "c", hidden(working(2, 1))).await;
    for query in [query("ann"), filtered("ann", ListFilter { context: Some("c".into()), ..page() })] {
        let page = store.list(query).await.unwrap();
        assert_eq!((page.places.len(), page.total), (0, 0));
    }
    assert!(store.context(conversation("ann"), 9).await.unwrap().is_empty());
    assert!(store.load(&id).await.unwrap().unwrap().row.state.hidden);

    store.write(owner(key, 1, &["shows itself"], working(3, 1))).await.unwrap();
    for query in [query("ann"), filtered("ann", ListFilter { context: Some("c".into()), ..page() })] {
        let page = store.list(query).await.unwrap();
        assert_eq!((ids(&store, &page).await, page.total), (vec![id.clone()], 1));
    }
}

pub(crate) async fn a_list_carries_what_a_load_would(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.write(with_snapshot(create(&task, &["1"], working(1, 1)), "as of 1")).await.unwrap().key;
    store.write(owner(key, 1, &["2", "3"], parked(2, 100))).await.unwrap();
    let page = store.list(query("ann")).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    let listed = tasks(&store, &page).await;
    assert_eq!(format!("{listed:?}"), format!("{:?}", [loaded]));
    assert_eq!((listed[0].events[0].count, listed[0].size()), (2, "as of 1".len() + "2\n3".len()));
}

pub(crate) async fn a_page_is_loaded_in_portions(fixture: impl Fixture) {
    let store = fixture.open();
    let large = "x".repeat(1_000);
    for at in 0..10 {
        let write = create(&new_task("ann", "echo", "c"), &[&large], done(at, 1));
        store.write(if at % 2 == 0 { with_snapshot(write, &large) } else { write }).await.unwrap();
    }
    let mut left = keys(&store.list(query("ann")).await.unwrap());
    for (max_bytes, expected) in [(0, 1), (999, 1), (1_000, 2), (2_500, 3), (usize::MAX, 3)] {
        let some = store.load_some(left.clone(), max_bytes).await.unwrap();
        assert_eq!(some.len(), expected, "{max_bytes} bytes");
        let before_last: usize = some.iter().rev().skip(1).map(LoadedTask::size).sum();
        assert!(before_last <= max_bytes, "at most one goes beyond {max_bytes} bytes: {before_last}");
        let loaded: Vec<_> = some.iter().map(|task| task.row.key).collect();
        assert_eq!(loaded, left[..expected]);
        left.drain(..expected);
    }
    assert!(left.is_empty() && store.load_some(left, usize::MAX).await.unwrap().is_empty());
}

pub(crate) async fn tasks_that_are_gone_are_left_out(fixture: impl Fixture) {
    let store = fixture.open();
    for at in 0..6 {
        make(&store, "ann", "echo", "c", done(at, 1)).await;
    }
    let keys = keys(&store.list(query("ann")).await.unwrap());
    let retention =
        Retention { ended_before: Timestamp(3), max_tasks: 100, max_bytes: u64::MAX, hold_since: Timestamp(i64::MAX) };
    assert_eq!(store.evict(retention, 10).await.unwrap(), 3);
    let asked: Vec<_> = keys.iter().rev().copied().collect();
    let some = store.load_some(asked.clone(), 0).await.unwrap();
    assert_eq!(some.iter().map(|task| task.row.key).collect::<Vec<_>>(), [keys[2]], "the first that is there");
    assert_eq!(store.load_some(asked.clone(), usize::MAX).await.unwrap().len(), 3);
    assert!(store.load_some(asked[..3].to_vec(), usize::MAX).await.unwrap().is_empty());
}

pub(crate) async fn a_conversation_is_found_newest_first(fixture: impl Fixture) {
    let store = fixture.open();
    let (first, first_key) = make(&store, "ann", "echo", "c", row(1)).await;
    let (second, _) = make(&store, "ann", "echo", "c", done(2, 1)).await;
    make(&store, "ann", "guide", "c", row(3)).await;
    make(&store, "bob", "echo", "c", row(4)).await;
    make(&store, "ann", "echo", "d", row(5)).await;
    let found = |max| store.context(conversation("ann"), max);
    let names =
        |rows: Vec<switchboard_engine::store::TaskRow>| rows.into_iter().map(|row| row.task.id).collect::<Vec<_>>();
    assert_eq!(names(found(9).await.unwrap()), [second.clone(), first.clone()]);
    assert_eq!(names(found(1).await.unwrap()), std::slice::from_ref(&second));
    store.write(inbox(first_key, 1, &["x"], done(9, 1))).await.unwrap();
    assert_eq!(names(found(9).await.unwrap()), [first, second]);
}

pub(crate) async fn the_newest_note_of_a_conversation_is_found(fixture: impl Fixture) {
    let store = fixture.open();
    let noted = || store.noted(conversation("ann"));
    assert_eq!(noted().await.unwrap(), None);
    let (_, first) = make(&store, "ann", "echo", "c", row(1)).await;
    let (_, second) = make(&store, "ann", "echo", "c", row(2)).await;
    let (_, other) = make(&store, "ann", "guide", "c", row(3)).await;
    for number in 4..30 {
        make(&store, "ann", "echo", "c", row(number)).await;
    }
    let note = |key, version, state, text: &str| {
        let append = inbox(key, version, &["x"], state);
        store.write(switchboard_engine::store::Append { note: Some(text.to_owned()), ..append })
    };
    note(other, 1, row(3), "another agent's").await.unwrap();
    assert_eq!(noted().await.unwrap(), None);
    note(first, 1, row(1), "1").await.unwrap();
    assert_eq!(noted().await.unwrap().as_deref(), Some("1"), "whatever is newer has noted nothing");
    note(second, 1, done(40, 1), "2").await.unwrap();
    assert_eq!(noted().await.unwrap().as_deref(), Some("2"));
    store.write(inbox(first, 2, &["x"], row(1))).await.unwrap();
    note(first, 3, done(41, 1), "3").await.unwrap();
    assert_eq!(noted().await.unwrap().as_deref(), Some("3"), "replaced, and kept by appends without one");
    assert_eq!(store.noted(conversation("bob")).await.unwrap(), None);
}
