//! What can go wrong with a call. The messages are redacted, because they may be stored, logged and shown to operators:
//! they never hold a path, a query or an address that a name resolved to.

use thiserror::Error;

use crate::resolver::DnsError;
use crate::url_refusal::UrlRefusal;

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The SSRF guard refuses it; a retry changes nothing unless the name or the allowlist changes.
    #[error("refused: {}", .0.detail())]
    Refused(UrlRefusal),
    /// The name has no address now.
    #[error("the host cannot be resolved: {0}")]
    Dns(DnsError),
    /// The server does not accept the connection.
    #[error("no connection: {0}")]
    Connect(&'static str),
    /// The connection limit is reached, and no slot became free in time. It says nothing about the server.
    #[error("no connection: as many are open as may be")]
    ConnectionLimit,
    /// The TLS handshake failed.
    #[error("no encrypted connection: {0}")]
    Tls(TlsError),
    /// A timeout.
    #[error("timed out {phase}")]
    Timeout {
        /// What took too long.
        phase: TimeoutPhase,
    },
    /// The connection ended before the head of a response was complete.
    #[error("the connection was closed before an answer came")]
    Broken,
    /// Something answered that was not HTTP.
    #[error("the answer is not http")]
    NotHttp,
    /// CONNECT, which is never sent.
    #[error("the method {0} is not supported")]
    Method(http::Method),
}

/// Why the next piece of a response body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum BodyError {
    /// The connection ended in the middle.
    #[error("the connection was closed in the middle of the answer")]
    Broken,
    /// Nothing came in the time it had.
    #[error("the answer fell silent for too long")]
    Late,
}

/// A failed lookup is worth a retry, unlike a refusal.
impl From<UrlRefusal> for SendError {
    fn from(refusal: UrlRefusal) -> Self {
        match refusal {
            UrlRefusal::Unresolved(error) => Self::Dns(error),
            refusal => Self::Refused(refusal),
        }
    }
}

/// What timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// TCP, and the wait for a connection slot.
    #[error("while connecting")]
    Connect,
    /// The TLS handshake.
    #[error("while agreeing on encryption")]
    Tls,
    /// The head of the response.
    #[error("while waiting for the answer")]
    Response,
}

/// Why there is no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate is for another host.
    #[error("the certificate is not valid for this host")]
    WrongHost,
    /// The certificate has expired.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate is not valid yet by this machine's clock.
    #[error("the certificate is not valid yet, or the clock of this machine is wrong")]
    NotYetValid,
    /// The certificate is signed by its own key only, and it is not among those that are trusted.
    #[error("the certificate is signed by itself and by no trusted authority")]
    SelfSigned,
    /// The certificate does not lead to a trusted root.
    #[error("the certificate is not signed by a trusted authority")]
    Untrusted,
    /// The certificate is wrong in another way.
    #[error("the certificate is not valid")]
    BadCertificate,
    /// The server requires a client certificate, and rejects ours or got none.
    #[error("the other side accepts no connection without a client certificate that it trusts")]
    NotAccepted,
    /// There are no trusted roots.
    #[error("no trusted root certificate can be read from this machine's store, SSL_CERT_FILE or SSL_CERT_DIR")]
    NoRoots,
    /// The server does not speak TLS, or no version that we do.
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
