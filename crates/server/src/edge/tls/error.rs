//! What is wrong with the files of a certificate, and what would be right.

use std::io;
use std::path::{Path, PathBuf};

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// The certificate chain.
    Certificate,
    /// The private key.
    Key,
}

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is not there, or is not ours to read.
    #[error("{} cannot be read ({source})", file.display())]
    Unreadable {
        /// Which one.
        part: TlsPart,
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file begins like PEM and does not go on like it.
    #[error("{} is not PEM that can be read ({problem})", file.display())]
    NotPem {
        /// Which one.
        part: TlsPart,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no certificate in the file.
    #[error("{} holds no certificate", file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// There is no private key in the file.
    #[error("{} holds no private key", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// Nobody is there to type the passphrase.
    #[error("the private key in {} needs a passphrase", file.display())]
    LockedKey {
        /// The file.
        file: PathBuf,
    },
    /// The certificate is none, or of a kind that is not supported.
    #[error("the certificate in {} cannot be used ({source})", file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The key is none, or of a kind that is not supported.
    #[error("the private key in {} cannot be used ({source})", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// Both are good, and not each other's.
    #[error(
        "the private key in {} does not belong to the first certificate in {}",
        file.display(), certificate.display()
    )]
    Strangers {
        /// The file of the key.
        file: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
}

impl TlsError {
    /// Which of the two files is to blame. A pair that does not fit is blamed on the key.
    #[must_use]
    pub fn part(&self) -> TlsPart {
        match self {
            Self::Unreadable { part, .. } | Self::NotPem { part, .. } => *part,
            Self::NoCertificate { .. } | Self::Certificate { .. } => TlsPart::Certificate,
            Self::NoKey { .. } | Self::LockedKey { .. } | Self::Key { .. } | Self::Strangers { .. } => TlsPart::Key,
        }
    }

    /// That file.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. }
            | Self::NotPem { file, .. }
            | Self::NoCertificate { file }
            | Self::NoKey { file }
            | Self::LockedKey { file }
            | Self::Certificate { file, .. }
            | Self::Key { file, .. }
            | Self::Strangers { file, .. } => file,
        }
    }

    /// What would be right.
    #[must_use]
    pub fn right(&self) -> &'static str {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "name a file that exists; a relative path starts at the workspace folder"
            }
            Self::Unreadable { .. } => "name a PEM file that the user of this process may read",
            Self::NotPem { .. } => "copy the file again, from its first BEGIN line to its last END line",
            Self::NoCertificate { .. } => {
                "name a PEM file with a BEGIN CERTIFICATE line: the server's own certificate, then those that signed it"
            }
            Self::NoKey { .. } => "name a PEM file with a BEGIN PRIVATE KEY line",
            Self::LockedKey { .. } => "store the key without a passphrase, readable for this user only",
            Self::Certificate { .. } => "name the certificate that was made for this server, in X.509 version 3",
            Self::Key { .. } => "name an RSA key of 2048 bits or more, an ECDSA key (P-256, P-384) or an Ed25519 key",
            Self::Strangers { .. } => {
                "name the key that the certificate was made for; the server's own certificate comes first in its file"
            }
        }
    }
}
