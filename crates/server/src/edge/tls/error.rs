//! What is wrong with the files of a certificate, and what would be right.

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// The certificate chain.
    Certificate,
    /// The private key.
    Key,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct TlsError {
    /// Which of the two files is to blame. A pair that does not fit is blamed on the key.
    pub part: TlsPart,
    pub(super) problem: String,
    /// What would be right.
    pub right: &'static str,
}
