//! The report as JUnit XML, for build servers: a suite for each group, a case for each check.

use std::fmt::Write;

use crate::checks::{Check, Group};
use crate::report::{CheckOutcome, CheckReport, Finding};

impl CheckReport {
    /// The report as JUnit XML.
    pub fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let total = totals(&self.findings.iter().collect::<Vec<_>>());
        line(&mut xml, format_args!("<testsuites name=\"{}\" {total}>", escaped(&self.agent)));
        for group in Group::all() {
            let findings: Vec<&Finding> = self.findings.iter().filter(|finding| finding.check.group == group).collect();
            if findings.is_empty() {
                continue;
            }
            line(&mut xml, format_args!("  <testsuite name=\"{}\" {}>", group.as_str(), totals(&findings)));
            for finding in findings {
                case(&mut xml, finding);
            }
            line(&mut xml, format_args!("  </testsuite>"));
        }
        line(&mut xml, format_args!("</testsuites>"));
        xml
    }
}

fn case(xml: &mut String, finding: &Finding) {
    let Finding { check: Check { id, group, title, rule, severity, .. }, sent, seen, fix, .. } = finding;
    let name = escaped(&format!("{id}: {title}"));
    let begin = format!("    <testcase classname=\"{}\" name=\"{name}\"", group.as_str());
    match finding.outcome {
        CheckOutcome::Pass => line(xml, format_args!("{begin}/>")),
        CheckOutcome::NotApplicable => {
            line(xml, format_args!("{begin}><skipped message=\"{}\"/></testcase>", escaped(seen)));
        }
        CheckOutcome::Fail => {
            let text = escaped(&format!("rule: {rule}\nsent: {sent}\nseen: {seen}\nfix: {fix}"));
            let failure = format!("<failure type=\"{}\" message=\"{}\">", severity.as_str(), escaped(seen));
            line(xml, format_args!("{begin}>{failure}{text}</failure></testcase>"));
        }
    }
}

fn totals(findings: &[&Finding]) -> String {
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (failures, skipped) = (count(CheckOutcome::Fail), count(CheckOutcome::NotApplicable));
    format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\"", findings.len())
}

fn line(xml: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(xml, "{text}");
}

/// Escapes XML; characters that XML cannot hold are dropped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => escaped.push(character),
        }
    }
    escaped
}
