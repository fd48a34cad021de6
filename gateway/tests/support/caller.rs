//! Callers: native gRPC by h2, and HTTP/1.1 by hand.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::{
    RecvStream, SendStream,
    client::{self, ResponseFuture, SendRequest},
};
use hyper::{HeaderMap, Request, Response, header::HeaderName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};

use super::soon;

/// What the calls of a connection may have unread together, in bytes: more than one of them alone may.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// A connection in HTTP/2.
pub(crate) struct Caller {
    pub(crate) requests: SendRequest<Bytes>,
    /// Ends when the connection does.
    pub(crate) connection: JoinHandle<Result<(), h2::Error>>,
}

/// A call under way.
pub(crate) struct Call {
    pub(crate) response: ResponseFuture,
    pub(crate) request: SendStream<Bytes>,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) head: Response<()>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Ended {
    /// The status, wherever it stands.
    pub(crate) fn status(&self) -> &str {
        self.told("grpc-status")
    }

    /// A field of the trailers, or of the head where that is all.
    pub(crate) fn told(&self, name: &str) -> &str {
        let fields = self.trailers.as_ref().unwrap_or(self.head.headers());
        fields
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {fields:?}"))
            .to_str()
            .expect("text")
    }
}

impl Caller {
    pub(crate) async fn connect(address: SocketAddr) -> Caller {
        let stream = TcpStream::connect(address).await.expect("connected");
        let (requests, connection) = soon(
            "a handshake",
            client::Builder::new()
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .handshake(stream),
        )
        .await
        .expect("a handshake");
        Caller {
            requests,
            connection: tokio::spawn(connection),
        }
    }

    /// Begins a native call with `fields` beside those every call has.
    pub(crate) async fn call(&mut self, path: &str, fields: &[(&str, &str)]) -> Call {
        let mut request = Request::post(format!("http://api.example{path}"))
            .body(())
            .expect("a request");
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")]
            .iter()
            .chain(fields)
        {
            let name: HeaderName = name.parse().expect("a name");
            request
                .headers_mut()
                .insert(name, value.parse().expect("a value"));
        }
        let mut requests = soon("a place for a call", self.requests.clone().ready())
            .await
            .expect("open");
        let (response, request) = requests.send_request(request, false).expect("sent");
        Call { response, request }
    }

    /// A whole call of one message.
    pub(crate) async fn unary(&mut self, path: &str, body: &[u8]) -> Ended {
        let mut call = self.call(path, &[]).await;
        call.send(body, true);
        call.end().await
    }
}

impl Call {
    /// Sends bytes; h2 holds them until there is room.
    pub(crate) fn send(&mut self, bytes: &[u8], is_last: bool) {
        self.request
            .send_data(Bytes::copy_from_slice(bytes), is_last)
            .expect("open");
    }

    /// The answer, once it begins.
    pub(crate) async fn answer(self) -> (Response<RecvStream>, SendStream<Bytes>) {
        (
            soon("an answer", self.response).await.expect("an answer"),
            self.request,
        )
    }

    /// The call to its end.
    pub(crate) async fn end(self) -> Ended {
        let (answer, _request) = self.answer().await;
        end(answer).await
    }
}

/// The next bytes of an answer.
pub(crate) async fn data(answer: &mut Response<RecvStream>) -> Bytes {
    let bytes = soon("data", answer.body_mut().data())
        .await
        .expect("not the end")
        .expect("no error");
    answer
        .body_mut()
        .flow_control()
        .release_capacity(bytes.len())
        .expect("released");
    bytes
}

/// What is left of an answer.
pub(crate) async fn end(answer: Response<RecvStream>) -> Ended {
    let (parts, mut stream) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(bytes) = soon("data", stream.data()).await {
        let bytes = bytes.expect("no error");
        stream
            .flow_control()
            .release_capacity(bytes.len())
            .expect("released");
        body.extend_from_slice(&bytes);
    }
    Ended {
        trailers: soon("trailers", stream.trailers()).await.expect("no error"),
        head: Response::from_parts(parts, ()),
        body,
    }
}

/// Sends a request by hand, and reads the connection to its end.
pub(crate) async fn raw(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(request.as_ref()).await.expect("sent");
    let mut answer = Vec::new();
    soon("the end of the answer", stream.read_to_end(&mut answer))
        .await
        .expect("read");
    String::from_utf8_lossy(&answer).into_owned()
}
