//! Routing a message to an agent of the server's own that goes on with a conversation by itself: to its live task there, or to
//! a new one. No address names such an agent, and no caller picks the task.

use switchboard_a2a::{Json, Timestamp};

use crate::caller::Caller;
use crate::delegation::DelegationChain;
use crate::directory::{Address, Resolved};
use crate::engine::{Engine, EngineState, shutting_down};
use crate::error::Error;
use crate::fold::ROUTING_KEY;
use crate::ids::AgentName;
use crate::route::{Destination, Routed, scope_of};
use crate::store::{Conversation, Phase, TaskRow};
use crate::submit::{IncomingMessage, takes_messages};

/// The newest task of a conversation, which takes no more messages.
#[derive(Clone, Debug)]
pub struct LastOwnTask {
    /// How it was routed.
    pub decision: Option<Json>,
    /// Since when it has its state.
    pub at: Timestamp,
}

impl Engine {
    /// Finds where a message to an agent of the server's own goes, by its `contextId`: to the send that it repeats, to the
    /// agent's task there that takes messages, or to a new one, for which `decide` says what is stored as its routing
    /// decision. Until it is sent, no other message of that conversation is routed.
    pub async fn route_own(
        &self,
        caller: &Caller,
        agent: &AgentName,
        incoming: IncomingMessage,
        decide: impl FnOnce(Option<LastOwnTask>) -> Result<Json, Error> + Send,
    ) -> Result<Routed, Error> {
        let engine = &self.inner;
        if engine.closing.is_cancelled() {
            return Err(shutting_down());
        }
        let Some(context) = incoming.message.context_id.clone() else {
            return Err(Error::Invalid { field: "message.contextId", problem: "it is missing".to_owned() });
        };
        let address = Address::Agent(agent.clone());
        let (sent, chain) = DelegationChain::of(&incoming.message)?.unzip();
        let (mut key, mut repeated) = (None, None);
        if let Some(asked) = incoming.idempotency_key.clone() {
            let (reserved, found) = engine.look_up(scope_of(caller, &address, asked), None).await?;
            (key, repeated) = (Some(reserved), found);
        }
        let mut conversation = None;
        let destination = match repeated {
            Some(repeated) => repeated,
            None => {
                let turn = scope_of(caller, &address, format!("conversation:{context}"));
                conversation = Some(engine.key_reservations.reserve(&turn).await);
                let of = Conversation { owner: caller.id.clone(), agent: agent.clone(), context };
                match engine.store.context(of, 1).await?.pop() {
                    Some(row) => engine.own_destination(agent, row, decide).await?,
                    None => engine.new_own(agent, decide(None)?)?,
                }
            }
        };
        let incoming = IncomingMessage { address, ..incoming };
        Ok(Routed {
            deadline: chain.and_then(|chain| chain.deadline),
            chain: sent,
            key,
            approves: false,
            _conversation: conversation,
            ..Routed::new(caller.id.clone(), incoming, destination)
        })
    }
}

impl Routed {
    /// How many messages wait in the task that it goes to.
    pub fn waiting(&self) -> usize {
        match &self.destination {
            Destination::Task(live) => live.core.lock().fold.kernel.unread.len(),
            _ => 0,
        }
    }
}

impl EngineState {
    /// The newest task of the conversation if it takes the message, else a new one.
    async fn own_destination(
        &self,
        agent: &AgentName,
        row: TaskRow,
        decide: impl FnOnce(Option<LastOwnTask>) -> Result<Json, Error>,
    ) -> Result<Destination, Error> {
        let Some(live) = self.find_task(&row.task.id).await? else { return self.new_own(agent, decide(None)?) };
        let last = {
            let core = live.core.lock();
            if core.row.phase != Phase::Done && takes_messages(&live, &core).is_ok() {
                None
            } else {
                let metadata = core.fold.task.metadata.as_ref();
                let decision = metadata.and_then(|metadata| metadata.get(ROUTING_KEY)).cloned();
                Some(LastOwnTask { decision, at: core.row.status_at })
            }
        };
        match last {
            None => Ok(Destination::Task(live)),
            last => self.new_own(agent, decide(last)?),
        }
    }

    fn new_own(&self, agent: &AgentName, decision: Json) -> Result<Destination, Error> {
        let missing = || Error::Unsupported(format!("this server has no {agent}"));
        let hosted = self.directory.find(agent).ok_or_else(missing)?;
        let served = hosted.served();
        Ok(Destination::New(Resolved { decision: Some(decision), ..Resolved::new(hosted) }, served))
    }
}
