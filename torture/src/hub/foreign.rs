//! A server that is built with another SDK, as a program that is given its port. It keeps its tasks in memory, so a kill
//! loses them; what it has begun and ended it writes to a file, which is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use anyhow::Context;
use serde::Deserialize;

use crate::HANG_GUARD;

/// The variable that names the file of what it has executed.
const EXECUTIONS: &str = "INTEROP_EXECUTIONS";

/// How to start one, and which agents it has.
#[derive(Clone, Debug, Deserialize)]
pub struct Foreign {
    /// The program.
    pub program: PathBuf,
    /// What it is given before the port.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Where its own log goes.
    pub log: PathBuf,
    /// Where it writes what it has begun and ended.
    pub executions: PathBuf,
    /// The interfaces of its card. Each has a card of its own, under `/only/INTERFACE`.
    pub interfaces: Vec<String>,
}

pub(super) struct Process {
    child: Child,
}

impl Foreign {
    pub(super) fn start(&self, port: u16) -> anyhow::Result<Process> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(port.to_string())
            .current_dir(&self.folder)
            .env(EXECUTIONS, &self.executions)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let mut process = Process { child };
        let output = process.child.stdout.take().context("the server has no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            // The receiver is gone if it took too long.
            let _ = sender.send(output.read_line(&mut line).map(|_| line));
            let _ = output.read_to_end(&mut Vec::new());
        });
        let line = lines.recv_timeout(HANG_GUARD).ok().and_then(Result::ok).unwrap_or_default();
        let has_started = line.trim() == port.to_string();
        anyhow::ensure!(has_started, "the server did not start at port {port}, see {}", self.log.display());
        Ok(process)
    }

    /// What it has executed up to now, in all of its lives.
    pub(super) fn executions(&self) -> anyhow::Result<Executions> {
        Executions::read(&self.executions)
    }
}

impl Process {
    pub(super) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server has executed: one line each for a beginning and an end, with its process, the task and the message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Executions {
    /// How often each message was begun.
    pub(super) begun: BTreeMap<String, usize>,
    /// Tasks that are worked on, with their processes.
    pub(super) running: Vec<(u32, String)>,
    /// Tasks that were ever worked on, with their processes: those of one that is gone are lost.
    pub(super) all: BTreeSet<(u32, String)>,
}

impl Executions {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let mut executions = Self::default();
        // Nothing was executed yet if there is none.
        let Ok(file) = File::open(file) else { return Ok(executions) };
        for line in BufReader::new(file).lines() {
            executions.add(&line?)?;
        }
        Ok(executions)
    }

    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, process, task, message] = words[..] else { anyhow::bail!("{line:?} is no execution") };
        let execution = (process.parse()?, task.to_owned());
        match what {
            "begin" => {
                *self.begun.entry(message.to_owned()).or_default() += 1;
                self.all.insert(execution.clone());
                self.running.push(execution);
            }
            _ => {
                if let Some(place) = self.running.iter().position(|running| *running == execution) {
                    self.running.swap_remove(place);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted_by_message_and_end_with_their_line() {
        let mut executions = Executions::default();
        for line in ["begin 1 task message", "begin 1 other second", "end 1 task message", "begin 2 again message"] {
            executions.add(line).unwrap();
        }
        assert_eq!(executions.begun, BTreeMap::from([("message".to_owned(), 2), ("second".to_owned(), 1)]));
        let (other, again) = ((1, "other".to_owned()), (2, "again".to_owned()));
        assert_eq!(executions.running, [other.clone(), again.clone()]);
        assert_eq!(executions.all, BTreeSet::from([(1, "task".to_owned()), other, again]));
        assert!(executions.add("Traceback (most recent call last):").is_err());
    }
}
