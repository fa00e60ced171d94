//! Reads the two files of a certificate and builds the TLS configuration from them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use switchboard_engine::sha256;

use super::error::{TlsError, TlsPart};

/// The protocols offered by ALPN.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[derive(Debug)]
pub(super) struct CertificateFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The content of the files, to be compared with what is found there later. A digest, because the key itself should be in
/// memory no more often than it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContentDigest([u8; 32]);

type Content = Result<Vec<u8>, TlsError>;
type BuiltConfig = Result<ServerConfig, Vec<TlsError>>;

impl CertificateFiles {
    /// Reads both files and builds what a handshake needs.
    pub(super) fn read(&self) -> (ContentDigest, BuiltConfig) {
        let (certificate, key) = self.contents();
        (ContentDigest::new(&certificate, &key), self.build(certificate, key))
    }

    /// The same, but builds nothing from content that was seen before.
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
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
        let chain = chain.map_err(|error| not_pem(TlsPart::Certificate, &self.certificate, &error))?;
        if chain.is_empty() {
            let right = "name a PEM file with a BEGIN CERTIFICATE line: the server's own certificate, then those that signed it";
            let problem = format!("{} holds no certificate", self.certificate.display());
            return Err(TlsError::new(TlsPart::Certificate, &self.certificate, problem, right));
        }
        Ok(chain)
    }

    fn key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
        let (part, file) = (TlsPart::Key, self.key.display());
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            // It is a section of its own kind, or in older files one whose first lines say so and are not base64.
            _ if holds(pem, b"ENCRYPTED") => {
                let right = "store the key without a passphrase, readable for this user only";
                TlsError::new(part, &self.key, format!("the private key in {file} needs a passphrase"), right)
            }
            pem::Error::NoItemsFound => {
                let right = "name a PEM file with a BEGIN PRIVATE KEY line";
                TlsError::new(part, &self.key, format!("{file} holds no private key"), right)
            }
            error => not_pem(part, &self.key, &error),
        })
    }

    fn config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, TlsError> {
        let bad_key = |source| {
            let problem = format!("the private key in {} cannot be used ({source})", self.key.display());
            let right = "name an RSA key of 2048 bits or more, an ECDSA key (P-256, P-384) or an Ed25519 key";
            TlsError::new(TlsPart::Key, &self.key, problem, right)
        };
        let provider = Arc::new(ring::default_provider());
        let signing = provider.key_provider.load_private_key(key).map_err(bad_key)?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => self.key_mismatch(),
            rustls::Error::InconsistentKeys(_) => bad_key(error),
            error => {
                let problem = format!("the certificate in {} cannot be used ({error})", self.certificate.display());
                let right = "name the certificate that was made for this server, in X.509 version 3";
                TlsError::new(TlsPart::Certificate, &self.certificate, problem, right)
            }
        })?;
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(bad_key)?;
        let resolver = Arc::new(SingleCertAndKey::from(certified));
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(config)
    }

    fn key_mismatch(&self) -> TlsError {
        let (key, certificate) = (self.key.display(), self.certificate.display());
        let problem = format!("the private key in {key} does not belong to the first certificate in {certificate}");
        let right =
            "name the key that the certificate was made for; the server's own certificate comes first in its file";
        TlsError::new(TlsPart::Key, &self.key, problem, right)
    }
}

impl ContentDigest {
    fn new(certificate: &Content, key: &Content) -> Self {
        let [certificate, key] = [certificate, key].map(|content| match content {
            Ok(bytes) => sha256([bytes.as_slice()]),
            Err(error) => sha256([error.to_string().as_bytes()]),
        });
        Self(sha256([certificate.as_slice(), &key]))
    }
}

fn content(part: TlsPart, file: &Path) -> Content {
    std::fs::read(file).map_err(|source| {
        let right = match source.kind() {
            io::ErrorKind::NotFound => "name a file that exists; a relative path starts at the workspace folder",
            _ => "name a PEM file that the user of this process may read",
        };
        TlsError::new(part, file, format!("{} cannot be read ({source})", file.display()), right)
    })
}

fn holds(pem: &[u8], word: &[u8]) -> bool {
    pem.windows(word.len()).any(|window| window == word)
}

/// The library shows bytes here; a person wants words.
fn not_pem(part: TlsPart, file: &Path, error: &pem::Error) -> TlsError {
    let problem = match error {
        pem::Error::MissingSectionEnd { .. } => "a BEGIN line has no END line",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is cut short",
        pem::Error::Base64Decode(_) => "what stands between BEGIN and END is not base64",
        pem::Error::SectionTooLarge => "a section is far too large",
        _ => "it cannot be made out",
    };
    let right = "copy the file again, from its first BEGIN line to its last END line";
    TlsError::new(part, file, format!("{} is not PEM that can be read ({problem})", file.display()), right)
}
