//! Signals that reach the process that was meant, or none.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use rustix::process::{kill_process, kill_process_group, pidfd_open, pidfd_send_signal, waitid};

use super::process_table::{self, ProcessIdentity};

/// How a child ended, as its parent is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExitStatus {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// What is known of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    /// It runs.
    Running,
    /// It has ended and keeps its number until it is reaped.
    Ended(ExitStatus),
    /// It is no child of ours any more: somebody else has reaped it.
    Unknown,
}

/// Sends a signal to one process, unless its number has passed to another.
pub(super) fn send(target: ProcessIdentity, signal: Signal) {
    let Some(pid) = Pid::from_raw(target.pid) else { return };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => {
            // The handle is of one process for good; that it is the right one shows its start.
            if process_table::start(target.pid) == Some(target.start) {
                let _ = pidfd_send_signal(&handle, signal);
            }
        }
        // It is gone.
        Err(Errno::SRCH) => {}
        // A system without such handles: the moment between the peek and the signal has to be risked.
        Err(_) => {
            if process_table::start(target.pid) == Some(target.start) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Sends a signal to a group. Only for one whose leader is a child that nobody has reaped, so that the number is its.
pub(super) fn send_to_group(leader: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Looks at a child and leaves it as it is.
pub(super) fn peek(pid: i32) -> ChildState {
    wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a child, if it has ended.
pub(super) fn reap(pid: i32) -> ChildState {
    wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

fn wait(pid: i32, options: WaitIdOptions) -> ChildState {
    let Some(child) = Pid::from_raw(pid) else { return ChildState::Unknown };
    match waitid(WaitId::Pid(child), options) {
        Ok(None) | Err(Errno::INTR) => ChildState::Running,
        Ok(Some(status)) => ChildState::Ended(status_of(&status)),
        Err(_) => ChildState::Unknown,
    }
}

fn status_of(status: &WaitIdStatus) -> ExitStatus {
    ExitStatus { code: status.exit_status(), signal: status.terminating_signal() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_looked_at_without_being_reaped() {
        let mut child = std::process::Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = child.id().cast_signed();
        let ended = ChildState::Ended(ExitStatus { code: Some(3), signal: None });
        let mut seen = peek(pid);
        while seen == ChildState::Running {
            std::thread::yield_now();
            seen = peek(pid);
        }
        assert_eq!((seen, peek(pid)), (ended, ended));
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(peek(pid), ChildState::Unknown);
    }
}
