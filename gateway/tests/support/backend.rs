//! The backend's side of one connection: HTTP/1.1 by hand.

use std::io::ErrorKind;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{SOON, soon};

/// A request's head.
#[derive(Debug)]
pub(crate) struct Head {
    /// The first line.
    pub(crate) line: String,
    fields: Vec<(String, String)>,
}

impl Head {
    /// A field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What begins a streamed gRPC-Web answer.
pub(crate) const GRPC_WEB: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/grpc-web+proto\r\nx-request-id: r-1\r\n\
    access-control-allow-origin: *\r\ntransfer-encoding: chunked\r\n\r\n";

/// One connection from the gateway.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Connection {
        Connection {
            stream,
            read: Vec::new(),
        }
    }

    /// Reads until `read` holds `length` bytes, and takes them.
    pub(crate) async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            let count = soon("the gateway to send", self.stream.read_buf(&mut self.read))
                .await
                .expect("readable");
            assert!(count > 0, "the gateway closed the connection");
        }
        self.read.drain(..length).collect()
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.take(1).await);
        }
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    /// The head of the next request.
    pub(crate) async fn head(&mut self) -> Head {
        let line = self.line().await;
        let mut fields = Vec::new();
        loop {
            let field = self.line().await;
            let Some((name, value)) = field.split_once(':') else {
                break;
            };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Head { line, fields }
    }

    /// The next chunk of a request's body; empty at its end.
    pub(crate) async fn chunk(&mut self) -> Vec<u8> {
        let size = self.line().await;
        let size = usize::from_str_radix(&size, 16).expect("a chunk's size");
        let chunk = self.take(size).await;
        self.take(2).await;
        chunk
    }

    /// The whole body of a request, sent in chunks.
    pub(crate) async fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk().await;
            if chunk.is_empty() {
                return body;
            }
            body.extend(chunk);
        }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon("the gateway to read", self.stream.write_all(bytes.as_ref()))
            .await
            .expect("writable");
    }

    /// Sends one chunk of an answer's body; an empty one ends it.
    pub(crate) async fn send_chunk(&mut self, bytes: &[u8]) {
        let head = format!("{:x}\r\n", bytes.len());
        self.send([head.as_bytes(), bytes, b"\r\n"].concat()).await;
    }

    /// Answers with these frames, and ends the answer.
    pub(crate) async fn answer(&mut self, frames: &[u8]) {
        self.send(GRPC_WEB).await;
        self.send_chunk(frames).await;
        self.send_chunk(&[]).await;
    }

    /// Waits until the gateway has closed the connection by a reset, which workerd notices at once.
    pub(crate) async fn reset(&mut self) {
        let mut rest = [0; 4096];
        loop {
            match timeout(SOON, self.stream.read(&mut rest))
                .await
                .expect("the connection to be reset")
            {
                Ok(0) => {
                    // The end of what is sent comes just before the reset.
                    if let Err(error) = soon("a reset", self.fill()).await {
                        assert!(
                            matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                            "{error}"
                        );
                        return;
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                    return;
                }
            }
        }
    }

    /// Writes until that fails.
    async fn fill(&mut self) -> Result<(), ErrorKind> {
        loop {
            self.stream
                .write_all(b"0\r\n")
                .await
                .map_err(|error| error.kind())?;
            tokio::task::yield_now().await;
        }
    }
}
