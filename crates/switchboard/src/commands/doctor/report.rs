//! The report of all findings, as text or JSON.

use std::path::PathBuf;

use serde_json::json;
use switchboard_host::printer::Printer;
use switchboard_host::sanitize;

use super::agent::AgentReport;
use super::finding::{Finding, Level};
use super::known_programs::ProgramReport;

pub(super) struct DoctorReport {
    pub(super) folder: PathBuf,
    pub(super) configuration: Vec<Finding>,
    pub(super) programs: Vec<ProgramReport>,
    pub(super) agents: Vec<AgentReport>,
}

impl DoctorReport {
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        let programs = self.programs.iter().flat_map(|program| &program.findings);
        let agents = self.agents.iter().flat_map(|agent| &agent.findings);
        self.configuration.iter().chain(programs).chain(agents)
    }

    pub(super) fn count(&self, level: Level) -> usize {
        self.findings().filter(|finding| finding.level == level).count()
    }

    pub(super) fn print(&self, printer: Printer) {
        if printer.is_json() {
            printer.json(&json!({
                "ok": self.count(Level::Problem) == 0,
                "problems": self.count(Level::Problem),
                "warnings": self.count(Level::Warning),
                // Text, because a path need not be any.
                "workspace": self.folder.display().to_string(),
                "configuration": self.configuration,
                "programs": self.programs,
                "agents": self.agents,
            }));
            return;
        }
        printer.line(format!("workspace {}", sanitize::line(&self.folder.display().to_string())));
        section(self.configuration.iter().map(|finding| ("configuration", finding)), printer);
        printer.line("");
        printer.line("programs");
        let of = |program: &ProgramReport| program.name.clone();
        let named =
            self.programs.iter().flat_map(|program| program.findings.iter().map(move |finding| (of(program), finding)));
        section(named, printer);
        if !self.agents.is_empty() {
            printer.line("");
            printer.line("agents");
            let named = self
                .agents
                .iter()
                .flat_map(|agent| agent.findings.iter().map(|finding| (agent.name.as_str(), finding)));
            section(named, printer);
        }
        printer.line("");
        printer.line(self.summary());
    }

    fn summary(&self) -> String {
        let counted = |count: usize, word: &str| match count {
            0 => format!("no {word}s"),
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let problems = counted(self.count(Level::Problem), "problem");
        format!("{problems}, {}", counted(self.count(Level::Warning), "warning"))
    }
}

/// Rows of level, subject and text, each with its fix below.
fn section<'a>(findings: impl Iterator<Item = (impl AsRef<str>, &'a Finding)>, printer: Printer) {
    let mut rows = Vec::new();
    let mut before = String::new();
    for (subject, finding) in findings {
        // A subject stands only where it begins.
        let subject = subject.as_ref();
        let shown = if subject == before { "" } else { subject };
        rows.push([format!("  {:7}", finding.level.word()), shown.to_owned(), finding.text.clone()]);
        if !finding.fix.is_empty() {
            rows.push([String::new(), String::new(), format!("fix: {}", finding.fix)]);
        }
        subject.clone_into(&mut before);
    }
    printer.table(&rows);
}
