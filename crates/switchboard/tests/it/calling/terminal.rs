//! A terminal of the test's own (a pseudo terminal), with a command running on it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::Workspace;

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: Duration = Duration::from_secs(300);

pub(super) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl Terminal {
    /// Runs the binary on a terminal, without colours so that what is seen can be compared.
    pub(super) fn run(workspace: &Workspace, arguments: &[&str]) -> Self {
        Self::run_with(workspace, arguments, &[("TERM", "xterm"), ("NO_COLOR", "1")])
    }

    pub(super) fn run_with(workspace: &Workspace, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(OwnedFd::from(side.try_clone().unwrap()));
        let child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
            .args(arguments)
            .current_dir(workspace.path())
            .env_clear()
            .envs(workspace.variables())
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop(side);
        let keyboard = File::from(controller);
        let mut picture = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It is over with an error once the writer is closed.
            while let Ok(count @ 1..) = picture.read(&mut bytes) {
                if send.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, seen: String::new() }
    }

    /// Waits until something is on the screen.
    pub(super) fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(HANG_GUARD) {
                Ok(piece) => self.seen.push_str(&piece),
                Err(_) => panic!("no {text:?} in {:?}", self.seen),
            }
        }
    }

    /// Types a line.
    pub(super) fn say(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Presses Ctrl-C.
    pub(super) fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Waits for the end: everything that was on the screen, and the exit code.
    pub(super) fn end(mut self) -> (String, Option<i32>) {
        let code = self.child.wait().unwrap().code();
        while let Ok(piece) = self.screen.recv_timeout(HANG_GUARD) {
            self.seen.push_str(&piece);
        }
        (std::mem::take(&mut self.seen), code)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// What stays on a screen: without the line that moves, whose pictures depend on the moment.
pub(super) fn still(screen: &str) -> String {
    let mut still = String::new();
    for (index, piece) in screen.split("\r\u{1b}[2K").enumerate() {
        let is_moving = index > 0 && piece.starts_with(['|', '/', '-', '\\']) && piece.ends_with('s');
        if !is_moving {
            still.push_str(piece);
        }
    }
    still.replace("\r\n", "\n")
}
