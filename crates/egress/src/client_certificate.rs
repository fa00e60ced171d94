//! The client certificate for servers that ask for one. It is validated when it is read, because a server that rejects
//! it later gives no reason.

use std::fmt;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error as RustlsError, InconsistentKeys};

use crate::error::SetupError;

/// The mark of an encrypted key, in the PKCS #1 form and in PKCS #8.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

/// A client certificate and its key. Clones share both.
#[derive(Clone)]
pub struct ClientCertificate {
    certified: Arc<CertifiedKey>,
}

impl ClientCertificate {
    /// Reads the certificate, followed by the intermediate ones, and its key, both in PEM. One text with all of it may be
    /// given twice.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, SetupError> {
        let certificates = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| SetupError::Chain(redacted(&error, "certificate")))?;
        if certificates.is_empty() {
            return Err(SetupError::Chain(redacted(&PemError::NoItemsFound, "certificate")));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            let is_encrypted = key.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
            SetupError::Key(if is_encrypted {
                "it is encrypted, write it without a passphrase".to_owned()
            } else {
                redacted(&error, "private key")
            })
        })?;
        let key = ring::default_provider().key_provider.load_private_key(key);
        // The library's own message names its functions, not what the operator could change.
        let key = key.map_err(|_| SetupError::Key("it must be an RSA, ECDSA or Ed25519 key".to_owned()))?;
        let certified = CertifiedKey::new(certificates, key);
        match certified.keys_match() {
            Ok(()) | Err(RustlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(RustlsError::InconsistentKeys(_)) => return Err(SetupError::KeyMismatch),
            Err(_) => return Err(SetupError::Chain("it is not a certificate".to_owned())),
        }
        Ok(Self { certified: Arc::new(certified) })
    }

    pub(crate) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::new(SingleCertAndKey::from(CertifiedKey::clone(&self.certified)))
    }
}

/// Redacts the key.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientCertificate")
            .field("certificates", &self.certified.cert.len())
            .finish_non_exhaustive()
    }
}

/// Quotes nothing of the text, which may hold a key.
fn redacted(error: &PemError, what: &str) -> String {
    match error {
        PemError::NoItemsFound => format!("there is no {what} in it, write it in PEM"),
        _ => "it is not well-formed PEM".to_owned(),
    }
}
