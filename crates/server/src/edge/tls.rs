//! The server's TLS certificate and private key, reloaded when their files change.
//!
//! Certificates are renewed every few weeks, which should need no restart. So handshakes check the files now and then; a
//! pair that cannot be used leaves the one before in use.
//!
//! TLS is terminated in our accept loop, where connection limits, timeouts and the drain are. The files are compared by
//! content at a handshake, at most once a second, and not by a signal or a file watcher: that works on every file
//! system and however the files are replaced.

mod certificate_files;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::ServerConfig;

use self::certificate_files::{CertificateFiles, ContentDigest};

/// Two small files a second are nothing beside a handshake, and a renewed certificate is shown soon after.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// Certificate and private key, from two PEM files that may change.
pub struct Tls {
    files: CertificateFiles,
    reload_every: Duration,
    /// When the files were last checked, or are being checked.
    checked_at: Mutex<Instant>,
    /// What was found there, good or not. Held while the files are read, so that an older state never comes last.
    found: Mutex<ContentDigest>,
    /// What new connections get.
    current: Mutex<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a certificate chain and the private key of its first certificate.
    pub fn open(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self, Vec<TlsError>> {
        let files = CertificateFiles { certificate: certificate.into(), key: key.into() };
        let contents = files.contents();
        Ok(Self {
            reload_every: RELOAD_EVERY,
            checked_at: Mutex::new(Instant::now()),
            found: Mutex::new(ContentDigest::new(&contents)),
            current: Mutex::new(Arc::new(files.build(contents)?)),
            files,
        })
    }

    /// How often the files are checked, at most; every second unless this says otherwise.
    #[must_use]
    pub fn reload_every(self, reload_every: Duration) -> Self {
        Self { reload_every, ..self }
    }

    /// The configuration of a new connection. The one that finds a reload due waits for it; the others do not.
    pub(super) async fn current(self: &Arc<Self>) -> Arc<ServerConfig> {
        if self.is_reload_due() {
            let tls = Arc::clone(self);
            // A disk may take its time, and the other connections must not wait for it.
            let reloading = tokio::task::spawn_blocking(move || tls.reload());
            if let Err(error) = reloading.await {
                tracing::error!(%error, "the files of the certificate could not be looked at");
            }
        }
        Arc::clone(&self.current.lock())
    }

    fn is_reload_due(&self) -> bool {
        let (now, mut checked_at) = (Instant::now(), self.checked_at.lock());
        let due = now.saturating_duration_since(*checked_at) >= self.reload_every;
        if due {
            *checked_at = now;
        }
        due
    }

    /// Takes over what is new in the files. What is wrong with them is logged only once.
    fn reload(&self) {
        // Another connection still reads, perhaps from a disk that hangs.
        let Some(mut found) = self.found.try_lock() else { return };
        let contents = self.files.contents();
        let digest = ContentDigest::new(&contents);
        if *found == digest {
            return;
        }
        *found = digest;
        match self.files.build(contents) {
            Ok(config) => {
                *self.current.lock() = Arc::new(config);
                let certificate = self.files.certificate.display();
                tracing::info!(%certificate, "the certificate has changed, new connections get the new one");
            }
            Err(errors) => {
                for error in errors {
                    tracing::error!(%error, next = error.right, "the certificate from before stays in use");
                }
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

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
    problem: String,
    /// What would be right.
    pub right: &'static str,
}
