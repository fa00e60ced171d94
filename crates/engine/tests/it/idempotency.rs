//! Idempotency keys: one key, one message, however often it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_a2a::Part;
use switchboard_engine::*;

use crate::kernel::*;

fn counting(runs: Arc<AtomicUsize>) -> Script {
    Script::new(move |turn: Turn, task: TaskHandle| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if turn.text() == "direct" {
                return Ok(task.reply(vec![Part::text(format!("reply {run}"))]).await?);
            }
            Ok(task.complete_with(format!("run {run}")).await?)
        }
    })
    .early()
    .with(|manifest| manifest.replies = Replies::Either)
}

fn keyed(text: &str, key: &str) -> IncomingMessage {
    let mut send = request(message(text));
    send.message.message_id = "m1".into();
    send.idempotency_key = Some(key.to_owned());
    send
}

#[test]
fn a_repeated_send_acts_as_the_original_also_at_the_same_time_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let kernel = Kernel::open(folder.path(), counting(runs.clone()));
    let caller = Caller::local();
    let first = kernel.run(async {
        let sends = (0..8).map(|_| kernel.send_as(&caller, keyed("hi", "k1")));
        let mut ids = Vec::new();
        for sent in futures_util::future::join_all(sends).await {
            let sent = sent.unwrap();
            assert_eq!(status_text(&answer_task(&sent).await), "run 1");
            ids.push(sent.id().clone());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        ids.remove(0)
    });
    kernel.kill();
    let kernel = Kernel::open(folder.path(), counting(runs.clone()));
    kernel.run(async {
        let again = kernel.send_as(&caller, keyed("hi", "k1")).await.unwrap();
        assert_eq!(*again.id(), first);
        assert_eq!(status_text(&answer_task(&again).await), "run 1");
        let SendStream::Task(Subscription { first: Some((_, task)), mut stream }) =
            again.stream(StreamEnd::Terminal, None).await
        else {
            panic!("no first frame")
        };
        assert_eq!(
            (task.id, task.artifacts.len(), task.history.len()),
            (first.clone(), 0, 1),
            "the task as of the message"
        );
        let mut events = 0;
        while let Some(batch) = stream.next().await.unwrap() {
            events += batch.len();
        }
        assert_eq!(events, 2, "artifact and ending");
        let other = kernel.send_as(&caller, keyed("bye", "k1")).await.err().unwrap();
        assert!(matches!(other, Error::KeyReused), "{other}");
        let mut elsewhere = keyed("hi", "k1");
        elsewhere.address = Address::Agent(AGENT.into());
        let sent = kernel.send_as(&caller, elsewhere).await.unwrap();
        assert_ne!(*sent.id(), first, "another address, another scope");
    });
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[test]
fn a_direct_reply_is_kept_for_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), counting(Arc::default()));
    kernel.run(async {
        for _ in 0..2 {
            let sent = kernel.send_as(&Caller::local(), keyed("direct", "k2")).await.unwrap();
            let SendResult::Message(reply) = sent.answer().await else { panic!("a task instead of a message") };
            assert_eq!(reply.joined_text(), "reply 1");
        }
    });
}

#[test]
fn a_repeated_stream_of_a_damaged_log_is_an_error_that_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let caller = Caller::local();
    let kernel = Kernel::open(folder.path(), counting(runs.clone()));
    let id = kernel.run(async {
        let sent = kernel.send_as(&caller, keyed("hi", "k1")).await.unwrap();
        answer_task(&sent).await;
        sent.id().clone()
    });
    kernel.kill();
    let database = rusqlite::Connection::open(folder.path().join("switchboard.db")).unwrap();
    assert!(database.execute("UPDATE event SET blob = x'ff'", []).unwrap() > 0);
    drop(database);
    let kernel = Kernel::open(folder.path(), counting(runs));
    kernel.run(async {
        let repeated = kernel.send_as(&caller, IncomingMessage { streaming: true, ..keyed("hi", "k1") }).await;
        let Err(error) = repeated else { panic!("the damaged line was passed over") };
        let expected = format!("the stored log of task {id} is damaged at event 1, run `switchboard db check`");
        assert_eq!(error.to_string(), expected);
        assert_eq!(kernel.get(&id).await.unwrap_err().to_string(), expected);
    });
}

#[test]
fn a_key_that_is_written_like_a_message_id_is_not_taken_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let switches = Switches { dedupe_message_id: true, ..Switches::default() };
    let script = counting(Arc::default());
    let kernel = Kernel::serving(folder.path(), Hosted::serving(AGENT, Served::new(script).switches(switches)));
    let caller = Caller::local();
    kernel.run(async {
        let by_key = kernel.send_as(&caller, keyed("hi", "message:m1")).await.unwrap();
        let by_id = || IncomingMessage { idempotency_key: None, ..keyed("something else", "") };
        let sent = kernel.send_as(&caller, by_id()).await.unwrap();
        assert_ne!(sent.id(), by_key.id(), "another message, and no key of its own");
        assert_eq!(kernel.send_as(&caller, by_id()).await.unwrap().id(), sent.id());
    });
}
