//! Turns: questions and answers, messages that wait, and what survives being put away.

use std::time::Duration;

use switchboard_a2a::TaskState;
use switchboard_engine::*;

use crate::kernel::*;

fn asker() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        let answer = match turn.cause {
            Cause::Answer { question } => {
                let question = question.expect("the question is told again").joined_text();
                assert_eq!(question, "which city?");
                let saved: String = turn.saved.expect("saved before the question").read().unwrap();
                assert_eq!(saved, "notes");
                format!("again: {}", turn.message.joined_text())
            }
            _ => {
                task.save(&"notes").await?;
                format!("direct: {}", task.ask("which city?").await?.joined_text())
            }
        };
        Ok(task.complete_with(answer).await?)
    })
}

#[test]
fn an_answer_arrives_as_a_return_value() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        let asked = kernel.send("weather").await;
        let task = answer_task(&asked).await;
        assert_eq!(task.status.state, TaskState::InputRequired);
        assert_eq!(status_text(&task), "which city?");
        let told = kernel.say(&task.id, "Bern").await.unwrap();
        let task = answer_task(&told).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(status_text(&task), "direct: Bern");
        let said: Vec<_> = task.history.iter().map(|message| message.joined_text()).collect();
        assert_eq!(said, ["weather", "which city?", "Bern"]);
        let times = kernel.log(&task.id).await;
        assert_eq!(times.last().unwrap().kind, Kind::Status(TaskState::Completed));
    });
}

#[test]
fn an_agent_that_was_put_away_gets_its_answer_in_a_new_run() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), asker(), settings);
    let id = kernel.run(async { answer_task(&kernel.send("weather").await).await.id });
    kernel.run(async {
        let told = kernel.say(&id, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bern");
    });
}

#[test]
fn an_agent_is_put_away_after_the_park_time_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), asker());
    let (first, second) = kernel.run(async {
        let first = answer_task(&kernel.send("weather").await).await.id;
        let second = answer_task(&kernel.send("weather").await).await.id;
        // The sweeper and both parked agents.
        kernel.advance(3, Duration::from_secs(601)).await;
        (first, second)
    });
    kernel.run(async {
        let told = kernel.say(&first, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bern");
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), asker());
    kernel.run(async {
        let told = kernel.say(&second, "Bonn").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "again: Bonn");
    });
}

#[test]
fn messages_to_a_running_task_wait_for_it_and_are_never_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|_turn: Turn, task: TaskHandle| async move {
        task.status("ready").await?;
        let first = task.next_message().await?.joined_text();
        while task.snapshot().history.len() < 3 {
            tokio::task::yield_now().await;
        }
        // A message that came before the question is not its answer.
        let answer = task.ask("well?").await?.joined_text();
        let second = task.next_message().await?.joined_text();
        Ok(task.complete_with(format!("{first}, {answer}, {second}")).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("begin").await;
        let id = sent.id().clone();
        kernel.reach(&id, TaskState::Working).await;
        kernel.say(&id, "one").await.unwrap();
        kernel.say(&id, "two").await.unwrap();
        kernel.reach(&id, TaskState::InputRequired).await;
        let told = kernel.say(&id, "three").await.unwrap();
        let task = answer_task(&told).await;
        assert_eq!(status_text(&task), "one, three, two");
    });
}

#[test]
fn completing_with_messages_unread_ends_the_turn_and_not_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause == Cause::Begin {
            task.status("ready").await?;
            while task.snapshot().history.len() < 3 {
                tokio::task::yield_now().await;
            }
        }
        let text = turn.text();
        Ok(task.complete_with(format!("done with {text}")).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("one").await;
        let id = sent.id().clone();
        kernel.reach(&id, TaskState::Working).await;
        kernel.say(&id, "two").await.unwrap();
        kernel.say(&id, "three").await.unwrap();
        let task = kernel.reach(&id, TaskState::Completed).await;
        assert_eq!(status_text(&task), "done with three");
        let said: Vec<_> = task.history.iter().map(|message| message.joined_text()).collect();
        assert!(said.contains(&"done with one".to_owned()) && said.contains(&"done with two".to_owned()), "{said:?}");
    });
}

#[test]
fn an_agent_that_must_not_be_parked_keeps_running_while_it_waits() {
    let folder = tempfile::tempdir().unwrap();
    let script = asker().with(|manifest| manifest.park = Park::Never);
    let settings = Settings { park: Duration::ZERO, ..Settings::default() };
    let kernel = Kernel::with_settings(folder.path(), script, settings);
    kernel.run(async {
        let task = answer_task(&kernel.send("weather").await).await;
        let told = kernel.say(&task.id, "Bern").await.unwrap();
        assert_eq!(status_text(&answer_task(&told).await), "direct: Bern");
    });
}

#[test]
fn the_earlier_messages_of_a_conversation_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let earlier: Vec<_> = task.context_history(10).await.iter().map(|message| message.joined_text()).collect();
        let text = turn.text();
        Ok(task.complete_with(format!("{text} after [{}]", earlier.join("; "))).await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let first = answer_task(&kernel.send("one").await).await;
        let mut next = message("two");
        next.context_id = Some(first.context_id.clone());
        let second = answer_task(&kernel.try_send(next).await.unwrap()).await;
        assert_eq!(second.context_id, first.context_id);
        assert_eq!(status_text(&second), "two after [one; one after []]");
    });
}
