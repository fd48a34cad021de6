//! TLS on the port, by a certificate that can be replaced while it is in use. Depends on nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

use crate::protocol::Protocol;

/// The protocols that are offered, the better one first.
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// A certificate with its key, from two files in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    files: Arc<Files>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

#[derive(Debug)]
struct Files {
    chain: PathBuf,
    key: PathBuf,
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds none of what it should.
    #[error("{what} cannot be read from {}: {reason}", .file.display())]
    File {
        /// The certificate chain or the key.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The two do not go together, or are of no kind that is understood.
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Certificate {
    /// Reads the chain, the server's own certificate first, and the key.
    ///
    /// # Errors
    /// [`TlsError`] says which file is at fault.
    pub fn read(chain: &Path, key: &Path) -> Result<Certificate, TlsError> {
        let files = Files {
            chain: chain.to_owned(),
            key: key.to_owned(),
        };
        let config = files.config()?;
        Ok(Certificate {
            files: Arc::new(files),
            config: Arc::new(RwLock::new(config)),
        })
    }

    /// Reads both files again; connections from now on are served with what they hold. What was read before stays in use
    /// when they cannot be.
    ///
    /// # Errors
    /// [`TlsError`] says which file is at fault.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = self.files.config()?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// The handshake, and the protocol it agrees on.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Protocol)> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP_2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

impl Files {
    fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = read("the certificate chain", &self.chain, |pem| {
            CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()
        })?;
        let key = read("the key", &self.key, PrivateKeyDer::from_pem_slice)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        Ok(Arc::new(config))
    }
}

fn read<T, E: ToString>(
    what: &'static str,
    file: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<T, TlsError> {
    fs::read(file)
        .map_err(|error| error.to_string())
        .and_then(|pem| parse(&pem).map_err(|error| error.to_string()))
        .map_err(|reason| TlsError::File {
            what,
            file: file.to_owned(),
            reason,
        })
}
