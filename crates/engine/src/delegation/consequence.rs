//! The delegation chain of what an event of a task causes outside of its turns, such as a message that a route sends: the
//! chain of the task, so that what it causes counts as deep as if the task had called it.

use std::collections::BTreeMap;

use switchboard_a2a::Json;

use super::chain::{ChainRoot, DelegationChain, Hop};
use crate::engine::Engine;
use crate::error::Error;
use crate::event::Event;
use crate::ids::{Seq, TaskKey};

impl Engine {
    /// The chain from the first task of its tree to a task, whether it has ended or not; nothing if the task is gone. It has
    /// no deadline: what the task causes may outlive it.
    pub async fn chain_after(&self, task: TaskKey) -> Result<Option<DelegationChain>, Error> {
        let engine = &self.inner;
        let above = engine.store.ancestors(task, usize::MAX).await?;
        let (Some(own), Some(root)) = (above.first(), above.last()) else { return Ok(None) };
        let hops: Vec<Hop> = above.iter().rev().map(|row| engine.hop(&row.task)).collect();
        let Some(received) = self.received_chain(task).await? else {
            let root = ChainRoot { node: engine.node_id.clone(), task: root.task.id.to_string() };
            return Ok(Some(DelegationChain { root, hops, deadline: None, more: BTreeMap::new() }));
        };
        let damaged = |error: serde_json::Error| Error::damaged_log(&own.task.id, "its delegation chain", &error);
        let mut chain: DelegationChain = received.read().map_err(damaged)?;
        chain.hops.extend(hops);
        Ok(Some(DelegationChain { deadline: None, ..chain }))
    }

    /// What the first message of a task says of where it came from. Calls hand it down, so a child's says it too.
    async fn received_chain(&self, task: TaskKey) -> Result<Option<Json>, Error> {
        let rows = self.inner.store.read(task, Seq(0), 1).await?;
        let first = rows.first().and_then(|row| row.line(Seq(1))).map(Event::decode);
        match first {
            Some(Ok(Event::Received(received))) => Ok(received.chain.clone()),
            _ => Ok(None),
        }
    }
}
