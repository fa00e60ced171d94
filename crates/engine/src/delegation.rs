//! Delegation: tasks that start tasks, here and across servers, within limits.
//!
//! Without them two agents that ask each other never end, and one that splits its work splits it without end. The guard
//! stands before every call of a turn and before every message that brings a delegation chain; what it refuses has not
//! begun, and the calling agent can go on.

mod approval;
mod chain;
mod consequence;
mod delegates;
mod guard;
mod limits;
mod refusal;
mod task_token;

pub(crate) use approval::check_no_approval;
pub use chain::{CHAIN_KEY, ChainRoot, DelegationChain, Hop};
pub use delegates::{Delegate, Delegates, DelegationScope, UnknownDelegate};
pub(crate) use guard::check_received;
pub use limits::{AgentDelegation, DelegationLimits, LimitOverrides};
pub use refusal::{DelegationRefused, RefusalKind, RefusalListener};
pub use task_token::TASK_TOKEN_PREFIX;
pub(crate) use task_token::{TokenGrant, WaitingCall, not_a_child};
