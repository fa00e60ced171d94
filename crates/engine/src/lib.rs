//! The kernel: a task is its event log, there is one way to change it and one way to watch it.
//!
//! [`Engine`] takes messages in, runs [`Agent`]s on them and lets any number of readers follow. It knows no HTTP and
//! no SQL: what is durable is a [`store::Store`], who serves is a [`Directory`], what time it is a [`clock::Clock`].

mod admission;
mod agent;
mod append;
mod batch;
mod blocking_task;
mod bus;
mod byte_cache;
mod call;
pub mod caller;
mod cancel;
pub mod clock;
mod cooldowns;
mod decide;
mod delegation;
mod directory;
mod engine;
mod error;
pub mod event;
mod expiry;
mod feed;
mod final_message;
pub mod fold;
mod handle;
mod history_cache;
mod idempotency;
pub mod ids;
mod inline_turn;
mod list;
mod live_task;
mod live_tasks;
mod log_reader;
pub mod manifest;
mod media_types;
pub mod metric_definitions;
mod operator_tasks;
mod orphans;
mod output;
mod permit_release;
mod progress;
mod queue;
mod read;
pub mod reason;
mod recover;
mod result_check;
mod review;
mod reviewed_skills;
mod route;
mod route_own;
mod routing_decision;
mod routing_hints;
mod settings;
mod settled;
mod sha256;
mod shutdown;
pub mod store;
mod submit;
mod sweep;
mod terminal_task_cache;
mod tool_call;
mod trace_context;
mod transition;
mod turn;
mod usage;
mod watch;
mod webhook;

pub use agent::{Agent, AgentError, Cause, Recovery, TaskView, Turn, WrappedAgent};
pub use blocking_task::{BLOCKED_BY_KEY, BlockingTask, BlockingTaskView};
pub use bus::{Announcement, Announcements, Bus, LocalBus};
pub use call::{Call, CallError, CallOwner, Called};
pub use caller::{AgentScope, Caller, CallerRole, Callers, Scopes, UnknownRole};
pub use decide::{Answered, ReviewAnswer};
pub use delegation::{
    AgentDelegation, CHAIN_KEY, ChainRoot, Delegate, Delegates, DelegationChain, DelegationLimits, DelegationRefused,
    DelegationScope, Hop, LimitOverrides, RefusalKind, RefusalListener, TASK_TOKEN_PREFIX, UnknownDelegate,
};
pub use directory::{
    Address, CooldownRule, Directory, FixedDirectory, Hosted, Resolved, RoutingRequest, Served, Switches, WebhookEvents,
};
pub use engine::{Engine, state_label};
pub use error::Error;
pub use event::{EventKind, LoggedEvent, Usage};
pub use feed::{FeedClient, FeedItem, FeedReader};
pub use handle::{ShutdownSave, Stopped, TaskHandle};
pub use ids::{AgentName, CallerId, Cursor, Seq};
pub use list::{TaskPage, TaskPageEntry};
pub use log_reader::LogReader;
pub use manifest::{Execution, Manifest, Park, Replies, Skill, Start, Tool};
pub use operator_tasks::LiveTaskSummary;
pub use progress::{PROGRESS_KEY, Progress};
pub use read::{QUEUE_POSITION_KEY, QUEUE_REASON_KEY, ReadWithin, TaskReading};
pub use result_check::{INVALID_RESULT, REPAIR_KEY, ResultCheck, ResultVerdict};
pub use review::{Decision, ExpiryAction, QUESTION_KEY, Review, Reviewer, Verdict};
pub use reviewed_skills::ReviewedSkills;
pub use route::Routed;
pub use route_own::LastOwnTask;
pub use routing_hints::RoutingHints;
pub use settings::Settings;
pub use sha256::sha256;
pub use store::ListFilter;
pub use submit::{IncomingMessage, Submitted};
pub use switchboard_a2a::extension::Emit;
pub use switchboard_a2a::extension::tool_call::ToolCall;
pub use tool_call::TOOL_CALL_URI;
pub use trace_context::{TraceContext, Traceparent};
pub use usage::TaskUsage;
pub use watch::{LogStream, SendResult, SendStream, StreamEnd, Subscription};
pub use webhook::AppendListener;
