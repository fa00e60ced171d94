//! Terminal events: every way a task can end, with its reason; cancellation above all.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use switchboard_a2a::{Json, Message, Metadata, Part, Role, TaskState};
use switchboard_engine::*;
use tokio::sync::Notify;

use crate::faults::Faults;
use crate::kernel::*;

fn by_word() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        match turn.text().as_str() {
            "nothing" => Ok(()),
            "error" => Err(AgentError::new("out of paper")),
            "panic" => panic!("at the disco"),
            "reject" => Ok(task.reject("not today").await?),
            "fail" => Ok(task.fail("could not").await?),
            "hold" => {
                task.working().await?;
                task.canceled().await;
                task.usage(Usage { input_tokens: 7, ..Usage::default() }).await?;
                Ok(())
            }
            "deaf" => {
                task.working().await?;
                std::future::pending().await
            }
            "ask" => {
                let canceled = task.ask("?").await;
                assert_eq!(canceled, Err(Stopped::Canceled));
                Ok(())
            }
            _ => Ok(task.complete().await?),
        }
    })
}

#[test]
fn invariant_4_a_run_that_ends_without_an_ending_fails_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), by_word());
    kernel.run(async {
        for (word, state, why, text) in [
            ("nothing", TaskState::Failed, "no_result", "the agent ended without a result"),
            ("error", TaskState::Failed, "agent_error", "out of paper"),
            ("panic", TaskState::Failed, "panic", "the agent panicked: at the disco"),
            ("reject", TaskState::Rejected, "rejected", "not today"),
            ("fail", TaskState::Failed, "agent_error", "could not"),
        ] {
            let task = answer_task(&kernel.send(word).await).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (state, why), "{word}");
            assert_eq!(status_text(&task), text, "{word}");
        }
    });
}

#[test]
fn invariant_8_cancel_reaches_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), by_word());
    kernel.run(async {
        let sent = kernel.send("hold").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let task = kernel.cancel(sent.id()).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled);
        assert_eq!(reason(&task), "canceled_by_caller");
        let usage = task.metadata.unwrap().get(fold::USAGE_KEY).unwrap().as_str().to_owned();
        assert!(usage.contains("\"inputTokens\":7"), "usage told after the cancel is kept: {usage}");
        let again = kernel.cancel(sent.id()).await.unwrap_err();
        assert!(matches!(again, Error::NotCancelable { state: TaskState::Canceled, .. }), "{again}");
        let late = kernel.say(sent.id(), "hello?").await.err().unwrap();
        assert!(matches!(late, Error::Unsupported(_)), "{late}");
    });
}

#[test]
fn an_agent_that_does_not_hear_is_dropped_after_the_grace() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), by_word());
    kernel.run(async {
        let sent = kernel.send("deaf").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let alive = kernel.runtime.metrics().num_alive_tasks();
        let mut first = Box::pin(kernel.cancel(sent.id()));
        let mut second = Box::pin(kernel.cancel(sent.id()));
        // Both are on their way long before the clock, which stands still, lets the grace pass.
        while !matches!(kernel.say(sent.id(), "still there?").await, Err(Error::Unsupported(_))) {
            assert!(first.as_mut().now_or_never().is_none());
        }
        assert!(second.as_mut().now_or_never().is_none());
        while kernel.runtime.metrics().num_alive_tasks() > alive {
            tokio::task::yield_now().await;
        }
        for _ in 0..2_000 {
            assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        let (first, second, ()) = tokio::join!(first, second, kernel.advance(2, Duration::from_secs(3)));
        assert_eq!(first.unwrap().status.state, TaskState::Canceled);
        assert_eq!(second.unwrap().status.state, TaskState::Canceled, "a second cancel joins the first");
    });
}

#[test]
fn a_completion_that_wins_against_a_cancel_is_told_to_the_canceler() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let deaf = Script::new(move |_turn: Turn, task: TaskHandle| {
        let waits = waits.clone();
        async move {
            task.working().await?;
            waits.notified().await;
            Ok(task.complete_with("finished all the same").await?)
        }
    });
    let kernel = Kernel::open(folder.path(), deaf);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        let sleepers = kernel.clock.sleepers();
        let mut canceling = Box::pin(kernel.cancel(sent.id()));
        // Its grace has begun, and the agent has not looked.
        while kernel.clock.sleepers() == sleepers {
            assert!(canceling.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        go_on.notify_one();
        let refused = canceling.await.unwrap_err();
        assert!(matches!(refused, Error::NotCancelable { state: TaskState::Completed, .. }), "{refused}");
        assert_eq!(kernel.get(sent.id()).await.unwrap().status.state, TaskState::Completed);
    });
}

/// Hears of the cancel in the first way, ends in the second one, and says what came of that.
fn hears_and_ends(outcome: &Arc<Mutex<Option<Result<(), Stopped>>>>) -> Script {
    let outcome = outcome.clone();
    Script::new(move |turn: Turn, task: TaskHandle| {
        let outcome = outcome.clone();
        async move {
            let text = turn.text();
            let (hears, ends) = text.split_once(' ').unwrap();
            task.working().await?;
            match hears {
                "canceled" => task.canceled().await,
                "looks" => {
                    while !task.is_canceled() {
                        tokio::task::yield_now().await;
                    }
                }
                "status" => {
                    while task.status("on").await != Err(Stopped::Canceled) {
                        tokio::task::yield_now().await;
                    }
                }
                "next" => assert_eq!(task.next_message().await, Err(Stopped::Canceled)),
                "asks" => assert_eq!(task.ask("?").await, Err(Stopped::Canceled)),
                "aside" => {
                    assert_eq!(task.release_permit_while(std::future::pending::<()>()).await, Err(Stopped::Canceled))
                }
                "saves" => {
                    while task.save_committed(&1).await != Err(Stopped::Canceled) {
                        tokio::task::yield_now().await;
                    }
                }
                other => panic!("{other}"),
            }
            let said = Message::text(Role::Agent, "finished all the same");
            let ended = match ends {
                "complete" => task.complete().await,
                "with" => task.complete_with("finished all the same").await,
                "message" => task.complete_message(said).await,
                "reply" => task.reply(said.parts).await,
                "fail" => task.fail("could not stop").await,
                "reject" => task.reject("will not stop").await,
                other => panic!("{other}"),
            };
            *outcome.lock() = Some(ended);
            Ok(())
        }
    })
}

#[test]
fn a_run_that_has_heard_of_the_cancel_cannot_complete_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = Arc::default();
    let script = hears_and_ends(&outcome).with(|manifest| manifest.park = Park::Never);
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        for hears in ["canceled", "looks", "status", "next", "asks", "aside", "saves"] {
            for ends in ["complete", "with", "message", "reply"] {
                let sent = kernel.send(&format!("{hears} {ends}")).await;
                while kernel.get(sent.id()).await.unwrap().status.state == TaskState::Submitted {
                    tokio::task::yield_now().await;
                }
                let task = kernel.cancel(sent.id()).await.unwrap_or_else(|error| panic!("{hears} {ends}: {error}"));
                assert_eq!((task.status.state, task.artifacts.len()), (TaskState::Canceled, 0), "{hears} {ends}");
                assert_eq!(outcome.lock().take(), Some(Err(Stopped::Canceled)), "{hears} {ends}");
            }
        }
    });
}

#[test]
fn what_went_wrong_while_it_stopped_is_still_told() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = Arc::default();
    let kernel = Kernel::open(folder.path(), hears_and_ends(&outcome));
    kernel.run(async {
        for (ends, state) in [("fail", TaskState::Failed), ("reject", TaskState::Rejected)] {
            let sent = kernel.send(&format!("canceled {ends}")).await;
            kernel.reach(sent.id(), TaskState::Working).await;
            let refused = kernel.cancel(sent.id()).await.unwrap_err();
            assert!(matches!(refused, Error::NotCancelable { state: ended, .. } if ended == state), "{refused}");
            assert_eq!(kernel.get(sent.id()).await.unwrap().status.state, state);
        }
    });
}

#[test]
fn a_task_ends_with_a_whole_message_and_its_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let mut metadata = Metadata::default();
        metadata.insert("source", Json::from_serialize("ledger").unwrap());
        let parts = vec![Part::text("42"), Part::data(Json::from_serialize(&[4, 2]).unwrap())];
        // An agent that passes on what it was told passes it on as its own words.
        let message = Message { parts, metadata: Some(metadata), ..turn.message.clone() };
        match turn.text().as_str() {
            "fail" => Ok(task.fail_message(message).await?),
            _ => Ok(task.complete_message(message).await?),
        }
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        for (word, state) in [("go", TaskState::Completed), ("fail", TaskState::Failed)] {
            let task = answer_task(&kernel.send(word).await).await;
            let message = task.status.message.clone().unwrap();
            assert_eq!((task.status.state, message.role, task.artifacts.len()), (state, Role::Agent, 0));
            assert_eq!((message.parts[0].as_text(), message.parts[0].as_data()), (Some("42"), None));
            assert_eq!(message.parts[1].as_data().unwrap().as_str(), "[4,2]");
            assert_eq!(message.metadata.unwrap().get("source").unwrap().as_text().unwrap(), "ledger");
            assert_eq!(message.task_id, Some(task.id.clone()));
            if state == TaskState::Failed {
                assert_eq!(reason(&task), "agent_error");
            }
        }
    });
}

#[test]
fn a_parked_task_is_canceled_at_once_and_its_agent_told() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), by_word());
    kernel.run(async {
        let asked = kernel.send("ask").await;
        answer_task(&asked).await;
        let task = kernel.cancel(asked.id()).await.unwrap();
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Canceled, "canceled_by_caller"));
    });
}

#[test]
fn an_unanswered_question_expires() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), by_word());
    kernel.run(async {
        let asked = kernel.send("ask").await;
        answer_task(&asked).await;
        kernel.advance(2, Duration::from_secs(7 * 24 * 60 * 60)).await;
        let task = kernel.reach(asked.id(), TaskState::Failed).await;
        assert_eq!(reason(&task), "input_expired");
    });
}

#[test]
fn a_task_over_its_deadline_and_an_idle_one_fail_with_their_reasons() {
    for (deadline, idle, expected) in [(Some(60), None, "timed_out"), (None, Some(60), "idle")] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            deadline: deadline.map(Duration::from_secs),
            idle: idle.map(Duration::from_secs),
            ..Settings::default()
        };
        let kernel = Kernel::with_settings(folder.path(), by_word(), settings);
        kernel.run(async {
            let sent = kernel.send("deaf").await;
            kernel.reach(sent.id(), TaskState::Working).await;
            kernel.advance(2, Duration::from_secs(61)).await;
            kernel.advance(2, Duration::from_secs(61)).await;
            let task = kernel.reach(sent.id(), TaskState::Failed).await;
            assert_eq!(reason(&task), expected);
        });
    }
}

#[test]
fn status_times_rise_even_when_the_clock_stands_still() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        for step in 0..5 {
            task.status(format!("step {step}")).await?;
        }
        Ok(task.complete().await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        answer_task(&sent).await;
        let mut last = String::new();
        for event in kernel.log(sent.id()).await {
            let frame: serde_json::Value = serde_json::from_slice(&event.line).unwrap();
            let time = frame["statusUpdate"]["status"]["timestamp"].as_str().unwrap().to_owned();
            assert!(time > last, "{time} after {last}");
            last = time;
        }
    });
}

#[test]
fn a_reason_larger_than_any_event_still_ends_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.working().await?;
        Err(AgentError::new("ö".repeat(5 << 20)))
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let task = answer_task(&kernel.send("go").await).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "agent_error"));
        assert!(status_text(&task).ends_with("ö…"));
    });
}

#[test]
fn parked_and_queued_tasks_have_the_same_deadline_as_running_ones() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { deadline: Some(Duration::from_secs(60)), running_tasks: 1, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), by_word(), settings);
    kernel.run(async {
        let parked = kernel.send("ask").await;
        answer_task(&parked).await;
        let running = kernel.send("deaf").await;
        kernel.reach(running.id(), TaskState::Working).await;
        let queued = kernel.send("deaf").await;
        for sent in [&parked, &running, &queued] {
            let task = kernel.while_time_passes(kernel.ended(sent.id())).await;
            assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "timed_out"));
        }
    });
}

#[test]
fn a_queued_task_has_the_deadline_of_the_present_configuration() {
    let minute = Duration::from_secs(60);
    for raised in [Some(2 * minute), None] {
        let folder = tempfile::tempdir().unwrap();
        let open = |deadline| {
            let settings = Settings { deadline, running_tasks: 1, ..Settings::default() };
            Kernel::with_settings(folder.path(), by_word().recovering(Recovery::Resume), settings)
        };
        let kernel = open(Some(minute));
        let queued = kernel.run(async {
            let running = kernel.send("deaf").await;
            kernel.reach(running.id(), TaskState::Working).await;
            kernel.send("deaf").await.id().clone()
        });
        kernel.kill();
        let kernel = open(raised);
        kernel.run(async {
            kernel.clock.advance(minute);
            kernel.engine.sweep().await;
            assert_eq!(kernel.get(&queued).await.unwrap().status.state, TaskState::Submitted, "{raised:?}");
            if raised.is_some() {
                let task = kernel.while_time_passes(kernel.ended(&queued)).await;
                assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "timed_out"));
            }
        });
    }
}

#[test]
fn tasks_that_cannot_be_read_keep_no_other_from_expiring() {
    let folder = tempfile::tempdir().unwrap();
    let asks = || Script::new(|_: Turn, task: TaskHandle| async move { Ok(task.ask("?").await.map(|_| ())?) });
    // More than a sweep takes in one step.
    const UNREADABLE: usize = 250;
    let kernel = Kernel::open(folder.path(), asks());
    let last = kernel.run(async {
        for _ in 0..UNREADABLE {
            answer_task(&kernel.send("go").await).await;
        }
        kernel.clock.advance(Duration::from_secs(1));
        let last = kernel.send("go").await;
        answer_task(&last).await;
        last.id().clone()
    });
    kernel.kill();
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    let spoil = "UPDATE event SET blob = x'ff' WHERE task_key < (SELECT max(key) FROM task)";
    assert!(database.execute(spoil, []).unwrap() >= UNREADABLE);
    drop(database);
    let kernel = Kernel::open(folder.path(), asks());
    kernel.run(async {
        kernel.clock.advance(Settings::default().parked_expiry + Duration::from_secs(1));
        kernel.engine.sweep().await;
        assert_eq!(reason(&kernel.get(&last).await.unwrap()), "input_expired");
    });
}

#[test]
fn a_failing_store_is_not_hammered_and_the_deadline_still_holds() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let fault = faults.clone();
    let script = Script::new(move |_turn: Turn, task: TaskHandle| {
        let fault = fault.clone();
        async move {
            task.working().await?;
            task.canceled().await;
            fault.fail(true);
            task.text("last words").await?;
            std::future::pending().await
        }
    });
    let settings = Settings { deadline: Some(Duration::from_secs(60)), ..Settings::default() };
    let kernel = Kernel::with_faults(folder.path(), script, settings, &faults);
    kernel.run(async {
        let sent = kernel.send("go").await;
        kernel.reach(sent.id(), TaskState::Working).await;
        // The sweeper and the deadline.
        kernel.advance(2, Duration::from_secs(61)).await;
        while faults.failed() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert!(faults.failed() < 5, "{} appends were tried while the clock stood still", faults.failed());
        faults.fail(false);
        let task = kernel.while_time_passes(kernel.ended(sent.id())).await;
        assert_eq!((task.status.state, reason(&task).as_str()), (TaskState::Failed, "timed_out"));
    });
}
