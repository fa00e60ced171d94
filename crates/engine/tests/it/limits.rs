//! Limits: each is hit here, refuses clearly, and changes nothing else.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{Task, TaskState};
use switchboard_engine::*;

use crate::faults::Faults;
use crate::kernel::*;

fn holder() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        match (turn.text().as_str(), &turn.cause) {
            ("ask", _) => {
                let answer = task.ask("?").await?;
                Ok(task.complete_with(answer.joined_text()).await?)
            }
            ("quick", _) => Ok(task.complete().await?),
            (_, Cause::Answer { .. }) => Ok(task.complete_with(turn.text()).await?),
            _ => {
                task.working().await?;
                task.canceled().await;
                Ok(())
            }
        }
    })
}

#[test]
fn turns_beyond_the_running_cap_wait_with_a_visible_position_and_start_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_tasks: 2, queued_turns: 2, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let running = [kernel.send("hold").await, kernel.send("hold").await];
        let third = kernel.send("hold").await;
        let fourth = kernel.send("hold").await;
        let position = async |id| {
            let task = kernel.get(id).await.unwrap();
            assert_eq!(task.status.state, TaskState::Submitted);
            task.metadata.unwrap().get(QUEUE_POSITION_KEY).unwrap().as_str().to_owned()
        };
        assert_eq!(position(third.id()).await, "1");
        assert_eq!(position(fourth.id()).await, "2");
        let refused = kernel.try_send(message("hold")).await.err().unwrap();
        assert!(matches!(refused, Error::Unavailable { retry_after_ms: 1.., .. }), "{refused}");
        // A queued task can be canceled at once; a running one that ends makes room for the next.
        kernel.cancel(third.id()).await.unwrap();
        assert_eq!(position(fourth.id()).await, "1");
        kernel.cancel(running[0].id()).await.unwrap();
        kernel.reach(fourth.id(), TaskState::Working).await;
    });
}

#[test]
fn the_queue_never_grows_beyond_its_limit_however_many_send_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_tasks: 1, queued_turns: 3, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let sends = (0..50).map(|_| kernel.try_send(message("hold")));
        let sent = futures_util::future::join_all(sends).await;
        assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 4, "one runs and three wait");
    });
}

#[test]
fn caps_per_caller_and_per_agent_do_not_hold_up_others() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_per_caller: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let other = Caller { id: "other".into(), ..Caller::local() };
        let first = kernel.send("hold").await;
        let waiting = kernel.send("quick").await;
        let theirs = kernel.send_as(&other, request(message("quick"))).await.unwrap();
        assert_eq!(answer_task(&theirs).await.status.state, TaskState::Completed);
        kernel.cancel(first.id()).await.unwrap();
        assert_eq!(answer_task(&waiting).await.status.state, TaskState::Completed);
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { running_per_agent: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let first = kernel.send("hold").await;
        let waiting = kernel.send("quick").await;
        kernel.reach(waiting.id(), TaskState::Submitted).await;
        kernel.cancel(first.id()).await.unwrap();
        assert_eq!(answer_task(&waiting).await.status.state, TaskState::Completed);
    });
}

#[test]
fn an_answer_beyond_the_running_cap_waits_as_working() {
    for park in [Duration::ZERO, Duration::from_secs(600)] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { running_tasks: 1, park, ..Settings::default() };
        let kernel = Kernel::with_settings(folder.path(), holder(), settings);
        kernel.run(async {
            let asked = kernel.send("ask").await;
            answer_task(&asked).await;
            let holding = kernel.send("hold").await;
            kernel.reach(holding.id(), TaskState::Working).await;
            let told = kernel.say(asked.id(), "here").await.unwrap();
            let task = kernel.get(asked.id()).await.unwrap();
            assert_eq!(task.status.state, TaskState::Working);
            assert!(task.metadata.unwrap().get(QUEUE_POSITION_KEY).is_some());
            kernel.cancel(holding.id()).await.unwrap();
            assert_eq!(status_text(&answer_task(&told).await), "here");
        });
    }
}

#[test]
fn parked_tasks_are_capped_for_all_and_for_one_caller() {
    for settings in
        [Settings { parked_tasks: 1, ..Settings::default() }, Settings { parked_per_caller: 1, ..Settings::default() }]
    {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::with_settings(folder.path(), holder(), settings.clone());
        let id = kernel.run(async {
            let asked = kernel.send("ask").await;
            answer_task(&asked).await;
            let refused = kernel.try_send(message("ask")).await.err().unwrap();
            assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
            asked.id().clone()
        });
        kernel.kill();
        let kernel = Kernel::with_settings(folder.path(), holder(), settings);
        kernel.run(async {
            let refused = kernel.try_send(message("ask")).await.err().unwrap();
            assert!(matches!(refused, Error::Unavailable { .. }), "counted again after a restart: {refused}");
            kernel.cancel(&id).await.unwrap();
            kernel.send("ask").await;
        });
    }
}

#[test]
fn a_message_an_event_and_a_task_have_a_largest_size() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { event_bytes: 2_000, task_bytes: 10_000, ..Settings::default() };
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        match turn.text().as_str() {
            "event" => task.status("x".repeat(3_000)).await?,
            _ => {
                for _ in 0..100 {
                    task.status("x".repeat(500)).await?;
                }
            }
        }
        Ok(task.complete().await?)
    });
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let refused = kernel.try_send(message(&"x".repeat(3_000))).await.err().unwrap();
        assert!(matches!(&refused, Error::Invalid { field: "message", .. }), "{refused}");
        assert!(refused.to_string().contains("limits.event"), "{refused}");
        for word in ["event", "task"] {
            let task = answer_task(&kernel.send(word).await).await;
            assert_eq!(task.status.state, TaskState::Failed);
            assert!(status_text(&task).contains(&format!("limits.{word}")), "{}", status_text(&task));
        }
    });
}

#[test]
fn an_agent_waits_when_too_much_of_its_output_is_uncommitted() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { uncommitted_events: 4, uncommitted_bytes: 10_000, ..Settings::default() };
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        for step in 0..50 {
            task.status(format!("{step}")).await?;
            let committed = task.snapshot().history.len();
            assert!(step < committed + 6, "step {step} with only {committed} committed");
        }
        Ok(task.complete().await?)
    });
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let task = answer_task(&kernel.send("go").await).await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(&task));
    });
}

#[test]
fn a_blocking_wait_can_be_limited() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { max_blocking: Some(Duration::from_secs(5)), ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let sent = kernel.send("hold").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let (task, ()) = tokio::join!(answer_task(&sent), kernel.advance(2, Duration::from_secs(5)));
        assert_eq!(task.status.state, TaskState::Working);
    });
}

#[test]
fn messages_count_against_the_size_of_their_task_and_references_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { task_bytes: 10_000, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), holder(), settings);
    kernel.run(async {
        let sent = kernel.send("hold").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let refused = loop {
            if let Err(refused) = kernel.say(sent.id(), &"x".repeat(1_000)).await {
                break refused;
            }
        };
        assert!(refused.to_string().contains("limits.task"), "{refused}");
        let mut refers = message("quick");
        refers.reference_task_ids = (0..101).map(|number| format!("task {number}").into()).collect();
        let refused = kernel.try_send(refers).await.err().unwrap();
        assert!(matches!(refused, Error::Invalid { field: "message.referenceTaskIds", .. }), "{refused}");
        let mut refers = message("quick");
        refers.reference_task_ids = vec![sent.id().clone(); 10_000];
        kernel.try_send(refers).await.unwrap();
    });
}

#[test]
fn bytes_beyond_what_is_kept_make_the_oldest_ended_tasks_go() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        Script::new(|_turn: Turn, task: TaskHandle| async move { Ok(task.complete_with("x".repeat(100_000)).await?) });
    let settings = Settings { retention_bytes: 3_500_000, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let mut ended = Vec::new();
        for _ in 0..20 {
            ended.push(answer_task(&kernel.send("go").await).await.id);
        }
        while kernel.engine.tasks_in_memory() > 0 {
            tokio::task::yield_now().await;
        }
        kernel.engine.sweep().await;
        assert!(matches!(kernel.get(&ended[0]).await, Err(Error::TaskNotFound(_))), "the oldest went");
        kernel.get(&ended[19]).await.unwrap();
        let list = ListFilter { page_size: 100, ..ListFilter::default() };
        let total = kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap().total;
        assert!((3..20).contains(&total), "{total} tasks of 200 KB in 3.5 MB");
    });
}

#[test]
fn histories_beyond_the_limit_are_read_again() {
    let loads_with = |contexts: usize| {
        let folder = tempfile::tempdir().unwrap();
        let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
            let earlier = task.context_history(100).await.len();
            Ok(task.complete_with(earlier.to_string()).await?)
        });
        let faults = Faults::default();
        let settings = Settings { contexts, ..Settings::default() };
        let kernel = Kernel::with_faults(folder.path(), script, settings, &faults);
        kernel.run(async {
            for turn in 0..10 {
                for conversation in ["one", "two"] {
                    let mut said = message("hello");
                    said.context_id = Some(conversation.into());
                    let task = answer_task(&kernel.try_send(said).await.unwrap()).await;
                    assert_eq!(status_text(&task), (turn * 2).to_string(), "no history is shorter for it");
                }
            }
        });
        faults.loads()
    };
    let (few, many) = (loads_with(1), loads_with(2));
    assert!(few > many + 50, "{few} loads with one history at hand, {many} with two");
}

#[test]
fn a_context_id_has_a_longest_length() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), holder());
    kernel.run(async {
        for (context, fine) in [("c".repeat(256), true), ("c".repeat(257), false), ("ö".repeat(129), false)] {
            let mut said = message("quick");
            said.context_id = Some(context.as_str().into());
            let sent = kernel.try_send(said).await;
            assert_eq!(sent.is_ok(), fine, "{} bytes", context.len());
            if let Err(refused) = sent {
                assert!(matches!(refused, Error::Invalid { field: "message.contextId", .. }), "{refused}");
            }
        }
    });
}

#[test]
fn turns_that_wait_for_others_take_no_place_in_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let bell = Arc::new(tokio::sync::Notify::new());
    let rings = bell.clone();
    let parent = Script::new(move |_, task: TaskHandle| {
        let bell = rings.clone();
        async move {
            task.working().await?;
            task.release_permit_while(bell.notified()).await?;
            Ok(task.complete_with("went on").await?)
        }
    });
    let child = Script::new(|_, task: TaskHandle| async move {
        task.working().await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    });
    let settings = Settings { running_tasks: 1, queued_turns: 3, ..Settings::default() };
    let agents = vec![Hosted::new("parent", parent), Hosted::new("child", child)];
    let kernel = Kernel::serving_all(folder.path(), agents, settings);
    kernel.run(async {
        let mut parents = Vec::new();
        for _ in 0..3 {
            let sent = kernel.send_to("parent", "wait").await.unwrap();
            kernel.reach(sent.id(), TaskState::Working).await;
            parents.push(sent);
        }
        // As many as the queue holds wait for others, and the queue is still empty.
        let running = kernel.send_to("child", "hold").await.unwrap();
        let queued = [kernel.send_to("child", "hold").await, kernel.send_to("child", "hold").await];
        let queued = queued.map(|sent| sent.unwrap().id().clone());
        for id in [running.id(), &queued[0], &queued[1]] {
            kernel.cancel(id).await.unwrap();
        }
        bell.notify_waiters();
        for parent in parents {
            assert_eq!(answer_task(&parent).await.status.state, TaskState::Completed);
        }
    });
}

#[test]
fn turns_that_follow_a_task_elsewhere_have_their_own_limit_and_a_shutdown_does_not_wait_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let follow = |_, task: TaskHandle| async move {
        task.working().await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    };
    let remote = Script::new(follow).with(|manifest| manifest.execution = Execution::Remote);
    let day = Duration::from_secs(86_400);
    let settings = Settings { running_tasks: 1, remote_tasks: 2, drain: day, ..Settings::default() };
    let agents = vec![Hosted::new("remote", remote), Hosted::new("local", Script::new(follow))];
    let kernel = Kernel::serving_all(folder.path(), agents, settings);
    kernel.run(async {
        let mut followed = Vec::new();
        for _ in 0..2 {
            let sent = kernel.send_to("remote", "follow").await.unwrap();
            kernel.reach(sent.id(), TaskState::Working).await;
            followed.push(sent);
        }
        let third = kernel.send_to("remote", "follow").await.unwrap();
        let waits = |task: &Task| task.metadata.as_ref().is_some_and(|all| all.get(QUEUE_POSITION_KEY).is_some());
        assert!(waits(&kernel.get(third.id()).await.unwrap()), "limits.remoteTasks");
        // They leave room for those that run here, and these for them.
        let local = kernel.send_to("local", "hold").await.unwrap();
        kernel.reach(local.id(), TaskState::Working).await;
        let second = kernel.send_to("local", "hold").await.unwrap();
        assert!(waits(&kernel.get(second.id()).await.unwrap()), "limits.runningTasks");
        kernel.cancel(followed[0].id()).await.unwrap();
        kernel.reach(third.id(), TaskState::Working).await;
        assert!(waits(&kernel.get(second.id()).await.unwrap()));
        kernel.cancel(second.id()).await.unwrap();
        kernel.cancel(local.id()).await.unwrap();
        kernel.stop_before(day).await;
    });
}
