//! `limits`: how much Switchboard takes on before it says no.
//! Beyond a limit new work is refused with an error that says when to try again; nothing already accepted is harmed.

use serde::Serialize;

use crate::config::section::Section;
use crate::config::size::{Count, Size};
use crate::section_keys;

/// What is taken on at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Tasks being worked on at a time.
    ///
    /// Further ones wait in the queue.
    pub running_tasks: Count,
    /// Tasks being worked on at a time for one caller.
    pub running_per_caller: Count,
    /// Tasks being worked on at a time by one agent.
    pub running_per_agent: Count,
    /// Tasks followed at a time that are worked on by agents elsewhere.
    ///
    /// They do not count as being worked on here; further ones wait in the queue.
    pub remote_tasks: Count,
    /// Messages waiting for their turn.
    pub queued_turns: Count,
    /// Tasks waiting for an answer.
    pub parked_tasks: Count,
    /// Tasks of one caller waiting for an answer.
    pub parked_per_caller: Count,
    /// Open connections.
    pub connections: Count,
    /// Open connections of one address, of IPv6 one /64 network.
    ///
    /// Loopback is exempt. So are `server.trustedProxies`: there it is requests under way of one client of theirs.
    pub connections_per_address: Count,
    /// Open event streams.
    pub streams: Count,
    /// Open event streams of one caller.
    pub streams_per_caller: Count,
    /// Bytes of responses that clients have not taken yet.
    ///
    /// Beyond them responses wait before they are rendered. A caller with little in flight does not wait for the others.
    pub response_bytes: Size,
    /// Bytes of responses that the clients of one caller have not taken yet.
    ///
    /// Beyond them the caller's next responses wait. A single larger response is sent when nothing else of its caller is
    /// in flight.
    pub response_bytes_per_caller: Size,
    /// Bytes a task may have said before they are committed.
    ///
    /// Then the agent waits.
    pub uncommitted_bytes: Size,
    /// Events a task may have produced before they are committed.
    ///
    /// Then the agent waits.
    pub uncommitted_events: Count,
    /// Conversation histories kept.
    ///
    /// The one unused longest goes first; no task is refused for it.
    pub contexts: Count,
    /// Largest request body.
    pub request_body: Size,
    /// Most headers of a request.
    pub headers: Count,
    /// Largest request headers, all together and with the request's address.
    pub request_headers: Size,
    /// Most parts of a message.
    pub parts: Count,
    /// Deepest nesting of a request body.
    pub nesting: Count,
    /// Largest single event, a message included.
    pub event: Size,
    /// Largest task, all its events together.
    pub task: Size,
    /// Largest page of a task list.
    ///
    /// A page ends earlier than was asked for rather than grow beyond it, unless its one task is larger.
    pub page: Size,
}

section_keys!(Limits with check, {
    running_tasks: Count::new(1_000),
    running_per_caller: Count::new(200),
    running_per_agent: Count::new(1_000),
    remote_tasks: Count::new(4_000),
    queued_turns: Count::new(10_000),
    parked_tasks: Count::new(100_000),
    parked_per_caller: Count::new(10_000),
    connections: Count::new(10_000),
    connections_per_address: Count::new(1_000),
    streams: Count::new(5_000),
    streams_per_caller: Count::new(1_000),
    response_bytes: Size::from_mebibytes(128),
    response_bytes_per_caller: Size::from_mebibytes(32),
    uncommitted_bytes: Size::from_kibibytes(256),
    uncommitted_events: Count::new(1_024),
    contexts: Count::new(100_000),
    request_body: Size::from_mebibytes(10),
    headers: Count::new(100),
    request_headers: Size::from_kibibytes(64),
    parts: Count::new(1_000),
    nesting: Count::new(64),
    event: Size::from_mebibytes(8),
    task: Size::from_mebibytes(64),
    page: Size::from_mebibytes(16),
});

impl Limits {
    fn check(&self, section: &mut Section<'_, '_>) {
        if self.event > self.task {
            // Whichever of the two was set is the one to look at.
            let key = if section.is_set("event") { "event" } else { "task" };
            section.refuse(
                key,
                format!("an event may have {} and a whole task only {}", self.event, self.task),
                "make limits.task at least as large as limits.event",
            );
        }
    }
}
