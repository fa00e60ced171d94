//! Writes that break in the middle of their transaction, as those of a process that is killed: nothing of them is left.

use bytes::Bytes;
use switchboard_a2a::Timestamp;
use switchboard_engine::store::feed::Position;
use switchboard_engine::store::hub::{Advance, HealthStep, HubStore, PutRegistration};
use switchboard_engine::store::{Store, StoreError};
use switchboard_store::SqliteStore;

use super::SqliteFixture;
use crate::suite::Fixture;
use crate::suite::feed::line;
use crate::suite::hub::{job, page};

/// Lines of the journal come last in their transactions.
const BREAK: &str = "CREATE TRIGGER broken BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'as ordered'); END";
const MEND: &str = "DROP TRIGGER broken";

/// How many sums, jobs, registrations and lines of the journal there are.
async fn count(store: &SqliteStore) -> [usize; 4] {
    let sums = store.health(HealthStep::Minute, Timestamp(0)).await.unwrap().len();
    let jobs: u64 = store.owed_jobs().await.unwrap().iter().map(|(_, count)| count).sum();
    let registrations = store.registrations("agent", "", 9).await.unwrap().len();
    let rows = store.read_all(Position::default(), 100, usize::MAX).await.unwrap().rows.len();
    [sums, usize::try_from(jobs).unwrap(), registrations, rows]
}

#[tokio::test]
async fn a_page_that_breaks_leaves_neither_state_nor_lines_and_is_written_once_after_that() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let fence = store.take_consumer("projector").await.unwrap().fence;
    fixture.tamper(BREAK);
    let broken = store.advance(page(fence, 5)).await;
    assert!(matches!(broken, Err(StoreError::Failed(_))), "{broken:?}");
    assert_eq!(count(&store).await, [0; 4]);
    drop(store);

    let store = fixture.open();
    let taken = store.take_consumer("projector").await.unwrap();
    assert_eq!((taken.cursor, taken.state.len()), (None, 0), "an alert that it has decided has not fired");
    fixture.tamper(MEND);
    assert!(store.advance(page(taken.fence, 5)).await.unwrap());
    assert!(!store.advance(page(taken.fence, 5)).await.unwrap(), "once");
    assert_eq!(count(&store).await, [1, 1, 0, 1]);
    drop(store);
    let store = fixture.open();
    let taken = store.take_consumer("projector").await.unwrap();
    assert_eq!((taken.cursor, &taken.state[..]), (page(taken.fence, 5).cursor, b"state 5".as_slice()));
    assert_eq!(count(&store).await, [1, 1, 0, 1]);
}

#[tokio::test]
async fn a_registration_that_breaks_leaves_neither_itself_nor_its_job() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let put = |expected_version| PutRegistration {
        kind: "agent".to_owned(),
        name: "far".to_owned(),
        expected_version,
        owner: "ann".into(),
        at: Timestamp(5),
        body: Some(Bytes::from_static(b"{}")),
        job: Some(job("far", 10)),
        journal: vec![line("audit.agents.add", 5, "{}")],
    };
    fixture.tamper(BREAK);
    let broken = store.put_registration(put(0)).await;
    assert!(matches!(broken, Err(StoreError::Failed(_))), "{broken:?}");
    assert_eq!(count(&store).await, [0; 4]);
    drop(store);

    let store = fixture.open();
    assert_eq!(count(&store).await, [0; 4]);
    fixture.tamper(MEND);
    assert_eq!(store.put_registration(put(0)).await.unwrap(), 1, "no version is lost");
    assert_eq!(count(&store).await, [0, 1, 1, 1]);
    // One that breaks later leaves what there was.
    fixture.tamper(BREAK);
    assert!(store.put_registration(put(1)).await.is_err());
    drop(store);
    let store = fixture.open();
    assert_eq!(store.registrations("agent", "", 9).await.unwrap()[0].version, 1);
    assert_eq!(count(&store).await, [0, 1, 1, 1]);
    // A page beside it is refused as a whole, too.
    let fence = store.take_consumer("projector").await.unwrap().fence;
    let without_lines = Advance { journal: Vec::new(), ..page(fence, 7) };
    assert!(store.advance(without_lines).await.unwrap(), "nothing else is broken");
}
