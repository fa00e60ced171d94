//! Turns that begin in the future of their sender: whenever that is dropped, the turn goes on.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;

use crate::kernel::{Kernel, Script, message};

/// Polls a future so many times, each but the first after it was woken, and drops it then.
async fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = Box::pin(future);
    let mut polls = 0;
    poll_fn(move |context| {
        if polls == times {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[test]
fn a_turn_goes_on_whenever_its_sender_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let begun: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let script = Script::new({
        let begun = begun.clone();
        move |turn: Turn, task: TaskHandle| {
            begun.lock().push(task.id().clone());
            async move {
                let yields = match turn.text().as_str() {
                    "at once" => 0,
                    "in two appends" => {
                        task.status("began").await?;
                        50
                    }
                    _ => 3,
                };
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                Ok(task.complete_with("done").await?)
            }
        }
    });
    let kernel = Kernel::open(folder.path(), script.early());
    kernel.run(async {
        let texts = ["at once", "after a few yields", "in two appends"];
        for (text, waits) in texts.into_iter().flat_map(|text| [(text, false), (text, true)]) {
            for times in 0.. {
                let before = begun.lock().len();
                let sent = match waits {
                    true => poll_times(kernel.send_and_wait(message(text)), times).await,
                    false => poll_times(kernel.try_send(message(text)), times).await,
                };
                let sent = sent.map(|sent| sent.unwrap().id().clone());
                let ids = begun.lock()[before..].to_vec();
                if times == 0 {
                    assert_eq!((ids.len(), &sent), (0, &None), "a send that was never polled has done nothing");
                    continue;
                }
                let [id] = ids.as_slice() else { panic!("{text}, dropped after {times} polls: began {ids:?}") };
                // Dropped before its commit, it is committed a little later.
                while kernel.get(id).await.is_err() {
                    tokio::task::yield_now().await;
                }
                if sent.is_some() && waits {
                    assert_eq!(
                        kernel.get(id).await.unwrap().status.state,
                        TaskState::Completed,
                        "{text}, {times} polls"
                    );
                }
                kernel.reach(id, TaskState::Completed).await;
                if let Some(sent) = sent {
                    assert_eq!(sent, *id);
                    break;
                }
            }
        }
    });
    // None of them is left to a driver that is gone: a shutdown has nothing to wait for.
    let count = i64::try_from(begun.lock().len()).unwrap();
    kernel.stop();
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let ended = "SELECT count(*) FROM task WHERE state = 3 AND phase = 4";
    assert_eq!(database.query_row(ended, [], |row| row.get::<_, i64>(0)).unwrap(), count);
}
