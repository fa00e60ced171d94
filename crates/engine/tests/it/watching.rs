//! Streams: from the message, across reconnects, through slow readers, and when they close.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchboard_a2a::{Artifact, ArtifactId, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

fn streamer(chunks: usize) -> Script {
    Script::new(move |_turn: Turn, task: TaskHandle| async move {
        let artifact_id = ArtifactId::generate();
        task.working().await?;
        for number in 0..chunks {
            let artifact = Artifact { artifact_id: artifact_id.clone(), ..Artifact::text(format!("{number} ")) };
            task.chunk(artifact, number > 0, number + 1 == chunks, None).await?;
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(task.complete().await?)
    })
}

async fn drain(mut stream: LogStream) -> Vec<Arc<LoggedEvent>> {
    let mut events = Vec::new();
    while let Some(batch) = stream.next().await.unwrap() {
        events.extend(batch);
    }
    events
}

#[test]
fn invariant_3_every_reader_sees_the_same_events_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), streamer(500));
    kernel.run(async {
        let sent = kernel.send("go").await;
        let id = sent.id().clone();
        let caller = Caller::local();
        let SendStream::Task(Subscription { first: Some((cursor, task)), stream }) =
            sent.stream(StreamEnd::Terminal, None).await
        else {
            panic!("no first frame")
        };
        assert_eq!((cursor.seq, task.status.state, task.history.len()), (Seq(1), TaskState::Submitted, 1));
        let own = drain(stream).await;
        assert_eq!(own.len(), 502, "working, 500 chunks, completed");
        for window in own.windows(2) {
            assert_eq!(window[1].seq, window[0].seq.plus(1), "no gap between sent events of this task");
        }
        // Resuming after any event gives exactly the rest, long after the task has ended.
        for skip in [0, 1, 250, 500] {
            let after = Some(own[skip].cursor());
            let resumed = kernel.engine.subscribe(&Address::Root, &caller, &id, after, |_| StreamEnd::Terminal);
            let resumed = resumed.await.unwrap();
            assert!(resumed.first.is_none());
            let rest: Vec<_> = drain(resumed.stream).await.into_iter().map(|event| event.line.clone()).collect();
            let expected: Vec<_> = own[skip + 1..].iter().map(|event| event.line.clone()).collect();
            assert_eq!(rest, expected);
        }
        let text = kernel.get(&id).await.unwrap().artifacts[0].parts[0].as_text().unwrap().to_owned();
        assert_eq!(text.split_whitespace().count(), 500, "chunks of plain text are one text");
    });
}

#[test]
fn a_cursor_the_log_does_not_know_gets_the_task_first() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), streamer(3));
    kernel.run(async {
        let sent = kernel.send("go").await;
        answer_task(&sent).await;
        let caller = Caller::local();
        for bad in [Cursor { epoch: ids::Epoch(9), seq: Seq(2) }, Cursor { epoch: ids::Epoch(1), seq: Seq(99) }] {
            let until = |_: Option<&Arc<Hosted>>| StreamEnd::Terminal;
            let subscription =
                kernel.engine.subscribe(&Address::Root, &caller, sent.id(), Some(bad), until).await.unwrap();
            let (_, task) = subscription.first.expect("the task first");
            assert_eq!(task.status.state, TaskState::Completed);
            assert!(drain(subscription.stream).await.is_empty());
        }
        let refused = kernel.engine.subscribe(&Address::Root, &caller, sent.id(), None, |_| StreamEnd::Terminal).await;
        assert!(matches!(refused.err().unwrap(), Error::Unsupported(_)));
    });
}

#[test]
fn a_hundred_subscribers_with_random_disconnects_each_see_every_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), streamer(2_000));
    kernel.run(async {
        let sent = kernel.send("go").await;
        let id = sent.id().clone();
        let first = Cursor { epoch: ids::Epoch(1), seq: Seq(1) };
        let readers = (0..100u64).map(|reader| {
            let (engine, id) = (kernel.engine.clone(), id.clone());
            tokio::spawn(async move {
                let caller = Caller::local();
                let mut seen = Vec::new();
                let mut cursor = first;
                let mut dice = reader.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                loop {
                    let subscribed =
                        engine.subscribe(&Address::Root, &caller, &id, Some(cursor), |_| StreamEnd::Terminal);
                    let mut stream = subscribed.await.unwrap().stream;
                    loop {
                        dice ^= dice << 13;
                        dice ^= dice >> 7;
                        dice ^= dice << 17;
                        if dice % 5 == 0 {
                            // Connection lost in the middle of a wait or a batch.
                            break;
                        }
                        match stream.next().await.unwrap() {
                            None => return seen,
                            Some(batch) => {
                                let keep = batch.len().min(1 + (dice % 50) as usize);
                                seen.extend(batch[..keep].iter().map(|event| event.seq));
                                cursor = batch[keep - 1].cursor();
                                if batch[keep - 1].kind.is_terminal() {
                                    return seen;
                                }
                                if keep < batch.len() {
                                    break;
                                }
                            }
                        }
                    }
                }
            })
        });
        for reader in futures_util::future::join_all(readers).await {
            let seen = reader.unwrap();
            let distinct: BTreeSet<_> = seen.iter().copied().collect();
            assert_eq!((seen.len(), distinct.len()), (2_002, 2_002));
            assert!(seen.is_sorted());
        }
    });
}

#[test]
fn invariant_7_a_slow_reader_delays_no_other_reader_and_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), streamer(20_000));
    kernel.run(async {
        let sent = kernel.send("go").await;
        let id = sent.id().clone();
        let cursor = Cursor { epoch: ids::Epoch(1), seq: Seq(1) };
        let slow = kernel
            .engine
            .subscribe(&Address::Root, &Caller::local(), &id, Some(cursor), |_| StreamEnd::Terminal)
            .await
            .unwrap();
        // It reads nothing while the task runs to its end, far beyond what memory keeps for readers.
        let task = answer_task(&sent).await;
        assert_eq!(task.status.state, TaskState::Completed);
        let rest = drain(slow.stream).await;
        assert_eq!(rest.last().unwrap().kind, EventKind::Status(TaskState::Completed));
        let expected = rest.last().unwrap().seq.0 - cursor.seq.0;
        assert_eq!(rest.len() as u64, expected, "all of it, from the store");
    });
}

#[test]
fn streams_close_by_the_event_they_send() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.cause != Cause::Begin {
            return Ok(task.complete_with("thanks").await?);
        }
        task.authorize("sign in").await?;
        task.ask("and now?").await?;
        Ok(task.complete_with("thanks").await?)
    });
    let kernel = Kernel::open(folder.path(), script);
    kernel.run(async {
        let sent = kernel.send("go").await;
        let id = sent.id().clone();
        let task = answer_task(&sent).await;
        assert_eq!(task.status.state, TaskState::AuthRequired);
        kernel.say(&id, "signed in").await.unwrap();
        kernel.reach(&id, TaskState::InputRequired).await;
        kernel.say(&id, "go on").await.unwrap();
        kernel.reach(&id, TaskState::Completed).await;
        let caller = Caller::local();
        let from = |seq| Cursor { epoch: ids::Epoch(1), seq: Seq(seq) };
        for (until, last) in [
            (StreamEnd::Interrupted, TaskState::AuthRequired),
            (StreamEnd::InputRequired, TaskState::InputRequired),
            (StreamEnd::Terminal, TaskState::Completed),
        ] {
            let replayed = kernel.engine.subscribe(&Address::Root, &caller, &id, Some(from(1)), |_| until).await;
            let events = drain(replayed.unwrap().stream).await;
            assert_eq!(events.last().unwrap().kind, EventKind::Status(last), "{until:?}");
        }
    });
}
