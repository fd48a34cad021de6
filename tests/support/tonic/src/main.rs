#![forbid(unsafe_code)]
//! tonic, told what to call by lines of JSON: see tests/support/callers/process.mjs.
//!
//! Messages are bytes to it, as they are to every caller there; what they mean is for the test to say.

mod bytes_codec;

use std::{collections::HashMap, error::Error, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, stdin},
    sync::{mpsc, oneshot},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    metadata::{KeyAndValueRef, MetadataKey, MetadataMap},
    transport::{Channel, Endpoint},
};

use bytes_codec::BytesCodec;

type AnyError = Box<dyn Error>;

/// The longest message that is received, in bytes.
const MAX_MESSAGE_BYTES: usize = 26_214_400;

/// A call under way.
struct Call {
    /// What is to be sent, until it is dropped.
    requests: Option<mpsc::UnboundedSender<Bytes>>,
    /// Dropped or told, it cancels the call.
    cancel: Option<oneshot::Sender<()>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AnyError> {
    let origin = std::env::args().nth(1).ok_or("no address is given")?;
    let channel = Endpoint::from_shared(origin)?.connect_lazy();
    let mut calls = HashMap::new();
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        obey(&channel, &mut calls, &serde_json::from_str(&line)?)?;
    }
    Ok(())
}

/// Does what one line says.
fn obey(channel: &Channel, calls: &mut HashMap<u64, Call>, command: &Value) -> Result<(), AnyError> {
    let number = command["call"].as_u64().ok_or("a command without a call")?;
    if let Some(begin) = command.get("begin") {
        calls.insert(number, start(channel, number, begin)?);
    }
    let call = calls.get_mut(&number).ok_or("no such call")?;
    if let (Some(message), Some(requests)) = (command["send"].as_str(), &call.requests) {
        // A call that has ended takes no more.
        let _ = requests.send(STANDARD.decode(message)?.into());
    }
    if command["halfClose"] == true {
        call.requests = None;
    }
    if command["cancel"] == true {
        call.cancel = None;
    }
    Ok(())
}

/// Begins a call of any kind as a bidirectional one: on the wire they are the same.
fn start(channel: &Channel, number: u64, begin: &Value) -> Result<Call, AnyError> {
    let (sender, requests) = mpsc::unbounded_channel();
    let (cancel, cancelled) = oneshot::channel();
    let mut request = Request::new(UnboundedReceiverStream::new(requests));
    if let Some(timeout) = begin["timeoutMs"].as_u64() {
        request.set_timeout(Duration::from_millis(timeout));
    }
    for (name, value) in begin["headers"].as_object().unwrap_or(&Map::new()) {
        let name: MetadataKey<_> = name.parse()?;
        request
            .metadata_mut()
            .insert(name, value.as_str().unwrap_or_default().parse()?);
    }
    let path = begin["path"].as_str().ok_or("a call without a path")?.parse()?;
    let grpc = Grpc::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
    tokio::spawn(async move {
        let status = tokio::select! {
            ended = follow(grpc, number, request, path) => ended.err().unwrap_or_else(|| Status::new(Code::Ok, "")),
            _ = cancelled => Status::cancelled("by the caller"),
        };
        say(&json!({ "call": number, "end": {
            "code": status.code() as i32,
            "text": status.message(),
            "details": STANDARD.encode(status.details()),
        } }));
    });
    Ok(Call {
        requests: Some(sender),
        cancel: Some(cancel),
    })
}

/// Makes a call and says what arrives.
async fn follow(
    mut grpc: Grpc<Channel>,
    number: u64,
    request: Request<UnboundedReceiverStream<Bytes>>,
    path: http::uri::PathAndQuery,
) -> Result<(), Status> {
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let response = grpc.streaming(request, path, BytesCodec).await?;
    say(&json!({ "call": number, "headers": headers(response.metadata()) }));
    let mut messages = response.into_inner();
    while let Some(message) = messages.message().await? {
        say(&json!({ "call": number, "message": STANDARD.encode(message) }));
    }
    Ok(())
}

/// The headers that are text.
fn headers(metadata: &MetadataMap) -> Map<String, Value> {
    metadata
        .iter()
        .filter_map(|entry| match entry {
            KeyAndValueRef::Ascii(name, value) => Some((name.to_string(), value.to_str().ok()?.into())),
            KeyAndValueRef::Binary(..) => None,
        })
        .collect()
}

/// One line to the test.
fn say(line: &Value) {
    println!("{line}");
}
