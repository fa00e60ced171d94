//! Listing: what a page holds, and how little of it is in memory at once.

use std::time::Duration;

use switchboard_a2a::TaskState;
use switchboard_engine::*;

use crate::faults::Faults;
use crate::kernel::{Kernel, Script, answer_task};

fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text().starts_with("hold") {
            task.working().await?;
            task.canceled().await;
            return Ok(());
        }
        task.text(turn.text()).await?;
        Ok(task.complete_with("done").await?)
    })
}

fn page(size: usize) -> ListFilter {
    ListFilter { page_size: size, ..ListFilter::default() }
}

async fn list(kernel: &Kernel, list: ListFilter) -> TaskPage {
    kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap()
}

async fn all(mut listing: TaskPage) -> Vec<TaskPageEntry> {
    let mut found = Vec::new();
    while let Some(listed) = listing.next().await.unwrap() {
        found.push(listed);
    }
    found
}

#[test]
fn a_page_of_large_tasks_is_never_in_memory_as_a_whole() {
    const LARGE: usize = 2 << 20;
    const TASKS: usize = 6;
    let (folder, faults) = (tempfile::tempdir().unwrap(), Faults::default());
    let kernel = Kernel::with_faults(folder.path(), script(), Settings::default(), &faults);
    kernel.run(async {
        for _ in 0..TASKS {
            answer_task(&kernel.send(&"x".repeat(LARGE)).await).await;
        }
        // The message is in the history, and the agent has given it back as an artifact.
        let task_bytes = 2 * LARGE + 10_000;
        let (mut listing, mut read) = (list(&kernel, page(100)).await, 0);
        listing.history = Some(0);
        while let Some(listed) = listing.next().await.unwrap() {
            assert!(listed.task.history.is_empty() && listed.task.artifacts.is_empty());
            read += 1;
        }
        assert_eq!((read, listing.total), (TASKS, TASKS as u64));
        let most = faults.most_listed_bytes();
        assert!(most > 2 * LARGE, "the bytes are counted: {most}");
        assert!(most <= task_bytes + (1 << 20), "one large task and a portion at most: {most}");
    });
}

#[test]
fn a_page_of_small_tasks_costs_one_trip() {
    let (folder, faults) = (tempfile::tempdir().unwrap(), Faults::default());
    let kernel = Kernel::with_faults(folder.path(), script(), Settings::default(), &faults);
    kernel.run(async {
        for number in 0..60 {
            answer_task(&kernel.send(&format!("task {number}")).await).await;
        }
        let listing = list(&kernel, page(50)).await;
        let (next, total) = (listing.next_page, listing.total);
        let listed = all(listing).await;
        assert_eq!((listed.len(), total, faults.portions()), (50, 60, 0));
        assert_eq!(next, Some(listed[49].place));
        // A page that ends earlier goes on in the same way.
        let rest = all(list(&kernel, ListFilter { after: Some(listed[20].place), ..page(50) }).await).await;
        assert_eq!((rest.len(), rest[0].place), (39, listed[21].place));
    });
}

#[test]
fn as_much_of_a_task_is_read_as_was_asked_for_whether_it_has_ended_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), script());
    kernel.run(async {
        let ended = answer_task(&kernel.send("go").await).await;
        let held = kernel.send("hold").await;
        kernel.reach(held.id(), TaskState::Working).await;
        let asked = [(true, None), (true, Some(1)), (false, Some(0)), (false, None), (true, Some(0))];
        for (artifacts, history) in asked {
            let mut listing = list(&kernel, page(10)).await;
            (listing.artifacts, listing.history) = (artifacts, history);
            let listed = all(listing).await;
            for (listed, id) in listed.iter().zip([held.id(), &ended.id]) {
                let mut expected = kernel.get(id).await.unwrap();
                if !artifacts {
                    expected.artifacts.clear();
                }
                let surplus = history.map_or(0, |wanted| expected.history.len().saturating_sub(wanted));
                expected.history.drain(..surplus);
                assert_eq!(listed.task, expected, "artifacts: {artifacts}, history: {history:?}");
            }
            assert_eq!(listed.len(), 2);
        }
        assert_eq!(kernel.get(&ended.id).await.unwrap().artifacts.len(), 1);
    });
}

#[test]
fn a_task_that_goes_on_while_a_large_page_is_read_is_shown_as_it_is_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { retention_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script(), settings);
    kernel.run(async {
        let oldest = answer_task(&kernel.send("go").await).await;
        while kernel.engine.tasks_in_memory() > 0 {
            tokio::task::yield_now().await;
        }
        // Smaller tasks come with their page, as they are then.
        let held = kernel.send(&format!("hold{}", " ".repeat(100_000))).await;
        kernel.reach(held.id(), TaskState::Working).await;
        let working = list(&kernel, ListFilter { state: Some(TaskState::Working), ..page(10) }).await;
        let whole = list(&kernel, page(10)).await;
        assert_eq!((working.total, whole.total), (1, 2));

        kernel.while_time_passes(kernel.cancel(held.id())).await.unwrap();
        kernel.clock.advance(Duration::from_secs(1));
        kernel.engine.sweep().await;
        assert!(matches!(kernel.get(&oldest.id).await, Err(Error::TaskNotFound(_))), "evicted in the meantime");
        assert!(all(working).await.is_empty(), "who asks for working tasks gets no other");
        let whole = all(whole).await;
        assert_eq!(whole.len(), 1);
        assert_eq!((&whole[0].task.id, whole[0].task.status.state), (held.id(), TaskState::Canceled));
    });
}
