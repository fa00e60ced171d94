//! Certificates made for a test, a server that shows them, and clients that trust exactly one of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use switchboard_server::{Options, Tls};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::edge::running::{Running, request};
use crate::edge::wire::{PATIENCE, Reply, Wire};

/// A certificate that signs itself, for the names of this machine.
pub(crate) struct Issued {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Issued {
    pub(crate) fn new() -> Self {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let CertifiedKey { cert, signing_key }: CertifiedKey<KeyPair> = generate_simple_self_signed(names).unwrap();
        Self { certificate: cert.der().clone(), certificate_pem: cert.pem(), key_pem: signing_key.serialize_pem() }
    }
}

/// A folder with the two files.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn with(issued: &Issued) -> Self {
        let folder = Self(TempDir::new().unwrap());
        folder.write(&issued.certificate_pem, &issued.key_pem);
        folder
    }

    pub(crate) fn write(&self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) {
        std::fs::write(self.certificate(), certificate).unwrap();
        std::fs::write(self.key(), key).unwrap();
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.0.path().join("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }
}

/// A server that speaks TLS, and looks at its files with every connection.
pub(crate) struct Secured {
    pub(crate) running: Running,
    pub(crate) issued: Issued,
    pub(crate) folder: Folder,
}

impl Secured {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let issued = Issued::new();
        let folder = Folder::with(&issued);
        let tls = Tls::open(folder.certificate(), folder.key()).unwrap().reload_every(Duration::ZERO);
        let running = Running::with(|options| {
            options.tls = Some(Arc::new(tls));
            options.public_base_url = options.public_base_url.replace("http://", "https://");
            change(options);
        });
        Self { running: running.await, issued, folder }
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, head: &str, headers: &[&str], body: &str) -> Reply {
        let mut wire = self.connect().await;
        wire.send(&request(head, headers, body)).await;
        wire.reply().await
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::over(self.shake_hands(trusting(&self.issued)).await.unwrap())
    }

    /// A connection of a certain client.
    pub(crate) async fn shake_hands(&self, client: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.running.address).await.unwrap();
        shake_hands_over(stream, client).await
    }
}

pub(crate) async fn shake_hands_over(stream: TcpStream, client: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    let shaking = TlsConnector::from(Arc::new(client)).connect(name, stream);
    tokio::time::timeout(PATIENCE, shaking).await.expect("the handshake was never answered")
}

/// A client that trusts one certificate.
pub(crate) fn trusting(issued: &Issued) -> ClientConfig {
    speaking(issued, rustls::ALL_VERSIONS)
}

/// The same, of certain versions.
pub(crate) fn speaking(issued: &Issued, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(issued.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// What was agreed on: version, and protocol inside.
pub(crate) fn agreed(stream: &TlsStream<TcpStream>) -> (ProtocolVersion, Option<&[u8]>) {
    let session = stream.get_ref().1;
    (session.protocol_version().unwrap(), session.alpn_protocol())
}
