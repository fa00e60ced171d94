//! Agents that answer with a message instead of a task.

use switchboard_a2a::{Part, TaskState};
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
