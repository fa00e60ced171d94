//! An agent of your own, as small as it can be: it greets its callers.
//! `cargo run -p hello-agent`, then copy one of the lines it prints.

use switchboard::{Agent, AgentError, Manifest, StartError, TaskHandle, Turn};

struct Hello;

impl Agent for Hello {
    fn manifest(&self) -> Manifest {
        Manifest::new("Hello", "Greets its callers")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.text(format!("Hello, {}!", turn.text())).await?;
        Ok(task.complete().await?)
    }
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    switchboard::host("hello", Hello).await
}
