//! Agents that do one thing, so that a test sees what the server adds.

use std::sync::Arc;

use switchboard_engine::{Agent, AgentError, Manifest, Start, TaskHandle, Turn};
use tokio::sync::{Notify, mpsc};

/// Answers with what it was told, in one commit with the message.
pub(crate) struct Echo;

impl Agent for Echo {
    fn manifest(&self) -> Manifest {
        let manifest = Manifest::new("Echo", "Repeats <what> it's & was \"told\"");
        Manifest { start: Start::WithCommit, ..manifest }
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.complete_with(turn.text()).await?;
        Ok(())
    }
}

/// Works until it is let go, and says when it has begun.
pub(crate) struct Gate {
    pub(crate) began: mpsc::UnboundedSender<()>,
    pub(crate) open: Arc<Notify>,
}

impl Agent for Gate {
    fn manifest(&self) -> Manifest {
        Manifest::new("Gate", "Works until it is let go")
    }

    async fn run(&self, _turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.working().await?;
        // A test that does not listen has no use for the news.
        let _ = self.began.send(());
        self.open.notified().await;
        task.complete_with("let go").await?;
        Ok(())
    }
}
