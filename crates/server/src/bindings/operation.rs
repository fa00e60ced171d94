//! One operation, whatever its binding: resolves the agent, checks what holds for all operations, and calls the file of
//! the operation.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, Request, TaskId, Version};
use switchboard_engine::{Address, Cursor, Hosted, Served, StreamEnd};

use super::agent_at::agent_at;
use super::error::from_engine;
use super::extensions::DeclaredExtensions;
use super::operation_result::OperationResult;
use super::render::Rendered;
use super::sse::Events;
use super::{cancel, extended_card, get, list, push, rest_files, send, stream, subscribe, tenant};
use crate::edge::authenticate::AuthError;
use crate::response_budget::ReservedBytes;
use crate::{CallerIdentity, RequestContext, State};

/// The response of a short task fits into so much: a buffer that grows is copied each time.
const SHORT_RESPONSE_BYTES: usize = 1024;

/// One operation and its caller.
pub(super) struct OperationCall<'a> {
    pub(super) state: &'a Arc<State>,
    pub(super) address: Address,
    pub(super) dialect: Dialect,
    pub(super) operation: Operation,
    pub(super) identity: &'a Arc<CallerIdentity>,
    pub(super) headers: &'a HeaderMap,
    /// The JSON of the parameters, for what the decoder leaves out. Dropped once the message is submitted: a response that
    /// waits for the budget must not keep the request in memory.
    pub(super) json: Bytes,
    pub(super) declared: DeclaredExtensions,
    pub(super) hosted: Option<Arc<Hosted>>,
    /// That agent as it was served when the operation found it.
    pub(super) served: Option<Arc<Served>>,
    /// The bytes of the response budget that the result takes, once that is known.
    pub(super) reserved: Option<ReservedBytes>,
    /// A file of the request was base64 once, though its sender might have been one that encodes twice.
    pub(super) sent_files_once: bool,
    /// Where a small result is written, behind what the binding puts before it.
    pub(super) out: Vec<u8>,
}

impl<'a> OperationCall<'a> {
    pub(super) fn new(
        state: &'a Arc<State>,
        address: Address,
        dialect: Dialect,
        operation: Operation,
        context: &'a RequestContext,
        json: Bytes,
    ) -> Self {
        Self {
            state,
            address,
            dialect,
            operation,
            identity: &context.identity,
            headers: &context.headers,
            json,
            declared: DeclaredExtensions::read(&context.headers),
            hosted: None,
            served: None,
            reserved: None,
            sent_files_once: false,
            out: Vec::with_capacity(SHORT_RESPONSE_BYTES),
        }
    }

    /// Performs the operation and encodes its result.
    pub(super) async fn answer(&mut self, request: Request) -> Result<Rendered, Error> {
        let result = self.perform(request).await?;
        self.render(result).await
    }

    /// Performs the operation, at the address that its tenant may have selected.
    ///
    /// Sending is the hot path; the others are boxed so that their size is not carried along with every message.
    async fn perform(&mut self, mut request: Request) -> Result<OperationResult, Error> {
        if let Some(named) = request.tenant() {
            self.address = tenant::resolve(self.address.clone(), Some(named))?;
        }
        if let Request::Send(request) = &mut request {
            send::drop_own_metadata(&mut request.message, &mut request.metadata);
        }
        match request {
            Request::Send(request) if self.operation == Operation::SendStreamingMessage => {
                Box::pin(stream::perform(self, request)).await.map(events)
            }
            Request::Send(request) => send::perform(self, request).await,
            Request::Get { id, history_length, .. } => {
                self.find_agent_of(&id).await?;
                Box::pin(get::perform(self, &id, history_length)).await
            }
            Request::List(request) => {
                // At the root no extension is required: the list is of many agents' tasks, and one agent must not hide
                // those of the others.
                self.find_agent()?;
                Box::pin(list::perform(self, request)).await
            }
            Request::Cancel { id, .. } => {
                self.find_agent_of(&id).await?;
                Box::pin(cancel::perform(self, &id)).await
            }
            Request::Subscribe { id, .. } => {
                self.find_agent_of(&id).await?;
                Box::pin(subscribe::perform(self, &id)).await.map(events)
            }
            Request::Push(request) => {
                self.find_agent_of(&push::task_of(&request)).await?;
                Box::pin(push::perform(self, request)).await
            }
            Request::ExtendedCard { .. } => extended_card::perform(self),
        }
    }

    /// At an agent's own address the agent must exist or still serve its tasks, be in the caller's scope, and its required
    /// extensions declared.
    fn find_agent(&mut self) -> Result<(), Error> {
        if self.address == Address::Root {
            return Ok(());
        }
        let directory = self.state.engine.directory();
        let hosted = agent_at(directory.as_ref(), &self.address, &self.identity.caller).map_err(from_engine)?;
        let served = hosted.served();
        self.declared.check(&served.manifest)?;
        (self.hosted, self.served) = (Some(hosted), Some(served));
        Ok(())
    }

    /// The same for an operation on one task.
    async fn find_agent_of(&mut self, id: &TaskId) -> Result<(), Error> {
        match self.address {
            Address::Agent(_) => self.find_agent(),
            Address::Root => Box::pin(self.find_agent_at_root(id)).await,
        }
    }

    /// At the root that is the agent of the task, looked up only if some agent requires anything, because the look-up costs
    /// as much as the reading itself.
    async fn find_agent_at_root(&mut self, id: &TaskId) -> Result<(), Error> {
        let is_old_rest = self.dialect == Dialect::V03Rest;
        let insists = |hosted: &Arc<Hosted>| {
            let served = hosted.served();
            served.manifest.extensions.iter().any(|extension| extension.required)
                || is_old_rest && rest_files::is_set(&served)
        };
        if !self.state.engine.directory().agents().iter().any(insists) {
            return Ok(());
        }
        self.hosted = self.agent_of(id).await;
        self.served = self.hosted.as_ref().map(|hosted| hosted.served());
        self.check_extensions()
    }

    /// The extensions that the agent requires must be declared.
    pub(super) fn check_extensions(&self) -> Result<(), Error> {
        match &self.served {
            Some(served) => self.declared.check(&served.manifest),
            None => Ok(()),
        }
    }

    /// The extensions of its agent that the caller has declared.
    pub(super) fn extensions_of_agent(&self) -> Vec<String> {
        self.served.as_ref().map(|served| self.declared.of_agent(&served.manifest)).unwrap_or_default()
    }

    /// The agent that works on a task the caller can see here.
    pub(super) async fn agent_of(&self, id: &TaskId) -> Option<Arc<Hosted>> {
        // A missing task is reported by the operation itself.
        self.state.engine.agent_of(&self.address, &self.identity.caller, id).await.ok().flatten()
    }

    /// Whether the agent can be streamed from.
    pub(super) fn streams(&self) -> bool {
        self.served.as_ref().is_none_or(|served| served.manifest.streaming)
    }

    /// The cursor of a resumption. One that cannot be read becomes one that no log has.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        let header = self.headers.get("last-event-id").filter(|value| !value.is_empty())?;
        let unknown = || Cursor { epoch: switchboard_engine::ids::Epoch(0), seq: switchboard_engine::Seq(0) };
        Some(header.to_str().ok().and_then(Cursor::parse).unwrap_or_else(unknown))
    }

    /// The event after which a stream to this caller ends.
    pub(super) fn until(&self, served: Option<&Served>) -> StreamEnd {
        let switches = served.map(|served| served.switches.clone()).unwrap_or_default();
        match (self.dialect.version(), self.operation) {
            (Version::V03, _) if switches.v03_close_on_interrupt => StreamEnd::Interrupted,
            (Version::V1, Operation::SendStreamingMessage) if switches.close_on_input_required => {
                StreamEnd::InputRequired
            }
            _ => StreamEnd::Terminal,
        }
    }

    /// The header that echoes active extensions, if there is one to send.
    pub(super) fn activated(&self) -> Option<(http::HeaderName, HeaderValue)> {
        self.declared.activated(self.served.as_ref().map(|served| &served.manifest), self.dialect.version())
    }
}

/// Runs an operation until its caller's key is revoked. What it has begun in the kernel goes on, as if the connection were
/// lost.
pub(super) async fn until_revoked(
    identity: &CallerIdentity,
    // By reference: a future that is passed on by value is kept, and copied, twice.
    operation: Pin<&mut impl Future<Output = Result<Rendered, Error>>>,
) -> Result<Rendered, Error> {
    if identity.revoked.is_cancelled() {
        return Err(AuthError::since(identity).error());
    }
    tokio::select! {
        // The operation first: where it is done at once, there is nothing to be woken for.
        biased;
        outcome = operation => outcome,
        () = identity.revoked.cancelled() => Err(AuthError::since(identity).error()),
    }
}

/// The error of an agent that does not stream.
pub(super) fn no_streaming(hosted: &Hosted) -> Error {
    let message = format!("This operation is not supported: agent {} does not stream", hosted.name);
    Error::with_message(ErrorKind::UnsupportedOperation, message)
}

fn events(events: Events) -> OperationResult {
    OperationResult::Events(Box::new(events))
}
