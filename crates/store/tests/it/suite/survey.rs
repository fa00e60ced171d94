//! The tasks of all owners, and the questions that wait.

use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::lineage::{Ancestors, Lineage, Via};
use switchboard_engine::store::survey::{SurveyQuery, WaitingQuery};
use switchboard_engine::store::{RowState, Store, TaskIdentity, TaskRow};

use super::Fixture;
use crate::build::{Writes, create, done, hidden, inbox, make, new_task, parked, row, working};

fn keys(rows: &[TaskRow]) -> Vec<TaskKey> {
    rows.iter().map(|row| row.key).collect()
}

/// Every task that a query leaves, read two at a time.
async fn pages(store: &impl Store, query: SurveyQuery) -> Vec<TaskKey> {
    let mut found = Vec::new();
    let mut query = SurveyQuery { page_size: 2, ..query };
    loop {
        let page = store.survey(query.clone()).await.unwrap();
        assert!(page.tasks.len() <= 2 && (page.next.is_none() || page.tasks.len() == 2));
        found.extend(keys(&page.tasks));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return found,
        }
    }
}

pub(crate) async fn operators_see_tasks_of_all_owners_page_by_page(fixture: impl Fixture) {
    let store = fixture.open();
    let mut made = Vec::new();
    for (owner, agent, row) in [
        ("ann", "echo", done(50, 1)),
        ("bob", "echo", working(40, 1)),
        ("ann", "guide", parked(30, 99)),
        ("bob", "guide", done(20, 1)),
        ("ann", "echo", RowState { state: TaskState::Failed, ..done(10, 1) }),
    ] {
        made.push(make(&store, owner, agent, "c", row).await.1);
    }
    make(&store, "ann", "echo", "c", hidden(done(60, 1))).await;
    let query = SurveyQuery::default;
    let all: Vec<_> = made.iter().rev().copied().collect();
    assert_eq!(pages(&store, query()).await, all, "by creation where nothing is left out");
    let of = |numbers: &[usize]| numbers.iter().map(|number| made[*number]).collect::<Vec<_>>();
    let ann = || SurveyQuery { owner: Some("ann".into()), ..query() };
    assert_eq!(pages(&store, ann()).await, of(&[0, 2, 4]), "else by status");
    let echo = Some(vec!["echo".into(), "never".into()]);
    assert_eq!(pages(&store, SurveyQuery { agents: echo.clone(), ..query() }).await, of(&[0, 1, 4]));
    assert_eq!(pages(&store, SurveyQuery { agents: echo, ..ann() }).await, of(&[0, 4]));
    let state = |state| SurveyQuery { state: Some(state), ..query() };
    assert_eq!(pages(&store, state(TaskState::Completed)).await, of(&[0, 3]));
    assert_eq!(pages(&store, state(TaskState::Canceled)).await, []);
    let (since, before) = (Some(Timestamp(20)), Some(Timestamp(40)));
    assert_eq!(pages(&store, SurveyQuery { since, before, ..query() }).await, of(&[2, 3]));
    assert_eq!(pages(&store, SurveyQuery { via: Some(Via::A2a), ..ann() }).await, of(&[0, 2, 4]));
    for nobody in
        [SurveyQuery { owner: Some("carl".into()), ..query() }, SurveyQuery { agents: Some(vec![]), ..query() }]
    {
        assert_eq!(pages(&store, nobody).await, []);
    }
}

pub(crate) async fn operators_find_tasks_by_way_tree_and_prefix(fixture: impl Fixture) {
    let store = fixture.open();
    let (root_id, root) = make(&store, "ann", "boss", "conversation-1", done(1, 1)).await;
    let (_, text) = make(&store, "bob", "echo", "conversation-2", done(2, 1)).await;
    let append = async |task: &TaskIdentity| store.append(create(task, &["made"], row(3))).await.unwrap().key;
    let scheduled = TaskIdentity {
        lineage: Lineage { via: Via::Cron, ..Lineage::default() },
        ..new_task("ann", "boss", "019a0000-0000-7000-8000-00000000abcd")
    };
    let scheduled_key = append(&scheduled).await;
    let mut below = Vec::new();
    for (id, parent) in [("task %_1", root), ("another", text)] {
        let lineage = Lineage { ancestors: Some(Ancestors { parent, root }), ..Lineage::default() };
        below.push(append(&TaskIdentity { id: id.into(), lineage, ..new_task("bob", "echo", "d") }).await);
    }
    let query = SurveyQuery::default;
    assert_eq!(pages(&store, SurveyQuery { via: Some(Via::Cron), ..query() }).await, [scheduled_key]);
    let via_of_another = SurveyQuery { via: Some(Via::Cron), owner: Some("bob".into()), ..query() };
    assert_eq!(pages(&store, via_of_another).await, []);
    below.reverse();
    assert_eq!(pages(&store, SurveyQuery { tree: Some(root), ..query() }).await, below);
    let prefix = |text: &str| SurveyQuery { prefix: Some(text.to_owned()), ..query() };
    assert_eq!(pages(&store, prefix("conversation")).await, [text, root]);
    assert_eq!(pages(&store, prefix(root_id.as_str())).await, [root]);
    assert_eq!(pages(&store, prefix("task %")).await, [below[1]]);
    for part in ["019a0000", "019a0000-0000-7000-8", "019a0000-0000-7000-8000-00000000abcd"] {
        assert_eq!(pages(&store, prefix(part)).await, [scheduled_key], "{part}");
    }
    assert_eq!(pages(&store, SurveyQuery { owner: Some("bob".into()), ..prefix("conversation") }).await, [text]);
    for none in ["019a00000", "conversation-3", "Conversation", "task 1", "ж"] {
        assert_eq!(pages(&store, prefix(none)).await, [], "{none}");
    }
}

pub(crate) async fn waiting_questions_are_found_oldest_first(fixture: impl Fixture) {
    let store = fixture.open();
    let authorizes = RowState { state: TaskState::AuthRequired, ..parked(20, 99) };
    // An agent that keeps its turn while it asks waits like any other.
    let running = RowState { state: TaskState::InputRequired, ..working(10, 1) };
    let (_, late) = make(&store, "ann", "echo", "c", parked(30, 99)).await;
    let (_, middle) = make(&store, "bob", "guide", "c", authorizes).await;
    let (_, early) = make(&store, "ann", "guide", "c", running).await;
    make(&store, "ann", "echo", "c", working(5, 1)).await;
    make(&store, "ann", "echo", "c", done(5, 1)).await;
    let query = || WaitingQuery { max: 10, ..WaitingQuery::default() };
    let waiting = async |query: WaitingQuery| keys(&store.waiting(query).await.unwrap());
    assert_eq!(waiting(query()).await, [early, middle, late]);
    assert_eq!(waiting(WaitingQuery { max: 2, ..query() }).await, [early, middle]);
    let after = Some((Timestamp(20), middle));
    assert_eq!(waiting(WaitingQuery { after, ..query() }).await, [late]);
    let ann = || WaitingQuery { owner: Some("ann".into()), ..query() };
    assert_eq!(waiting(ann()).await, [early, late]);
    assert_eq!(waiting(WaitingQuery { agents: Some(vec!["guide".into()]), ..query() }).await, [early, middle]);
    assert_eq!(waiting(WaitingQuery { agents: Some(vec!["guide".into()]), ..ann() }).await, [early]);
    assert_eq!(waiting(WaitingQuery { owner: Some("carl".into()), ..query() }).await, []);
    store.write(inbox(late, 1, &["an answer"], working(40, 2))).await.unwrap();
    assert_eq!(waiting(query()).await, [early, middle]);
    // Beside the tasks of some agents, what the server's own have of one owner.
    let (_, own_of_ann) = make(&store, "ann", "~fanout", "c", parked(50, 99)).await;
    make(&store, "bob", "~fanout", "c", parked(60, 99)).await;
    for (agent, own, expected) in [
        ("guide", "ann", &[early, middle, own_of_ann][..]),
        ("nobody", "ann", &[own_of_ann]),
        ("guide", "carl", &[early, middle]),
        ("nobody", "carl", &[]),
    ] {
        let (agents, own) = (Some(vec![agent.into()]), Some(own.into()));
        assert_eq!(waiting(WaitingQuery { agents: agents.clone(), own: own.clone(), ..query() }).await, expected);
        let mut found = pages(&store, SurveyQuery { agents, own, ..SurveyQuery::default() }).await;
        found.reverse();
        assert_eq!(found, expected, "{agent}");
    }
}
