//! The two files behind a certificate, and what is made of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use sha2::{Digest, Sha256};

use super::error::{TlsError, TlsPart};

/// What we speak inside TLS, as clients that can choose are offered it.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where certificate and key are.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// What was found in the files, to be compared with what is found there later. A digest, because the key itself is to
/// be in memory no more often than it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContentDigest([u8; 32]);

type Content = Result<Vec<u8>, TlsError>;
type BuiltConfig = Result<ServerConfig, Vec<TlsError>>;

impl CertificateFiles {
    /// Reads both files and makes of them what a handshake needs.
    pub(super) fn read(&self) -> (ContentDigest, BuiltConfig) {
        let (certificate, key) = self.contents();
        (ContentDigest::new(&certificate, &key), self.build(certificate, key))
    }

    /// The same, but makes nothing of what was seen before.
    pub(super) fn read_unless(&self, seen: &ContentDigest) -> (ContentDigest, Option<BuiltConfig>) {
        let (certificate, key) = self.contents();
        let attempt = ContentDigest::new(&certificate, &key);
        let made = (attempt != *seen).then(|| self.build(certificate, key));
        (attempt, made)
    }

    fn contents(&self) -> (Content, Content) {
        (content(TlsPart::Certificate, &self.certificate), content(TlsPart::Key, &self.key))
    }

    fn build(&self, certificate: Content, key: Content) -> BuiltConfig {
        let chain = certificate.and_then(|pem| self.chain(&pem));
        let key = key.and_then(|pem| self.key(&pem));
        let (chain, key) = match (chain, key) {
            (Ok(chain), Ok(key)) => (chain, key),
            (chain, key) => return Err([chain.err(), key.err()].into_iter().flatten().collect()),
        };
        self.config(chain, key).map_err(|error| vec![error])
    }

    fn chain(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let file = || self.certificate.clone();
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
        match chain {
            Ok(chain) if chain.is_empty() => Err(TlsError::NoCertificate { file: file() }),
            Ok(chain) => Ok(chain),
            Err(error) => {
                Err(TlsError::NotPem { part: TlsPart::Certificate, file: file(), problem: problem_of(&error) })
            }
        }
    }

    fn key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
        let file = || self.key.clone();
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            // It is a section of its own kind, or in older files one whose first lines say so and are not base64.
            _ if holds(pem, b"ENCRYPTED") => TlsError::LockedKey { file: file() },
            pem::Error::NoItemsFound => TlsError::NoKey { file: file() },
            error => TlsError::NotPem { part: TlsPart::Key, file: file(), problem: problem_of(&error) },
        })
    }

    fn config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, TlsError> {
        let bad_certificate = |source| TlsError::Certificate { file: self.certificate.clone(), source };
        let bad_key = |source| TlsError::Key { file: self.key.clone(), source };
        let provider = Arc::new(ring::default_provider());
        let signing = provider.key_provider.load_private_key(key).map_err(bad_key)?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::Strangers { file: self.key.clone(), certificate: self.certificate.clone() }
            }
            rustls::Error::InconsistentKeys(_) => bad_key(error),
            error => bad_certificate(error),
        })?;
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(bad_key)?;
        let shown = Arc::new(SingleCertAndKey::from(certified));
        let mut config = builder.with_no_client_auth().with_cert_resolver(shown);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(config)
    }
}

impl ContentDigest {
    fn new(certificate: &Content, key: &Content) -> Self {
        let mut digest = Sha256::new();
        for content in [certificate, key] {
            let found = match content {
                Ok(bytes) => Sha256::digest(bytes),
                Err(error) => Sha256::digest(error.to_string()),
            };
            digest.update(found);
        }
        Self(digest.finalize().into())
    }
}

fn content(part: TlsPart, file: &Path) -> Content {
    std::fs::read(file).map_err(|source| TlsError::Unreadable { part, file: file.to_owned(), source })
}

fn holds(pem: &[u8], word: &[u8]) -> bool {
    pem.windows(word.len()).any(|window| window == word)
}

/// The library shows bytes here; a person wants words.
fn problem_of(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a BEGIN line has no END line",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is cut short",
        pem::Error::Base64Decode(_) => "what stands between BEGIN and END is not base64",
        pem::Error::SectionTooLarge => "a section is far too large",
        _ => "it cannot be made out",
    }
}
