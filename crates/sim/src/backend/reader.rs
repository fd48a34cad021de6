//! A client that holds a static stream open, and opens another from where it was when that one ends.

use std::rc::Rc;

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    Rpc as _,
    xmtp::backend::v1::{
        SubscribeStaticRequest, SubscribeStaticResponse, subscribe_static_response::Response,
        subscription_service::SubscribeStatic,
    },
};
use conclave_topiclog::CallContext;
use prost::Message as _;

use super::{
    client::{Client, meta_of, to_query},
    faults::Fault,
    history::{History, Stream, id_of, topic_of},
};

/// Reads for as long as the simulation runs.
pub(super) async fn run(client: Client, topics: Vec<Bytes>) {
    let mut positions: Vec<(Bytes, u64)> = topics.into_iter().map(|topic| (topic, 0)).collect();
    loop {
        let status = read_one(&client, &mut positions).await;
        if !matches!(
            status.code,
            Code::Ok | Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded
        ) {
            let text = format!("a stream ended with {status}");
            client.history.borrow_mut().unended.push(text);
            return;
        }
        client.back_off().await;
    }
}

/// Reads one stream to its end, and moves the positions on.
async fn read_one(client: &Client, positions: &mut [(Bytes, u64)]) -> Status {
    let world = Rc::clone(&client.world);
    let edge = world.random.below(client.edges.len());
    let (life, backend) = client.edges[edge].current();
    let request = SubscribeStaticRequest {
        topics: positions.iter().map(to_query).collect(),
    };
    let message: Bytes = request.encode_to_vec().into();
    let context = CallContext::default();
    world.travel().await;
    let opening = backend.stream(SubscribeStatic::PATH, message.clone(), message.len(), &context);
    let mut session = match life.clone().limit(opening).await {
        None => return Status::unavailable("the Worker was lost"),
        Some(Err(status)) => return status,
        Some(Ok(session)) => session,
    };
    let stream = {
        let mut history = client.history.borrow_mut();
        history.streams.push(Stream {
            client: client.index,
            positions: positions.to_vec(),
            targets: Vec::new(),
            frames: Vec::new(),
            is_open: true,
            ended: None,
        });
        history.streams.len() - 1
    };
    let status = loop {
        let frame = match life.clone().limit(session.next()).await {
            None => break Status::unavailable("the Worker was lost"),
            Some(None) => break Status::unavailable("the stream ended without a status"),
            Some(Some(Err(status))) => break status,
            Some(Some(Ok(frame))) => frame,
        };
        let frame = SubscribeStaticResponse::decode(&frame[..]).expect("a frame decodes");
        record(&mut client.history.borrow_mut(), stream, frame, positions);
        if world.strikes(Fault::Edge) {
            break Status::new(Code::Ok, "the client leaves");
        }
        if world.random.chance(100) {
            world.sleep_ms(world.random.between(1, 500)).await;
        }
    };
    let mut history = client.history.borrow_mut();
    history.streams[stream].is_open = false;
    history.streams[stream].ended = Some(status.code).filter(|code| *code != Code::Ok);
    status
}

/// Takes a frame in, and moves the positions on.
fn record(
    history: &mut History,
    stream: usize,
    frame: SubscribeStaticResponse,
    positions: &mut [(Bytes, u64)],
) {
    let moment = history.now();
    match frame.response {
        Some(Response::Started(started)) => {
            history.streams[stream].targets = started
                .targets
                .iter()
                .map(|target| target.through_sequence_id)
                .collect();
        }
        Some(Response::Messages(messages)) => {
            let metas: Vec<_> = messages.envelopes.iter().map(meta_of).collect();
            for (topic, after) in positions.iter_mut() {
                let ids = metas.iter().filter(|meta| topic_of(meta) == *topic).map(id_of);
                *after = ids.max().unwrap_or(*after);
            }
            history.streams[stream].frames.push((moment, metas));
        }
        _ => {}
    }
}
