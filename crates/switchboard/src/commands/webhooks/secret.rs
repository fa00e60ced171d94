//! `switchboard webhooks secret`: the secrets that deliveries are signed with, one for each caller.

use std::process::ExitCode;

use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::control::{RotatedSecret, WebhookRequest};
use switchboard_host::printer::Printer;
use switchboard_webhooks::SecretView;

use crate::cli::DataFlags;
use crate::commands::control_request;

pub(crate) fn show(flags: &DataFlags, caller: String, printer: Printer) -> Result<(), ExitCode> {
    control_request(flags, WebhookRequest::Secret { caller }, None, printer, |answer: SecretView| {
        let names = std::iter::once("secret").chain(std::iter::repeat("older secret"));
        // With several older ones this is when the last of them ends.
        let until = answer.previous_until.map(|until| ("older ones used until", until.to_string()));
        printer.fields(std::iter::once(("caller", answer.caller)).chain(names.zip(answer.secrets)).chain(until));
        printer.line("");
        printer.line("a secret is all that signing takes: give it to the receivers of this caller only");
    })
}

pub(crate) fn rotate(flags: &DataFlags, overlap: TimeSpan, printer: Printer) -> Result<(), ExitCode> {
    let overlap_ms = u64::try_from(overlap.duration().as_millis()).unwrap_or(u64::MAX);
    control_request(flags, WebhookRequest::RotateSecret { overlap_ms }, None, printer, |answer: RotatedSecret| {
        let again = flags.again();
        printer.line(format!(
            "every caller has a new secret; switchboard webhooks secret show{again} --caller ID shows it"
        ));
        printer.line(match overlap {
            TimeSpan::ZERO => "the old ones are used no more".to_owned(),
            _ => format!("deliveries are signed with the old ones too until {}", answer.previous_until),
        });
    })
}
