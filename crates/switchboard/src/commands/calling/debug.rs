//! `--debug`: the log of a call on standard error, with our secrets redacted.

use std::io;

use switchboard_host::printer::{Output, Printer};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::Uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const HIDDEN: &str = "***";

/// Installs the subscriber. A process makes one call, so a second start changes nothing.
pub(super) fn start(secrets: Vec<String>) {
    let targets = Targets::new()
        .with_target("switchboard_client", LevelFilter::TRACE)
        .with_target("switchboard_egress", LevelFilter::DEBUG);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(RedactingWriter { secrets })
        .with_timer(Uptime::default())
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .log_internal_errors(false);
    // An error means that an earlier start has installed the same subscriber.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}

struct RedactingWriter {
    secrets: Vec<String>,
}

struct RedactedLine<'a> {
    writer: &'a RedactingWriter,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for RedactingWriter {
    type Writer = RedactedLine<'a>;

    fn make_writer(&'a self) -> RedactedLine<'a> {
        RedactedLine { writer: self, text: Vec::new() }
    }
}

impl io::Write for RedactedLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for RedactedLine<'_> {
    fn drop(&mut self) {
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        for secret in &self.writer.secrets {
            text = text.replace(secret, HIDDEN);
        }
        Printer::new(Output::Text).note(&format!("debug: {}", text.trim()));
    }
}
