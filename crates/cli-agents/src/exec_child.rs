//! `switchboard exec-child`: how the server starts a program. Not for people, and not in the help.
//!
//! Between the start of a process and the program in it some things can only be done by the process itself: to leave
//! the server's session, to close what the server has inherited, to become another user, and to ask to be killed when
//! the server dies. This does them and then becomes the program. It runs before anything else of the binary, and starts
//! no thread.
//!
//! With the word `guard` it becomes no program but the guard of the server: see `process/guard.rs`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Gid, Signal, Uid, getppid, set_parent_process_death_signal, setsid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::process::{GUARD, guard};

/// The subcommand.
pub const NAME: &str = "exec-child";

/// Exit code: the program cannot be run, as in shells.
const CANNOT_RUN: u8 = 126;

/// Exit code: there is no such program, as in shells.
const NOT_FOUND: u8 = 127;

/// Exit code: the server has died already.
const NO_PARENT: u8 = 125;

/// Exit code: wrong arguments.
const USAGE: u8 = 2;

struct Invocation {
    parent: i32,
    user: Option<Credentials>,
    program: OsString,
    arguments: Vec<OsString>,
}

struct Credentials {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

/// Why the program was not executed: the exit code and the message.
struct ExecError(u8, String);

/// Becomes the program, if that is what this process was started for. Returns the exit code if it cannot.
pub fn intercept() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().as_deref() != Some(OsStr::new(NAME)) {
        return None;
    }
    let mut words = words.peekable();
    if words.next_if(|word| word == GUARD).is_some() {
        return Some(run_guard(words));
    }
    let ExecError(code, problem) = match parse(words) {
        Some(invocation) => exec(invocation),
        None => ExecError(USAGE, format!("usage: {NAME} PARENT_PID [--user UID:GID:GID,…] -- PROGRAM [ARGUMENT…]")),
    };
    // If this cannot be written, only the exit code is left.
    let _ = writeln!(io::stderr(), "switchboard {NAME}: {problem}");
    Some(ExitCode::from(code))
}

/// The guard outlives the server: it leaves the server's session and closes inherited files.
fn run_guard(words: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = setsid();
    close_inherited();
    match guard(words) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => ExitCode::FAILURE,
        None => ExitCode::from(USAGE),
    }
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Invocation> {
    let parent = words.next()?.to_str()?.parse().ok()?;
    let mut word = words.next()?;
    let mut user = None;
    if word == "--user" {
        user = Some(credentials(words.next()?.to_str()?)?);
        word = words.next()?;
    }
    if word != "--" {
        return None;
    }
    let program = words.next()?;
    Some(Invocation { parent, user, program, arguments: words.collect() })
}

fn credentials(text: &str) -> Option<Credentials> {
    let mut parts = text.split(':');
    let (uid, gid, groups) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number != u32::MAX);
    let groups = groups.split(',').filter(|group| !group.is_empty());
    Some(Credentials {
        uid: Uid::from_raw(number(uid)?),
        gid: Gid::from_raw(number(gid)?),
        groups: groups.map(|group| number(group).map(Gid::from_raw)).collect::<Option<_>>()?,
    })
}

fn exec(invocation: Invocation) -> ExecError {
    let refused = |what: &str, error: io::Error| ExecError(CANNOT_RUN, format!("{what}: {error}"));
    // A new session is a new process group, without a terminal that the program could wait for.
    if let Err(error) = setsid() {
        return refused("no session of its own", error.into());
    }
    close_inherited();
    if let Some(user) = &invocation.user
        && let Err(error) = switch(user)
    {
        return refused(&format!("cannot become user {}", user.uid), error);
    }
    // After the change of user, which clears the parent-death signal, and before the check of the parent, which may die
    // in between.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return refused("cannot die with the server", error.into());
    }
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(invocation.parent) {
        return ExecError(NO_PARENT, format!("process {}, which started this, is gone", invocation.parent));
    }
    let error = Command::new(&invocation.program).args(&invocation.arguments).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
    ExecError(code, cannot_run(&invocation, &error))
}

fn cannot_run(invocation: &Invocation, error: &io::Error) -> String {
    let told = format!("cannot run {}: {error}", invocation.program.display());
    match (&invocation.user, error.kind()) {
        // Such as a program in the home of root.
        (Some(user), io::ErrorKind::PermissionDenied) => {
            format!(
                "{told}. User {} must be able to reach it: install it elsewhere, such as in /usr/local/bin",
                user.uid
            )
        }
        _ => told,
    }
}

/// Closes all files but the standard three. The server's own are close-on-exec, but it may have inherited others from
/// the process that started it.
fn close_inherited() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    // The listing itself is one of them, and closed when it is read to its end.
    let open: Vec<i32> = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for file in open.into_iter().filter(|file| *file > 2) {
        let _ = nix::unistd::close(file);
    }
}

/// Groups first: after the change of user this is not permitted.
fn switch(user: &Credentials) -> io::Result<()> {
    set_thread_groups(&user.groups)?;
    set_thread_res_gid(user.gid, user.gid, user.gid)?;
    set_thread_res_uid(user.uid, user.uid, user.uid)?;
    Ok(())
}
