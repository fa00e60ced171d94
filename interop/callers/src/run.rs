//! One run over the checks of an interface, and what a check can come to.
//!
//! What a server does not offer has a name of its own, `NAME-refused`: it must be refused so that a program can tell. What
//! it offers and gets wrong itself is `NAME-broken`, and the notes of its SDK say how.

use std::time::Duration;

use switchboard_a2a::ErrorKind;
use switchboard_client::ClientError;

/// No check needs this long; one that hangs must not stop the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the server took what it was asked for.
pub(crate) enum Answer {
    /// As one would expect.
    Given,
    /// It does not offer this.
    Refused,
    /// It offers this and gets it wrong, however it is asked.
    Broken,
}

/// One check's result.
pub(crate) type Checked = anyhow::Result<Answer>;

/// The checks of one interface.
pub(crate) struct Run<'a> {
    interface: String,
    wanted: &'a [String],
    pub(crate) failed: u32,
}

impl<'a> Run<'a> {
    /// All checks, or only those with one of these in their name.
    pub(crate) fn new(interface: &str, wanted: &'a [String]) -> Self {
        Self { interface: interface.to_owned(), wanted, failed: 0 }
    }

    /// Waits for a check, unless others are wanted, and says how it ended.
    pub(crate) async fn check(&mut self, operation: &str, check: impl Future<Output = Checked>) {
        let name = format!("{}-{operation}", self.interface);
        if !self.wanted.is_empty() && !self.wanted.iter().any(|part| name.contains(part)) {
            return;
        }
        let checked = match tokio::time::timeout(PATIENCE, check).await {
            Ok(checked) => checked,
            Err(_) => Err(anyhow::anyhow!("it took longer than {PATIENCE:?}")),
        };
        match checked {
            Ok(Answer::Given) => println!("ok {name}"),
            Ok(Answer::Refused) => println!("ok {name}-refused"),
            Ok(Answer::Broken) => println!("ok {name}-broken"),
            Err(error) => {
                self.failed += 1;
                println!("not ok {name}: {}", on_one_line(&error));
            }
        }
    }
}

pub(crate) fn on_one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an error says about an operation that need not be there: that it is not offered, by the server or already by the
/// version, or that the server tried and failed. Anything else is an error of ours.
pub(crate) fn told_by(error: ClientError) -> Checked {
    use ErrorKind::{ExtendedCardNotConfigured, Internal, MethodNotFound, PushNotSupported, UnsupportedOperation};
    let refusals = [ExtendedCardNotConfigured, MethodNotFound, PushNotSupported, UnsupportedOperation];
    match &error {
        ClientError::Agent(told) if refusals.contains(&told.kind) => Ok(Answer::Refused),
        ClientError::Agent(told) if told.kind == Internal => Ok(Answer::Broken),
        ClientError::NotA2a { status: 404 | 405 | 501, .. } | ClientError::Invalid { .. } => Ok(Answer::Refused),
        _ => Err(error.into()),
    }
}

/// An assertion that says what it saw.
pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(actual: T, expected: T) -> anyhow::Result<()> {
    anyhow::ensure!(actual == expected, "expected {expected:?}, got {actual:?}");
    Ok(())
}
