//! The invariants that have no better home, each named after itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use switchboard_a2a::{TaskId, TaskState};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

fn quick() -> Script {
    Script::new(|_turn: Turn, task: TaskHandle| async move { Ok(task.complete_with("done").await?) })
}

#[test]
fn invariant_1_one_ending_and_nothing_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.complete_with("first").await?;
        assert_eq!(task.fail("second").await, Err(Stopped::Ended));
        assert_eq!(task.status("third").await, Err(Stopped::Ended));
        assert_eq!(task.text("fourth").await, Err(Stopped::Ended));
        Ok(())
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        let task = answer_task(&sent).await;
        assert_eq!(task.status.state, TaskState::Completed);
        let log = kernel.log(sent.id()).await;
        assert_eq!(log.iter().filter(|event| event.kind.is_terminal()).count(), 1);
        assert!(log.last().unwrap().kind.is_terminal());
    });
}

#[test]
fn invariant_2_no_sender_hears_of_a_message_before_it_is_committed() {
    for early in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let script = if early { quick().early() } else { quick() };
        let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
        faults.close_gate();
        kernel.run(async {
            let mut send = Box::pin(kernel.send("go"));
            for _ in 0..1_000 {
                assert!(send.as_mut().now_or_never().is_none(), "answered before the commit");
                tokio::task::yield_now().await;
            }
            faults.open_gate();
            let sent = send.await;
            assert_eq!(answer_task(&sent).await.status.state, TaskState::Completed);
        });
    }
}

#[test]
fn a_message_that_cannot_be_stored_is_refused_and_leaves_nothing() {
    for early in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        faults.fail(true);
        let script = if early { quick().early() } else { quick() };
        let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
        kernel.run(async {
            let refused = kernel.try_send(message("go")).await.err().unwrap();
            assert!(
                matches!(&refused, Error::Unavailable { problem, .. } if problem.contains("disk full")),
                "{refused}"
            );
            faults.fail(false);
            let list = ListFilter { page_size: 10, ..ListFilter::default() };
            let listed = kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap();
            assert_eq!(listed.total, 0);
            assert_eq!(answer_task(&kernel.send("go").await).await.status.state, TaskState::Completed);
        });
    }
}

#[test]
fn output_that_cannot_be_stored_is_offered_again_until_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let fault = faults.clone();
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let fault = fault.clone();
        async move {
            fault.fail(true);
            task.text("kept").await?;
            Ok(task.complete().await?)
        }
    });
    let kernel = Kernel::with_faults(folder.path(), script, Settings::default(), &faults);
    kernel.run(async {
        let sent = kernel.send("go").await;
        // The sweeper and the turn that will try again.
        kernel.advance(2, Duration::from_secs(1)).await;
        let task = answer_task(&sent).await;
        assert_eq!(task.status.state, TaskState::Submitted, "who waits is answered with what is stored");
        let refused = kernel.cancel(sent.id()).await.err().unwrap();
        assert!(matches!(&refused, Error::Unavailable { problem, .. } if problem.contains("disk full")), "{refused}");
        faults.fail(false);
        let task = kernel.while_time_passes(kernel.reach(sent.id(), TaskState::Completed)).await;
        assert_eq!(task.artifacts[0].parts[0].as_text(), Some("kept"));
    });
}

#[test]
fn invariant_5_a_turn_that_was_ended_from_outside_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let (told, hear) = (Arc::new(Notify::new()), Arc::new(std::sync::Mutex::new(None)));
    let (go_on, refused) = (told.clone(), hear.clone());
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let (go_on, refused) = (go_on.clone(), refused.clone());
        async move {
            let kept = task.clone();
            tokio::spawn(async move {
                go_on.notified().await;
                *refused.lock().unwrap() = Some((kept.text("late").await, kept.complete_with("late").await));
            });
            task.working().await?;
            std::future::pending().await
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let (canceled, ()) = tokio::join!(kernel.cancel(sent.id()), kernel.advance(2, Duration::from_secs(3)));
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
        told.notify_one();
        let refused = loop {
            if let Some(refused) = hear.lock().unwrap().take() {
                break refused;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(refused, (Err(Stopped::Ended), Err(Stopped::Ended)));
        let task = kernel.get(sent.id()).await.unwrap();
        assert_eq!((task.status.state, task.artifacts.len()), (TaskState::Canceled, 0));
    });
}

#[test]
fn invariant_11_ended_and_put_away_tasks_leave_memory() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "ask" {
            task.ask("?").await?;
        }
        Ok(task.complete_with("done").await?)
    });
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        for word in ["go", "ask"].repeat(50) {
            let task = answer_task(&kernel.send(word).await).await;
            kernel.get(&task.id).await.unwrap();
        }
        let list = ListFilter { page_size: 100, ..ListFilter::default() };
        assert_eq!(kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap().total, 100);
        while kernel.engine.tasks_in_memory() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn invariant_6_unknown_and_foreign_tasks_look_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), quick());
    kernel.run(async {
        let sent = kernel.send("go").await;
        let id = sent.id().clone();
        let own = answer_task(&sent).await;
        let stranger = Caller { id: "stranger".into(), ..Caller::local() };
        let root = Address::Root;
        let text = |error: Error| error.to_string().replace(id.as_str(), "ID");
        let foreign = text(kernel.engine.get(&root, &stranger, &id).await.unwrap_err());
        let unknown_id = TaskId::generate();
        let unknown = kernel.engine.get(&root, &stranger, &unknown_id).await.unwrap_err();
        assert_eq!(foreign, unknown.to_string().replace(unknown_id.as_str(), "ID"));
        assert_eq!(foreign, text(kernel.engine.cancel(&root, &stranger, &id).await.unwrap_err()));
        let follow_up = request(switchboard_a2a::Message { task_id: Some(id.clone()), ..message("mine?") });
        assert_eq!(foreign, text(kernel.send_as(&stranger, follow_up).await.err().unwrap()));
        let list = ListFilter { page_size: 10, ..ListFilter::default() };
        assert_eq!(kernel.engine.list(&root, &stranger, list.clone()).await.unwrap().total, 0);
        assert_eq!(kernel.engine.list(&root, &Caller::local(), list).await.unwrap().total, 1);
        // Another caller's context is simply a new context.
        let mut join = request(message("hi"));
        join.message.context_id = Some(own.context_id.clone());
        let joined = kernel.send_as(&stranger, join).await.unwrap();
        assert_eq!(answer_task(&joined).await.history.len(), 1);
        // Another agent's address does not show it either.
        let elsewhere = Address::Agent("elsewhere".into());
        assert!(matches!(kernel.engine.get(&elsewhere, &Caller::local(), &id).await, Err(Error::TaskNotFound(_))));
    });
}

#[test]
fn invariant_10_only_ended_tasks_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "hold" {
            task.working().await?;
            task.canceled().await;
        }
        Ok(task.complete_with("done").await?)
    });
    let settings = Settings { retention_tasks: 3, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let held = kernel.send("hold").await;
        kernel.reach(held.id(), TaskState::Working).await;
        let mut ended = Vec::new();
        for _ in 0..5 {
            ended.push(answer_task(&kernel.send("go").await).await.id);
        }
        while kernel.engine.tasks_in_memory() > 1 {
            tokio::task::yield_now().await;
        }
        kernel.engine.sweep().await;
        let list = ListFilter { page_size: 10, ..ListFilter::default() };
        let listed = kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap();
        assert_eq!(listed.total, 3);
        assert_eq!(
            kernel.get(held.id()).await.unwrap().status.state,
            TaskState::Working,
            "live tasks are never evicted"
        );
        assert!(matches!(kernel.get(&ended[0]).await, Err(Error::TaskNotFound(_))), "the oldest went first");
        kernel.clock.advance(Duration::from_secs(31 * 24 * 60 * 60));
        kernel.engine.sweep().await;
        assert!(matches!(kernel.get(&ended[4]).await, Err(Error::TaskNotFound(_))), "by age");
        kernel.get(held.id()).await.unwrap();
    });
}

#[test]
fn media_types_an_agent_cannot_read_or_write_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), quick());
    kernel.run(async {
        for (media_type, is_read) in
            [("image/png", false), ("text/markdown", false), ("Text/Plain; charset=utf-8", true)]
        {
            let mut part = message("look");
            part.parts[0].media_type = Some(media_type.to_owned());
            let sent = kernel.try_send(part).await;
            assert_eq!(sent.is_ok(), is_read, "{media_type}");
            assert!(sent.err().is_none_or(|error| matches!(error, Error::ContentType(_))));
        }
        let mut picky = request(message("go"));
        picky.accepted_output_modes = vec!["image/png".to_owned(), "image/*".to_owned()];
        assert!(matches!(kernel.send_as(&Caller::local(), picky.clone()).await.err().unwrap(), Error::ContentType(_)));
        for pattern in ["text/*", "*/*", "*"] {
            let accepted_output_modes = vec!["image/png".to_owned(), pattern.to_owned()];
            let send = IncomingMessage { accepted_output_modes, ..picky.clone() };
            kernel.send_as(&Caller::local(), send).await.unwrap();
        }
    });
}

#[test]
fn referenced_tasks_must_be_the_callers_own() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), quick());
    kernel.run(async {
        let own = answer_task(&kernel.send("go").await).await.id;
        let mut refers = message("and then");
        refers.reference_task_ids = vec![own.clone()];
        kernel.try_send(refers.clone()).await.unwrap();
        let stranger = Caller { id: "stranger".into(), ..Caller::local() };
        let refused = kernel.send_as(&stranger, request(refers)).await.err().unwrap();
        assert!(matches!(refused, Error::TaskNotFound(_)), "{refused}");
    });
}
