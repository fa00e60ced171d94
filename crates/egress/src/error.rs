//! What can go wrong with a call. The messages may be stored, logged and shown to operators: they never hold a path, a
//! query or an address that a name resolved to.

use std::fmt;

use thiserror::Error;

use crate::resolver::DnsError;
use crate::url_refusal::Refusal;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The guard does not let it out; trying again changes nothing unless the name or the allowlist changes.
    #[error("refused: {}", .0.detail())]
    Refused(Refusal),
    /// The name has no address now.
    #[error("the host cannot be resolved: {0}")]
    Dns(DnsError),
    /// Nobody accepts connections there.
    #[error("no connection: {0}")]
    Connect(&'static str),
    /// As many connections are open as may be, and none was closed in time. It says nothing about the other side.
    #[error("no connection: as many are open as may be")]
    Crowded,
    /// The encryption could not be agreed on.
    #[error("no encrypted connection: {0}")]
    Tls(TlsFault),
    /// It took too long.
    #[error("timed out {phase}")]
    Timeout {
        /// What took too long.
        phase: Phase,
    },
    /// The connection ended before the head of an answer was there.
    #[error("the connection was closed before an answer came")]
    Broken,
    /// Something answered that was not HTTP.
    #[error("the answer is not http")]
    NotHttp,
    /// A request that is never sent to an address somebody else chose.
    #[error("the method {0} is not supported")]
    Method(http::Method),
}

impl SendError {
    /// A short name for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Dns(_) => "dns",
            Self::Connect(_) => "connect",
            Self::Crowded => "crowded",
            Self::Tls(_) => "tls",
            Self::Timeout { .. } => "timeout",
            Self::Broken => "broken",
            Self::NotHttp => "not_http",
            Self::Method(_) => "method",
        }
    }
}

/// Why the next piece of an answer's body is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum BodyFault {
    /// The connection ended in the middle.
    #[error("the connection was closed in the middle of the answer")]
    Broken,
    /// Nothing came in the time it had.
    #[error("the answer fell silent for too long")]
    Late,
}

/// A name without an answer is the weather, not a verdict.
impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unresolved(error) => Self::Dns(error),
            refusal => Self::Refused(refusal),
        }
    }
}

/// Where the time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Before a connection stood.
    Connect,
    /// While the encryption was being agreed on.
    Tls,
    /// While waiting for the head of the answer.
    Answer,
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "while connecting",
            Self::Tls => "while agreeing on encryption",
            Self::Answer => "while waiting for the answer",
        })
    }
}

/// Why there is no encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The certificate is for somebody else.
    #[error("the certificate is not valid for this host")]
    WrongHost,
    /// The certificate has run out.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate is of a later time than this machine's clock says.
    #[error("the certificate is not valid yet, or the clock of this machine is wrong")]
    NotYetValid,
    /// The certificate is signed by its own key only, and it is not among those that are trusted.
    #[error("the certificate is signed by itself and by no trusted authority")]
    SelfSigned,
    /// Nobody whom this machine trusts has signed the certificate.
    #[error("the certificate is not signed by a trusted authority")]
    Untrusted,
    /// The certificate is wrong in another way.
    #[error("the certificate is not valid")]
    BadCertificate,
    /// The other side wants a client certificate, and ours, if we have one, is not among those it takes.
    #[error("the other side accepts no connection without a client certificate that it trusts")]
    NotAccepted,
    /// This machine trusts nobody.
    #[error("no trusted root certificate can be read from this machine's store, SSL_CERT_FILE or SSL_CERT_DIR")]
    NoRoots,
    /// The other side does not speak TLS, or no version that we do.
    #[error("the handshake failed")]
    Handshake,
}

/// Why the client cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// One of the extra root certificates cannot be used.
    #[error("extra root certificate {number} cannot be used: {why}")]
    Root {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The client certificate cannot be used.
    #[error("the client certificate cannot be used: {0}")]
    Chain(String),
    /// The key of the client certificate cannot be used.
    #[error("the key of the client certificate cannot be used: {0}")]
    Key(String),
    /// The key is another certificate's.
    #[error("the key does not belong to the client certificate, which must be the first one of its chain")]
    KeyMismatch,
    /// The TLS library cannot be set up.
    #[error("tls cannot be set up: {0}")]
    Tls(String),
}
