//! Webhooks that are set while something else happens to their task or their caller.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::store::webhooks::{NewWebhook, WebhookStore};
use switchboard_engine::store::{Retention, Store};
use switchboard_engine::*;
use switchboard_store::SqliteStore;
use tokio::sync::mpsc;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: Duration = Duration::from_secs(300);

fn webhook() -> NewWebhook {
    NewWebhook {
        id: "w".to_owned(),
        config: "{}".to_owned(),
        form: 0,
        endpoint: "https://there.test".to_owned(),
        cursor: Seq(0),
        late: false,
        max: 10,
        at: Timestamp(1_800_000_000_000),
    }
}

/// A kernel whose agent completes, or asks if its text says so; also its store, without faults.
fn kernel(folder: &std::path::Path, faults: &Faults) -> (Kernel, Arc<SqliteStore>) {
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "ask" {
            task.ask("well?").await?;
        }
        Ok(task.complete().await?)
    });
    let mut opened = None;
    let kernel = Kernel::with(folder, script, Settings::default(), |store| {
        let store = Arc::new(store);
        opened = Some(Arc::clone(&store));
        Arc::new(FaultyStore { store, hooks: faults.clone() })
    });
    (kernel, opened.unwrap())
}

async fn set(engine: Engine, id: TaskId) -> Result<(), Error> {
    engine.set_webhook(&Address::Root, &Caller::local(), &id, webhook()).await
}

#[test]
fn the_outbox_hears_of_a_webhook_whose_caller_disconnected() {
    for text in ["complete", "ask"] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let (kernel, store) = kernel(folder.path(), &faults);
        kernel.run(async {
            let sent = kernel.send(text).await;
            answer_task(&sent).await;
            let (told, mut hears) = mpsc::unbounded_channel();
            kernel.engine.on_append(Arc::new(move |task| told.send(task).unwrap()));
            faults.close_gate_at_append();
            let setting = tokio::spawn(set(kernel.engine.clone(), sent.id().clone()));
            // It is stored, and the listener does not know yet.
            faults.until_held(1).await;
            setting.abort();
            assert!(setting.await.unwrap_err().is_cancelled());
            faults.open_gate();
            let heard = tokio::time::timeout(HANG_GUARD, hears.recv()).await;
            let task = heard.unwrap_or_else(|_| panic!("{text}: the listener is not told")).unwrap();
            assert_eq!(store.webhooks(task, store::webhooks::WebhookKey(0), 10).await.unwrap().len(), 1);
        });
    }
}

#[test]
fn a_task_that_is_deleted_while_its_webhook_is_set_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let (kernel, store) = kernel(folder.path(), &faults);
    kernel.run(async {
        let sent = kernel.send("complete").await;
        answer_task(&sent).await;
        faults.close_gate();
        let setting = tokio::spawn(set(kernel.engine.clone(), sent.id().clone()));
        // It was looked at and is there.
        faults.until_held(1).await;
        let all = Retention {
            ended_before: Timestamp(i64::MAX),
            max_tasks: 0,
            max_bytes: 0,
            hold_since: Timestamp(i64::MAX),
        };
        assert_eq!(store.evict(all, 10).await.unwrap(), 1);
        faults.open_gate();
        let refused = setting.await.unwrap();
        assert!(matches!(&refused, Err(Error::TaskNotFound(id)) if id == sent.id()), "{refused:?}");
    });
}
