//! The guard: whether a turn may call an agent, and whether a message with a delegation chain may begin a task.
//!
//! Of our own tasks the chain is their rows, and nothing is parsed. What other servers claim comes before it and only
//! tightens: more hops are a longer chain and more visits, and no hop gives a right. How many tasks there are is counted
//! by the append that adds one, because two calls may be made at a time.

use switchboard_a2a::{Json, Message, Role, TaskId, TaskState};

use super::chain::{ChainRoot, DelegationChain, Hop};
use super::delegates::{Delegates, DelegationScope};
use super::limits::DelegationLimits;
use super::refusal::{DelegationRefused, RefusalKind};
use crate::call::CallError;
use crate::directory::{Hosted, Served};
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::handle::TaskHandle;
use crate::ids::{AgentName, CallerId};
use crate::manifest::Execution;
use crate::routing_decision::RoutingDecision;
use crate::store::TaskIdentity;
use crate::store::lineage::TreeLimits;

impl Engine {
    /// This server in delegation chains: the id of its store, made once, which says nothing of its address.
    pub fn node_id(&self) -> &str {
        &self.inner.node_id
    }

    /// Registers the listener for calls and messages that the guard refuses. Only the first one counts.
    pub fn on_refusal(&self, listener: super::RefusalListener) {
        if self.inner.refusals.set(listener).is_err() {
            tracing::warn!("a listener for refused calls is already registered");
        }
    }
}

impl TaskHandle {
    /// The delegation chain of what this task calls: the tasks above it, here and on the servers before, and itself. It is
    /// the same whenever it is asked for.
    pub async fn delegation_chain(&self) -> Result<DelegationChain, Error> {
        let received = self.received_chain()?;
        let hops = self.hops(received.as_ref()).await?;
        let own = self.engine.deadline_of(&self.live.core.lock());
        let Some(received) = received else {
            let first = hops.first().map(|hop| ChainRoot { node: hop.node.clone(), task: hop.task.clone() });
            let here = || ChainRoot { node: self.engine.node_id.clone(), task: self.id().to_string() };
            let root = first.unwrap_or_else(here);
            return Ok(DelegationChain { root, hops, deadline: own, more: Default::default() });
        };
        let deadline = own.into_iter().chain(received.deadline).min();
        Ok(DelegationChain { hops, deadline, ..received })
    }

    /// Ends this task with REJECTED if it would wait for a task that waits for it: one of those `ahead` of it has called
    /// it, or has called what has. `place` is what it would wait for. Says whether it has.
    pub async fn rejects_deadlock(&self, ahead: &[TaskId], place: &str) -> Result<bool, CallError> {
        let Some(above) = self.live.task.lineage.ancestors else { return Ok(false) };
        let rows = self.engine.store.ancestors(above.parent, usize::MAX).await.map_err(Error::from)?;
        let Some(holder) = rows.iter().find(|row| ahead.contains(&row.task.id)) else { return Ok(false) };
        let mut hops = self.hops(self.received_chain()?.as_ref()).await?;
        // The task itself is what the refusal is about.
        hops.pop();
        let (agent, task) = (&holder.task.agent, &holder.task.id);
        let problem = format!(
            "it would wait for {place} until task {task} of agent {agent} is done, which waits for this task: call an \
             agent that works elsewhere or in a worktree, or end first"
        );
        let refused =
            DelegationRefused::new(RefusalKind::Deadlock, &self.engine.node_id, self.agent(), &hops, &problem);
        let (message, metadata) = (Message::text(Role::Agent, refused.problem.clone()), refused.kind.metadata());
        self.engine.report_refusal(refused.into(), self.live.task.payer());
        let mark = self.push_status(TaskState::Rejected, Some(message), Some(metadata))?;
        self.committed(mark).await?;
        Ok(true)
    }

    /// The agents that its agent may call.
    pub fn delegates(&self) -> Delegates {
        self.served().map(|own| own.switches.delegation.delegates.clone()).unwrap_or_default()
    }

    /// Refuses a call that its agent may not make, or that makes the chain too long; says how many tasks there may be.
    pub(crate) async fn check_call(
        &self,
        to: &Hosted,
        served: &Served,
        skill: Option<&str>,
    ) -> Result<TreeLimits, Error> {
        let delegation = self.served().map(|own| own.switches.delegation.clone()).unwrap_or_default();
        let limits = delegation.limits.over(self.engine.settings.delegation);
        let received = self.received_chain()?;
        let hops = self.hops(received.as_ref()).await?;
        let refuse = |kind, problem: &str| {
            Err(DelegationRefused::new(kind, &self.engine.node_id, &to.name, &hops, problem).into())
        };
        // The server's own carry out what was routed, and each of their calls is to an agent that was allowed there.
        if !to.name.is_own() {
            self.check_delegate(&to.name, served.manifest.execution, skill, &hops)?;
        }
        if self.engine.settings.delegation_scope == DelegationScope::Both
            && !self.engine.payer_allows(&self.live.task, &to.name)
        {
            let (payer, to) = (self.live.task.payer(), &to.name);
            return refuse(
                RefusalKind::NotAllowed,
                &format!("the key {payer}, which pays for this, may not call {to}"),
            );
        }
        check_chain(&self.engine.node_id, limits, &to.name, &hops)?;
        Ok(TreeLimits { max_children: limits.max_children, max_tree: limits.max_tree })
    }

    /// Refuses an agent, or a skill of it, that its agent's `delegates` do not name.
    fn check_delegate(
        &self,
        to: &AgentName,
        execution: Execution,
        skill: Option<&str>,
        hops: &[Hop],
    ) -> Result<(), DelegationRefused> {
        let delegates = self.delegates();
        if delegates.allow(to, execution, skill) {
            return Ok(());
        }
        let agent = self.agent();
        let problem = match (delegates.name(to, execution), skill) {
            (false, _) => format!("agent {agent} may not call {to}: its `delegates` would have to name it"),
            (true, None) => format!("agent {agent} may not call {to} without a skill: its `delegates` name which"),
            (true, Some(_)) => format!("agent {agent} may not call {to} for that skill: its `delegates` name others"),
        };
        Err(DelegationRefused::new(RefusalKind::NotAllowed, &self.engine.node_id, to, hops, &problem))
    }

    /// Refuses what its program sends to an agent that hands it on, or to a child, with a skill that its agent's `delegates`
    /// do not name for each of those that get it. Without a skill a child goes on as it has begun.
    pub(crate) async fn check_called(
        &self,
        to: &AgentName,
        decision: RoutingDecision,
        skill: Option<&str>,
    ) -> Result<(), Error> {
        let hops = self.hops(self.received_chain()?.as_ref()).await?;
        let reached: Vec<AgentName> = if to.is_own() { decision.targets().collect() } else { vec![to.clone()] };
        for agent in reached {
            // One that has gone cannot be called for any skill.
            let Some(hosted) = self.engine.directory.find(&agent) else { continue };
            self.check_delegate(&agent, hosted.execution(), skill, &hops)?;
        }
        Ok(())
    }

    /// What the root's message claimed of where it came from. Calls hand it down, so it outlives the root.
    pub(crate) fn sent_chain(&self) -> Option<Json> {
        self.live.core.lock().fold.kernel.chain.clone()
    }

    fn received_chain(&self) -> Result<Option<DelegationChain>, Error> {
        let Some(sent) = self.sent_chain() else { return Ok(None) };
        let problem = |error: serde_json::Error| Error::retry_soon(format!("the stored chain is damaged: {error}"));
        sent.read().map(Some).map_err(problem)
    }

    /// The tasks from the first one of the chain to this one.
    async fn hops(&self, received: Option<&DelegationChain>) -> Result<Vec<Hop>, Error> {
        let mut hops = received.map(|chain| chain.hops.clone()).unwrap_or_default();
        if let Some(above) = self.live.task.lineage.ancestors {
            let rows = self.engine.store.ancestors(above.parent, usize::MAX).await?;
            hops.extend(rows.iter().rev().map(|row| self.engine.hop(&row.task)));
        }
        hops.push(self.engine.hop(&self.live.task));
        Ok(hops)
    }
}

impl EngineState {
    pub(super) fn hop(&self, task: &TaskIdentity) -> Hop {
        Hop { node: self.node_id.clone(), agent: task.agent.to_string(), task: task.id.to_string() }
    }

    /// Whether the caller of the root may call an agent, as its key is now.
    fn payer_allows(&self, task: &TaskIdentity, to: &AgentName) -> bool {
        let payer = self.callers.get().and_then(|callers| callers.find(task.payer()));
        payer.is_some_and(|payer| payer.scopes.agents.allows(to))
    }

    /// Tells of a refusal of a caller; gives the error on.
    pub(crate) fn report_refusal(&self, error: Error, caller: &CallerId) -> Error {
        if let (Error::Delegation(refused), Some(listener)) = (&error, self.refusals.get()) {
            listener(refused, caller);
        }
        error
    }
}

/// Refuses a message whose chain is too long, or has its agent too often. It comes from another server, which is not
/// asked for more than that.
pub(crate) fn check_received(
    engine: &EngineState,
    to: &AgentName,
    served: &Served,
    chain: &DelegationChain,
) -> Result<(), DelegationRefused> {
    let limits = served.switches.delegation.limits.over(engine.settings.delegation);
    check_chain(&engine.node_id, limits, to, &chain.hops)
}

fn check_chain(node: &str, limits: DelegationLimits, to: &AgentName, hops: &[Hop]) -> Result<(), DelegationRefused> {
    let refuse = |kind, problem: &str| Err(DelegationRefused::new(kind, node, to, hops, problem));
    let most = limits.max_depth;
    if hops.len() >= most {
        let depth = hops.len() + 1;
        let problem = format!("agent {to} would be task {depth} of a chain of at most {most} (delegation.maxDepth)");
        return refuse(RefusalKind::Depth, &problem);
    }
    let visits = hops.iter().filter(|hop| hop.node == node && hop.agent == to.as_str()).count();
    if visits > limits.revisit {
        let most = limits.revisit + 1;
        let problem =
            format!("agent {to} is in the chain {visits} times, and may be {most} times (delegation.revisit)");
        return refuse(RefusalKind::Loop, &problem);
    }
    Ok(())
}
