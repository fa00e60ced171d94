//! Plays a recorded run of a real program to a dialogue.
//!
//! A recording has one line per line: `>> ` was written to the program, `<< ` came from its standard output, `!! ` from
//! its standard error, `== ` is about the recording itself; the last says how it ended, a signal as 128 and its number.

use std::path::Path;

use serde::Serialize;
use switchboard_cli_agents::adapters::{Decision, Dialogue, Event, Exit, Step, Steps};

/// A recorded run.
pub(crate) struct Recording {
    lines: Vec<String>,
}

/// What became of it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Played {
    /// What the dialogue asked for, in order, up to and including the first ending.
    pub(crate) steps: Vec<Step>,
}

impl Recording {
    pub(crate) fn open(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// What was written to the program.
    pub(crate) fn written(&self) -> Vec<&str> {
        self.lines.iter().filter_map(|line| line.strip_prefix(">> ")).collect()
    }

    /// What came from its standard output.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("<< "))
    }

    /// Adds a line of standard output after the first that begins so.
    pub(crate) fn add_output(&mut self, after: &str, line: &str) {
        let is_it = |line: &String| line.strip_prefix("<< ").is_some_and(|line| line.starts_with(after));
        let at = self.lines.iter().position(is_it).unwrap_or_else(|| panic!("no line begins with {after}"));
        self.lines.insert(at + 1, format!("<< {line}"));
    }

    /// Plays it, answering each approval with the next decision.
    pub(crate) fn play(&self, dialogue: &mut dyn Dialogue, decisions: &[Decision]) -> Played {
        let (mut played, mut steps) = (Played::default(), Steps::default());
        let mut decisions = decisions.iter();
        let mut exit = Exit::default();
        dialogue.begin(&mut steps);
        for line in &self.lines {
            if let Some(line) = line.strip_prefix("<< ") {
                dialogue.line(line, &mut steps);
            } else if let Some(line) = line.strip_prefix("!! ") {
                exit.stderr.push_str(line);
                exit.stderr.push('\n');
            } else if let Some(code) = line.strip_prefix("== exit ") {
                let code: i32 = code.split(' ').next().unwrap().parse().unwrap();
                (exit.code, exit.signal) = if code > 128 { (None, Some(code - 128)) } else { (Some(code), None) };
            }
            loop {
                let taken = steps.take();
                if taken.is_empty() {
                    break;
                }
                for step in taken {
                    let asked = match &step {
                        Step::Event(Event::ApprovalRequired(approval)) => Some(approval.request.clone()),
                        _ => None,
                    };
                    let ends = matches!(step, Step::Finish(_));
                    played.steps.push(step);
                    if ends {
                        return played;
                    }
                    if let Some(request) = asked
                        && let Some(decision) = decisions.next()
                    {
                        dialogue.decide(&request, decision, &mut steps);
                    }
                }
            }
        }
        dialogue.ended(&exit, &mut steps);
        for step in steps.take() {
            let ends = matches!(step, Step::Finish(_));
            played.steps.push(step);
            if ends {
                break;
            }
        }
        played
    }
}
