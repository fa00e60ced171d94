//! The agents of a workspace through the public interface of the crate: what is read of their files, at the start and while
//! a server runs, and the programs that are made of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod agent_files;
mod default_agent;
mod drop_ins;
mod headers;
mod named_files;
mod pipes;
mod policies;
mod programs;
mod workspace;

/// What has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: std::time::Duration = std::time::Duration::from_secs(300);
