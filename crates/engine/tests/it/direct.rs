//! Agents that answer with a message instead of a task.

use futures_util::FutureExt;
use switchboard_a2a::{Message, Part, Role, TaskState};
use switchboard_engine::*;

use crate::kernel::*;

fn replier(replies: Replies) -> Script {
    Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "work" {
            task.status("working on it").await?;
        }
        Ok(task.reply(vec![Part::text("here you are")]).await?)
    })
    .with(|manifest| manifest.replies = replies)
}

#[test]
fn a_direct_reply_leaves_no_task_to_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), replier(Replies::Either));
    kernel.run(async {
        let sent = kernel.send("quick").await;
        let SendResult::Message(reply) = sent.answer().await else { panic!("a task instead of a message") };
        assert_eq!(reply.joined_text(), "here you are");
        assert!(reply.context_id.is_some() && reply.task_id.is_none());
        assert!(matches!(kernel.get(sent.id()).await, Err(Error::TaskNotFound(_))));
        let list = ListFilter { page_size: 10, ..ListFilter::default() };
        let mut listing = kernel.engine.list(&Address::Root, &Caller::local(), list).await.unwrap();
        assert_eq!((listing.total, listing.next().await.unwrap().is_none()), (0, true));
        let SendStream::Message(streamed) = kernel.send("quick").await.stream(StreamEnd::Terminal, None).await else {
            panic!("a task stream instead of a message")
        };
        assert_eq!(streamed.joined_text(), "here you are");
    });
}

#[test]
fn a_whole_message_is_replied_with_as_it_is_but_for_where_it_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let said = Message {
        message_id: "theirs".into(),
        task_id: Some("elsewhere".into()),
        context_id: Some("elsewhere".into()),
        metadata: Some(serde_json::from_str(r#"{"confidence": 0.9}"#).unwrap()),
        extensions: vec!["urn:example:confidence".to_owned()],
        ..Message::text(Role::User, "here you are")
    };
    let script = Script::new(move |turn: Turn, task: TaskHandle| {
        let said = said.clone();
        async move {
            if turn.text() == "work" {
                task.status("working on it").await?;
            }
            Ok(task.reply_message(said).await?)
        }
    });
    let kernel = Kernel::open(folder.path(), script.with(|manifest| manifest.replies = Replies::Either));
    kernel.run(async {
        let SendResult::Message(reply) = kernel.send("quick").await.answer().await else { panic!("a task") };
        let task = answer_task(&kernel.send("work").await).await;
        let (last, own) = (task.status.message.unwrap(), Some(task.context_id));
        assert_eq!((last.task_id.as_ref(), &last.context_id), (Some(&task.id), &own));
        assert_eq!((reply.task_id.as_ref(), reply.context_id == own), (None, false));
        assert_ne!(reply.context_id, Some("elsewhere".into()), "it belongs to the conversation here");
        for message in [reply, last] {
            assert_eq!((message.role, message.message_id.as_str()), (Role::Agent, "theirs"));
            let metadata = message.metadata.as_ref().unwrap();
            assert_eq!(metadata.get("confidence").unwrap().as_str(), "0.9");
            assert_eq!(message.extensions, ["urn:example:confidence"]);
        }
    });
}

#[test]
fn the_first_call_of_an_agent_decides_whether_it_is_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel::open(folder.path(), replier(Replies::Either));
    kernel.run(async {
        let task = answer_task(&kernel.send("work").await).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(status_text(&task), "here you are");
        let mut now = request(message("quick"));
        now.return_immediately = true;
        let sent = kernel.send_as(&Caller::local(), now).await.unwrap();
        let task = answer_task(&sent).await;
        assert_eq!(status_text(&task), "here you are", "asked not to wait, it gets a task");
    });
}

#[test]
fn a_stream_that_may_be_answered_directly_waits_for_its_turn_without_a_task_to_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(|turn: Turn, task: TaskHandle| async move {
        if turn.text() == "hold" {
            task.working().await?;
            task.canceled().await;
            return Ok(());
        }
        Ok(task.reply(vec![Part::text("here you are")]).await?)
    });
    let script = script.with(|manifest| manifest.replies = Replies::Either);
    let kernel = Kernel::with_settings(folder.path(), script, Settings { running_tasks: 1, ..Settings::default() });
    kernel.run(async {
        let holding = kernel.send("hold").await;
        while kernel.get(holding.id()).await.is_err() {
            tokio::task::yield_now().await;
        }
        let queued = kernel.send("quick").await;
        let id = queued.id().clone();
        let mut streaming = Box::pin(queued.stream(StreamEnd::Terminal, None));
        assert!((&mut streaming).now_or_never().is_none(), "its agent has not decided how it answers");
        assert!(matches!(kernel.get(&id).await, Err(Error::TaskNotFound(_))));
        let mut now = request(message("quick"));
        now.return_immediately = true;
        let seen = kernel.send_as(&Caller::local(), now).await.unwrap();
        let task = kernel.get(seen.id()).await.unwrap();
        assert_eq!(task.metadata.unwrap().get(QUEUE_POSITION_KEY).unwrap().as_str(), "2");
        kernel.cancel(holding.id()).await.unwrap();
        let SendStream::Message(reply) = streaming.await else { panic!("a task instead of a message") };
        assert_eq!(reply.joined_text(), "here you are");
    });
}
