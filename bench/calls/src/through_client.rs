//! The client as its users call it: the agent's card found by its address, a message of its own for every call, the answer
//! read into a task.

use anyhow::Context as _;
use switchboard_a2a::{Message, Role, SendRequest};
use switchboard_client::{CallContext, Client, Peer, egress};

use crate::Caller;

/// Copies share the client.
#[derive(Clone)]
pub(crate) struct ThroughClient {
    client: Client,
}

impl ThroughClient {
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let egress = egress().context("the way out cannot be set up")?;
        Ok(Self { client: Client::new(egress, Peer::new(url))? })
    }
}

impl Caller for ThroughClient {
    async fn call(&mut self) -> anyhow::Result<()> {
        let message = Message::text(Role::User, "hello");
        let request = SendRequest { tenant: None, message, configuration: None, metadata: None };
        let outcome = self.client.send(&CallContext::default(), request).await?;
        anyhow::ensure!(outcome.is_success(), "the task came to {outcome:?}");
        Ok(())
    }
}
