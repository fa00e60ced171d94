//! A node that stops, in order or not: its turns go on at the other. And what both are asked at once happens once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::TaskState;
use switchboard_engine::store::{Phase, Store, TaskRow};
use switchboard_engine::*;

use crate::faults::{Faults, FaultyStore};
use crate::kernel::*;

/// Asks, or says which node runs it and then waits for a message.
fn script() -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause == Cause::Recovered {
            return Ok(task.complete_with("taken over").await?);
        }
        task.text("begun").await?;
        task.next_message().await?;
        Ok(task.complete_with("stayed").await?)
    })
    .recovering(Recovery::Resume)
}

#[test]
fn a_turn_of_a_node_that_dies_goes_on_at_the_other_and_its_readers_see_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = Kernel::two_nodes(folder.path(), &script(), &Settings::default(), |store| Arc::new(store));
    let id = first.run(async {
        let sent = first.send("go").await;
        first.reach(sent.id(), TaskState::Submitted).await;
        sent.id().clone()
    });
    // It is read at the other node while the first one has it, and stays there.
    let mut stream = second.run(async {
        while second.get(&id).await.unwrap().artifacts.is_empty() {
            tokio::task::yield_now().await;
        }
        let until = |_: Option<&Arc<Hosted>>| StreamEnd::Terminal;
        let subscribed = second.engine.subscribe(&Address::Root, &Caller::local(), &id, None, until).await;
        subscribed.unwrap().stream
    });
    let watcher = second.runtime.spawn(async move {
        let mut last = None;
        while let Some(events) = stream.next().await.unwrap() {
            last = events.last().map(|event| event.kind);
        }
        last
    });
    second.run(async {
        // A live node's turn is not for another, however often it looks.
        for _ in 0..5 {
            second.advance(1, Duration::from_secs(1)).await;
        }
        assert_eq!(second.get(&id).await.unwrap().status.state, TaskState::Submitted);
    });
    first.kill();
    let task = second.run(second.while_time_passes(second.ended(&id)));
    assert_eq!((task.status.state, status_text(&task).as_str()), (TaskState::Completed, "taken over"));
    assert_eq!(second.run(watcher).unwrap(), Some(EventKind::Status(TaskState::Completed)));
}

#[test]
fn a_node_that_stops_in_order_leaves_its_turns_to_the_other_and_touches_none_of_its() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = Kernel::two_nodes(folder.path(), &script(), &Settings::default(), |store| Arc::new(store));
    let of_second = second.run(async { second.send("go").await.id().clone() });
    let (of_first, watched) = first.run(async {
        let sent = first.send("go").await;
        // In its memory when it stops, and not its own.
        let until = |_: Option<&Arc<Hosted>>| StreamEnd::Terminal;
        let watched = first.engine.subscribe(&Address::Root, &Caller::local(), &of_second, None, until).await.unwrap();
        (sent.id().clone(), watched)
    });
    first.stop();
    drop(watched);
    let task = second.run(second.while_time_passes(second.ended(&of_first)));
    assert_eq!(status_text(&task), "taken over");
    second.run(async {
        second.say(&of_second, "go on").await.unwrap();
        assert_eq!(status_text(&second.ended(&of_second).await), "stayed");
    });
}

#[test]
fn a_cancel_at_the_other_node_reaches_the_turn_where_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = Kernel::two_nodes(folder.path(), &script(), &Settings::default(), |store| Arc::new(store));
    let id = first.run(async { first.send("go").await.id().clone() });
    // Both runtimes go on by themselves; the first one's turn hears of it over the bus.
    let canceled = second.run(second.while_time_passes(second.cancel(&id))).unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(first.run(first.get(&id)).unwrap(), canceled);
}

#[test]
fn an_agent_that_waits_is_dropped_when_its_turn_went_on_elsewhere_and_came_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        let said = match &turn.cause {
            Cause::Begin => format!("in memory: {}", task.ask("one?").await?.joined_text()),
            Cause::Answer { question } if turn.text() == "first" => {
                assert_eq!(question.as_ref().unwrap().joined_text(), "one?");
                return Ok(task.say(TaskState::InputRequired, Some(message("two?")), None).await?);
            }
            Cause::Answer { question } => format!("{} {}", question.as_ref().unwrap().joined_text(), turn.text()),
            other => panic!("{other:?}"),
        };
        Ok(task.complete_with(said).await?)
    });
    // The first node hears of nothing while its gate is closed.
    let gates = [Faults::default(), Faults::default()];
    let mut opened = gates.iter();
    let [first, second] = Kernel::two_nodes(folder.path(), &script, &Settings::default(), |store| {
        Arc::new(FaultyStore { store: Arc::new(store), hooks: opened.next().unwrap().clone() })
    });
    let id = first.run(async {
        let sent = first.send("go").await;
        first.reach(sent.id(), TaskState::InputRequired).await;
        sent.id().clone()
    });
    gates[0].close_gate();
    second.run(async {
        second.say(&id, "first").await.unwrap();
        while status_text(&second.get(&id).await.unwrap()) != "two?" {
            tokio::task::yield_now().await;
        }
    });
    gates[0].open_gate();
    let task = first.run(async {
        first.say(&id, "second").await.unwrap();
        first.ended(&id).await
    });
    assert_eq!(status_text(&task), "two? second");
}

#[test]
fn an_answer_is_given_to_the_agent_at_a_node_where_the_turn_before_it_had_waited_to_be_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let recovered = Arc::new(AtomicUsize::new(0));
    let counted = recovered.clone();
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let counted = counted.clone();
        async move {
            if let Cause::Answer { .. } = turn.cause {
                return Ok(task.complete_with(format!("told {}", turn.text())).await?);
            }
            if turn.text() == "asks" && turn.cause == Cause::Recovered {
                if counted.fetch_add(1, Ordering::SeqCst) > 0 {
                    return Ok(task.complete_with("recovered once more").await?);
                }
                return Ok(task.say(TaskState::InputRequired, Some(message("well?")), None).await?);
            }
            task.status("begun").await?;
            task.next_message().await?;
            Ok(task.complete_with("held").await?)
        }
    });
    let script = script.recovering(Recovery::Resume);
    let kernel = Kernel::open(folder.path(), script.clone());
    let [holds, asks] = kernel.run(async {
        let (holds, asks) = (kernel.send("holds").await, kernel.send("asks").await);
        for sent in [&holds, &asks] {
            kernel.reach(sent.id(), TaskState::Working).await;
        }
        [holds.id().clone(), asks.id().clone()]
    });
    kernel.kill();
    // The first node has one permit, so the second task waits to be recovered. It hears of nothing from then on until the
    // other node has recovered that task and its agent has asked.
    let faults = Faults::default();
    let (settings, mut opened) = (Settings { running_tasks: 1, ..Settings::default() }, None);
    let nodes = Kernel::two_nodes(folder.path(), &script, &settings, |store| {
        let store: Arc<dyn Store> = Arc::new(store);
        let Some(first) = opened.replace(store.clone()) else {
            return Arc::new(FaultyStore { store, hooks: faults.clone() });
        };
        let waits = |row: Option<TaskRow>| row.is_some_and(|row| row.state.phase == Phase::Requeued);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while !waits(runtime.block_on(first.row(&asks)).unwrap()) {
            std::thread::yield_now();
        }
        faults.close_gate();
        store
    });
    let [first, second] = nodes;
    second.run(second.reach(&asks, TaskState::InputRequired));
    faults.open_gate();
    let task = first.run(async {
        first.say(&asks, "yes").await.unwrap();
        first.say(&holds, "go on").await.unwrap();
        first.ended(&asks).await
    });
    assert_eq!(status_text(&task), "told yes");
    assert_eq!(recovered.load(Ordering::SeqCst), 1);
}

#[test]
fn a_queued_turn_of_a_node_that_dies_is_not_kept_back_by_turns_that_wait_for_their_agent() {
    let folder = tempfile::tempdir().unwrap();
    let holds = Script::new(|_: Turn, task: TaskHandle| async move {
        task.status("begun").await?;
        task.canceled().await;
        Err(Stopped::Canceled.into())
    });
    let agents = || {
        let one = Switches { max_running: Some(1), ..Switches::default() };
        let narrow = Hosted::serving("narrow", Served::new(holds.clone()).switches(one));
        vec![narrow, Hosted::new("other", holds.clone())]
    };
    let settings = Settings { running_tasks: 2, ..Settings::default() };
    let [first, second] = Kernel::two_nodes_serving(folder.path(), agents, &settings, |store| Arc::new(store));
    first.run(async {
        let runs = first.send_to("narrow", "runs").await.unwrap();
        first.reach(runs.id(), TaskState::Working).await;
        // More than the one permit that is left.
        for _ in 0..3 {
            first.send_to("narrow", "waits for its agent").await.unwrap();
        }
    });
    let queued = second.run(async {
        for _ in 0..2 {
            let runs = second.send_to("other", "runs").await.unwrap();
            second.reach(runs.id(), TaskState::Working).await;
        }
        second.send_to("other", "waits for a permit").await.unwrap().id().clone()
    });
    second.kill();
    first.run(first.while_time_passes(first.reach(&queued, TaskState::Working)));
}

#[test]
fn a_run_whose_log_was_rewound_is_dropped_and_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let (script, runs) = script().counted();
    let nodes = Kernel::two_nodes(folder.path(), &script, &Settings::default(), |store| {
        Arc::new(FaultyStore { store: Arc::new(store), hooks: faults.clone() })
    });
    let first = &nodes[0];
    first.run(async {
        let sent = first.send("go").await;
        while first.get(sent.id()).await.unwrap().artifacts.is_empty() {
            tokio::task::yield_now().await;
        }
        faults.rewind();
        first.get(sent.id()).await.unwrap();
        assert_eq!(status_text(&first.ended(sent.id()).await), "taken over");
        runs.until_none(|| {}).await;
    });
}

#[test]
fn one_key_at_two_nodes_is_one_message_and_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let script = Script::new(move |_, task: TaskHandle| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(task.complete_with("done").await?) }
    });
    let nodes = Kernel::two_nodes(folder.path(), &script.early(), &Settings::default(), |store| {
        Arc::new(FaultyStore { store: Arc::new(store), hooks: Faults::dawdle(3) })
    });
    nodes[0].run(async {
        for number in 0..100 {
            let keyed = IncomingMessage { idempotency_key: Some(format!("key {number}")), ..request(message("hi")) };
            let send = |node: &Kernel| {
                let (engine, keyed) = (node.engine.clone(), keyed.clone());
                async move {
                    let routed = engine.route(&Caller::local(), keyed).await.unwrap();
                    engine.send(routed).await.unwrap().id().clone()
                }
            };
            let (first, second) = tokio::join!(send(&nodes[0]), send(&nodes[1]));
            assert_eq!(first, second);
            nodes[1].ended(&first).await;
        }
    });
    assert_eq!(runs.load(Ordering::SeqCst), 100);
}
