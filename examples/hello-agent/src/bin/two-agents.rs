//! Two agents in one program, each at an address of its own. `cargo run -p hello-agent --bin two-agents`.

use switchboard::{Agent, AgentError, Host, Manifest, StartError, TaskHandle, Turn};

/// Begins its answer with these words.
struct Greeter(&'static str);

impl Agent for Greeter {
    fn manifest(&self) -> Manifest {
        Manifest::new(self.0, "Greets its callers")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        Ok(task.complete_with(format!("{}, {}!", self.0, turn.text())).await?)
    }
}

#[tokio::main]
async fn main() -> Result<(), StartError> {
    Host::new().agent("welcome", Greeter("Welcome")).agent("goodbye", Greeter("Goodbye")).run().await
}
