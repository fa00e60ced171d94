//! Signals that reach the intended process or none, and waiting for children.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use rustix::process::{kill_process, kill_process_group, pidfd_open, pidfd_send_signal, waitid};

use super::process_table::{self, ProcessIdentity};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExitStatus {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    Running,
    /// It is a zombie: its pid stays taken until it is reaped.
    Ended(ExitStatus),
    /// It is not our child any more: it was reaped outside this crate.
    Unknown,
}

/// Sends a signal to one process, unless its pid was reused.
pub(super) fn send(target: ProcessIdentity, signal: Signal) {
    let Some(pid) = Pid::from_raw(target.pid) else { return };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => {
            // The pidfd is of one process for good; its start time shows that it is the right one.
            if process_table::start(target.pid) == Some(target.start) {
                let _ = pidfd_send_signal(&handle, signal);
            }
        }
        // It is gone.
        Err(Errno::SRCH) => {}
        // A system without pidfds: the race between the check and the signal has to be risked.
        Err(_) => {
            if process_table::start(target.pid) == Some(target.start) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Sends a signal to a process group. Only while its leader is an unreaped child, so that the pid is not reused.
pub(super) fn send_to_group(leader: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// The state of a child, without reaping it.
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
        Ok(Some(status)) => {
            ChildState::Ended(ExitStatus { code: status.exit_status(), signal: status.terminating_signal() })
        }
        Err(_) => ChildState::Unknown,
    }
}
