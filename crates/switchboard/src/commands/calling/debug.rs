//! `--debug`: how a call is done, on standard error, line by line. Whatever a line says, our secrets are taken out of it.

use std::io;

use switchboard_host::printer::{Output, Printer};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::Uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const HIDDEN: &str = "***";

/// Starts telling. Within one process there is one call, so that a second time changes nothing.
pub(super) fn start(secrets: Vec<String>) {
    let told = Targets::new()
        .with_target("switchboard_client", LevelFilter::TRACE)
        .with_target("switchboard_egress", LevelFilter::DEBUG);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Told { secrets })
        .with_timer(Uptime::default())
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .log_internal_errors(false);
    // Whoever has started it before tells the same.
    let _ = tracing_subscriber::registry().with(told).with(lines).try_init();
}

/// Writes lines without secrets.
struct Told {
    secrets: Vec<String>,
}

/// One line.
struct Line<'a> {
    told: &'a Told,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Told {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { told: self, text: Vec::new() }
    }
}

impl io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        for secret in &self.told.secrets {
            text = text.replace(secret, HIDDEN);
        }
        Printer::new(Output::Text).note(&format!("debug: {}", text.trim()));
    }
}
