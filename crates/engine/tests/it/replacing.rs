//! An agent that is replaced while its turns run.

use std::sync::Arc;

use switchboard_a2a::TaskState;
use switchboard_engine::*;
use tokio::sync::Semaphore;

use crate::kernel::*;

/// Says who it is once it may, and again after every answer to its question.
fn teller(name: &'static str, gate: &Arc<Semaphore>, park: Park) -> Served {
    let gate = gate.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            if turn.text() == "ask" {
                task.ask("go on?").await?;
            }
            Ok(task.complete_with(name).await?)
        }
    });
    let one = Switches { max_running: Some(1), ..Switches::default() };
    Served::new(script.with(|manifest| manifest.park = park)).switches(one)
}

#[test]
fn a_running_turn_keeps_its_agent_the_next_one_gets_the_new_and_both_count_together() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let kernel = Kernel::serving(folder.path(), Hosted::serving(AGENT, teller("old", &gate, Park::Never)));
    let hosted = kernel.engine.directory().find(&AGENT.into()).unwrap();
    kernel.run(async {
        let running = kernel.send("ask").await;
        hosted.replace(teller("new", &gate, Park::Allowed));
        let queued = kernel.send("hello").await;
        let waiting = kernel.get(queued.id()).await.unwrap();
        assert_eq!(waiting.metadata.unwrap().get(QUEUE_POSITION_KEY).unwrap().as_str(), "1", "one limit for both");

        gate.add_permits(1);
        kernel.reach(running.id(), TaskState::InputRequired).await;
        // The old agent must not be parked, so its turn still runs and the queued one waits.
        let waiting = kernel.get(queued.id()).await.unwrap();
        assert_eq!(waiting.status.state, TaskState::Submitted);
        kernel.say(running.id(), "yes").await.unwrap();
        assert_eq!(status_text(&kernel.reach(running.id(), TaskState::Completed).await), "old");

        gate.add_permits(1);
        assert_eq!(status_text(&kernel.reach(queued.id(), TaskState::Completed).await), "new");
        hosted.replace(teller("newest", &gate, Park::Allowed).switches(Switches::default()));
        gate.add_permits(1);
        assert_eq!(status_text(&answer_task(&kernel.send("hello").await).await), "newest");
    });
}
