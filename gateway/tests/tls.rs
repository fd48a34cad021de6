//! TLS on the port: what the handshake agrees on, and a certificate that is replaced while it is in use.
#![cfg(feature = "tls")]

mod support;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use conclave_gateway::{Certificate, Drain, Settings, TlsError};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use support::soon;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};

const NAME: &str = "conclave.example";

/// A folder with a certificate chain and a key.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("conclave-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn chain(&self) -> PathBuf {
        self.0.join("chain.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    /// Writes a new certificate with its key, and gives the certificate.
    fn write(&self) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        std::fs::write(self.chain(), cert.pem()).expect("written");
        std::fs::write(self.key(), signing_key.serialize_pem()).expect("written");
        cert.der().clone()
    }

    fn read(&self) -> Result<Certificate, TlsError> {
        Certificate::read(&self.chain(), &self.key())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves with TLS in front of a port where nobody listens.
async fn serve(certificate: Certificate) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let settings = Settings::new("http://127.0.0.1:1".parse().expect("an address"));
    tokio::spawn(conclave_gateway::serve_tls(
        listener,
        certificate,
        settings,
        Drain::new(),
    ));
    address
}

/// A handshake by a caller that trusts one certificate.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(NAME).expect("a name");
    soon(
        "a handshake",
        TlsConnector::from(Arc::new(config)).connect(name, stream),
    )
    .await
}

// API-285
#[tokio::test]
async fn both_versions_of_http_are_offered_and_served() {
    let folder = Folder::new("offered");
    let trusted = folder.write();
    let address = serve(folder.read().expect("a pair")).await;
    let mut h1 = connect(address, &trusted, b"http/1.1")
        .await
        .expect("a handshake");
    h1.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .expect("sent");
    let mut answer = Vec::new();
    // The end of the connection is told without TLS's own farewell.
    let _ = soon("an answer", h1.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 502 "));
    let h2 = connect(address, &trusted, b"h2").await.expect("a handshake");
    let (mut requests, connection) = soon("a handshake", h2::client::handshake(h2))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    let request = hyper::Request::post("https://conclave.example/a.B/C")
        .header("content-type", "application/grpc")
        .body(())
        .expect("a request");
    let (answer, _) = requests.send_request(request, true).expect("sent");
    assert_eq!(
        soon("an answer", answer).await.expect("an answer").headers()["grpc-status"],
        "14"
    );
}

#[tokio::test]
async fn a_renewed_certificate_is_used_from_the_next_connection_on_and_a_broken_one_is_not() {
    let folder = Folder::new("renewed");
    let first = folder.write();
    let certificate = folder.read().expect("a pair");
    let address = serve(certificate.clone()).await;
    connect(address, &first, b"h2").await.expect("the first");
    let second = folder.write();
    certificate.reload().expect("a pair");
    connect(address, &second, b"h2").await.expect("the second");
    connect(address, &first, b"h2")
        .await
        .expect_err("the first is gone");
    std::fs::write(folder.key(), "no key").expect("written");
    let error = certificate.reload().expect_err("no key");
    assert!(error.to_string().contains("key.pem"), "{error}");
    connect(address, &second, b"h2").await.expect("still the second");
}

#[test]
fn a_pair_that_cannot_be_used_says_which_file_is_at_fault() {
    let folder = Folder::new("unusable");
    let missing = Certificate::read(Path::new("/no/such/chain.pem"), Path::new("/no/such/key.pem"));
    assert!(
        missing
            .expect_err("missing")
            .to_string()
            .contains("/no/such/chain.pem")
    );
    folder.write();
    let key = std::fs::read(folder.key()).expect("a key");
    folder.write();
    std::fs::write(folder.key(), key).expect("written");
    let error = folder.read().expect_err("another's key");
    assert!(matches!(error, TlsError::Unusable(_)), "{error}");
}
