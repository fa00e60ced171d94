//! Task tokens: how a program that works on a task calls other agents over HTTP, as [`TaskHandle::call`] does in process.
//!
//! A token names a task, the fence its run began under and the task's deadline, under an HMAC with the store's secret. It
//! is good while that very run goes on: each request compares it with the task in memory, so it needs no revocation, and
//! one that leaks after the run opens nothing. What is called with it is a child of the task, and ends with the run.

use std::sync::Arc;

use ring::hmac;
use switchboard_a2a::{TaskId, Timestamp};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::CallError;
use crate::caller::{AgentScope, Caller, CallerRole, Scopes, TaskScope};
use crate::directory::Served;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::handle::TaskHandle;
use crate::ids::{CallerId, Fence};
use crate::live_task::{Core, LiveTask};

/// What every task token begins with, and no key does.
pub const TASK_TOKEN_PREFIX: &str = "swt_";
/// What the store's secret signs here, so that no other use of it makes a token.
const PURPOSE: &[u8] = b"task token\n";

/// What a run may do from outside, once a token was issued for it.
pub(crate) struct TokenGrant {
    /// The fence that the run began under.
    fence: Fence,
    run: u64,
    expires_at: Option<Timestamp>,
    /// Ends the requests of the token's holder with the run.
    revoked: CancellationToken,
    _revoke: DropGuard,
    /// Requests that wait for a child.
    pub(crate) waiting: usize,
    /// A task sees to it that the run has no permit while requests wait.
    pub(crate) stands_aside: bool,
}

/// A token as it is written: `swt_TASK.FENCE.EXPIRY.HMAC`, the expiry in milliseconds or `-`.
struct TaskToken<'a> {
    signed: &'a str,
    task: &'a str,
    fence: Fence,
    expires_at: Option<Timestamp>,
    tag: Vec<u8>,
}

impl<'a> TaskToken<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (signed, tag) = text.strip_prefix(TASK_TOKEN_PREFIX)?.rsplit_once('.')?;
        let mut fields = signed.split('.');
        let (task, fence, expiry) = (fields.next()?, fields.next()?, fields.next()?);
        if fields.next().is_some() {
            return None;
        }
        let expires_at = match expiry {
            "-" => None,
            at => Some(Timestamp(at.parse().ok()?)),
        };
        Some(Self { signed, task, fence: Fence(fence.parse().ok()?), expires_at, tag: unhex(tag)? })
    }
}

impl TaskHandle {
    /// A token with which a program that works for this run may call the agents that its agent delegates to; none if
    /// there are none. What an earlier run has called, and has not ended, is canceled: that run's program is gone.
    pub async fn issue_token(&self) -> Result<Option<String>, CallError> {
        if self.served().is_none_or(|served| served.switches.delegation.delegates.is_none()) {
            return Ok(None);
        }
        // Children name their parent by the key that its first commit gives it.
        self.committed_key().await?;
        self.engine.cancel_children(&self.live).await?;
        let (fence, expires_at) = {
            let mut core = self.live.core.lock();
            if self.must_stop(&core) {
                return Err(self.stopped(&mut core).into());
            }
            let expires_at = self.engine.deadline_of(&core);
            let Some(fence) = core.turn.driven().map(|driven| driven.fence) else {
                return Err(self.stopped(&mut core).into());
            };
            let grant = core.output.run.grant.get_or_insert_with(|| TokenGrant::new(self.run, fence, expires_at));
            (grant.fence, grant.expires_at)
        };
        let expiry = expires_at.map_or("-".to_owned(), |at| at.0.to_string());
        let signed = format!("{}.{}.{expiry}", self.id(), fence.0);
        let tag = hmac::sign(&self.engine.token_key(), &[PURPOSE, signed.as_bytes()].concat());
        Ok(Some(format!("{TASK_TOKEN_PREFIX}{signed}.{}", hex(tag.as_ref()))))
    }

    /// Whether the program of this run waits for what it has called.
    pub fn waits_for_calls(&self) -> bool {
        let core = self.live.core.lock();
        self.grant(&core).is_some_and(|grant| grant.waiting > 0)
    }

    pub(crate) fn grant<'a>(&self, core: &'a Core) -> Option<&'a TokenGrant> {
        core.output.run.grant.as_ref().filter(|grant| grant.run == self.run && core.turn.is_run(self.run))
    }

    /// The agent as this run has it.
    pub(crate) fn served(&self) -> Option<Arc<Served>> {
        let own = self.live.core.lock().served.clone();
        own.or_else(|| self.live.hosted.as_ref().map(|hosted| hosted.served()))
    }
}

impl TokenGrant {
    fn new(run: u64, fence: Fence, expires_at: Option<Timestamp>) -> Self {
        let revoked = CancellationToken::new();
        let _revoke = revoked.clone().drop_guard();
        Self { fence, run, expires_at, revoked, _revoke, waiting: 0, stands_aside: false }
    }
}

impl Engine {
    /// The caller of a task token, and what is cancelled when its run is over; none if the token is not good, or no
    /// longer.
    pub fn task_caller(&self, token: &str) -> Option<(Caller, CancellationToken)> {
        let engine = &self.inner;
        let token = TaskToken::parse(token)?;
        hmac::verify(&engine.token_key(), &[PURPOSE, token.signed.as_bytes()].concat(), &token.tag).ok()?;
        if token.expires_at.is_some_and(|at| at <= engine.clock.now()) {
            return None;
        }
        let live = engine.live.get(&TaskId::from(token.task))?;
        let (run, parent, revoked) = {
            let core = live.core.lock();
            let grant = core.output.run.grant.as_ref()?;
            let goes_on = core.turn.is_run(grant.run) && !core.is_done() && core.output.stop.is_none();
            if !goes_on || grant.fence != token.fence || core.turn.driven().is_none() {
                return None;
            }
            (grant.run, core.key?, grant.revoked.clone())
        };
        Some((engine.caller_of(&live, run, token.fence, parent), revoked))
    }
}

impl EngineState {
    fn token_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.store.secret())
    }

    fn caller_of(
        self: &Arc<Self>,
        live: &Arc<LiveTask>,
        run: u64,
        fence: Fence,
        parent: crate::ids::TaskKey,
    ) -> Caller {
        let handle = TaskHandle { engine: self.clone(), live: live.clone(), run };
        let delegates = handle.delegates();
        let all = self.directory.agents();
        let allowed = all.iter().filter(|hosted| delegates.name(&hosted.name, hosted.served().manifest.execution));
        let agents = allowed.map(|hosted| hosted.name.clone()).collect();
        let scope = TaskScope { parent, fence, agents, handle };
        let id = CallerId::from(format!("~{}@{}", live.task.agent, live.task.payer()));
        Caller { id, scopes: Scopes { agents: AgentScope::Task(Arc::new(scope)), role: CallerRole::None } }
    }

    /// Ends what a run's token has begun, with the run.
    pub(crate) fn end_grant(self: &Arc<Self>, live: &Arc<LiveTask>) {
        let grant = live.core.lock().output.run.grant.take();
        if grant.is_none() {
            return;
        }
        drop(grant);
        let (engine, task) = (self.clone(), live.clone());
        self.work.spawn(async move {
            if let Err(error) = engine.cancel_children(&task).await {
                tracing::warn!(task = %task.task.id, %error, "tasks that a program has begun could not be canceled");
            }
        });
    }
}

/// A request that waits for a child on behalf of a run: while there is one, the run has no permit, because the child may
/// need it.
pub(crate) struct WaitingCall(TaskHandle);

impl WaitingCall {
    pub(crate) fn begin(handle: &TaskHandle) -> Option<Self> {
        let mut core = handle.live.core.lock();
        handle.grant(&core)?;
        let grant = core.output.run.grant.as_mut()?;
        grant.waiting += 1;
        let is_first = !std::mem::replace(&mut grant.stands_aside, true);
        drop(core);
        if is_first {
            // Not tracked: a shutdown does not wait for a turn that waits for another.
            tokio::spawn(stand_aside(handle.clone()));
        }
        Some(Self(handle.clone()))
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let mut core = self.0.live.core.lock();
        if self.0.grant(&core).is_some()
            && let Some(grant) = core.output.run.grant.as_mut()
        {
            grant.waiting -= 1;
        }
        drop(core);
        self.0.live.wake();
    }
}

/// Releases the permit of a run until no request waits, as often as one does.
async fn stand_aside(handle: TaskHandle) {
    loop {
        let is_over = |core: &mut Core| handle.grant(core).is_none_or(|grant| grant.waiting == 0).then_some(());
        let over = handle.live.wait_for(is_over);
        if handle.release_permit_while(over).await.is_err() {
            return;
        }
        let mut core = handle.live.core.lock();
        if handle.grant(&core).is_none() {
            return;
        }
        let Some(grant) = core.output.run.grant.as_mut() else { return };
        if grant.waiting == 0 {
            grant.stands_aside = false;
            return;
        }
    }
}

/// The error of a task that the holder of a token may not see.
pub(crate) fn not_a_child(id: &TaskId) -> Error {
    Error::TaskNotFound(id.clone())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
