//! A client of the backend: builds envelopes and calls RPCs, encoded as on the wire.

use std::{future::Future, rc::Rc};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::{
    Rpc,
    conclave::operator::v1::{GetStatusRequest, GetStatusResponse, operator_service::GetStatus},
    xmtp::{
        backend::v1::{
            ClientEnvelope, CommitLogEntry, Cursor, EnvelopeMeta, GroupMessage, PublishRequest,
            QueryNewestRequest, QueryNewestResponse, QueryRequest, QueryResponse, ServerEnvelope,
            SubscribeRequest, SubscribeResponse, SubscribeStaticRequest, SubscribeStaticResponse, Topic,
            TopicQuery, WelcomeMessage,
            client_envelope::Payload,
            publish_service::Publish,
            query_service::{Query, QueryNewest},
            subscribe_request,
            subscription_service::{Subscribe, SubscribeStatic},
            welcome_message,
        },
        mls::message_contents::PlaintextCommitLogEntry,
    },
};
use conclave_topiclog::{Backend, CallContext, Requests, StreamSession, routing::Routing};
use prost::Message;

use crate::world::{Worker, World};

/// The content type of an application message, and of a commit (RFC 9420, section 6).
pub(crate) const APPLICATION: u8 = 1;
pub(crate) const COMMIT: u8 = 3;

pub(crate) type GroupId = [u8; 16];

/// A group id whose topic lies on a shard. Different `n` give different groups.
pub(crate) fn group_on(world: &World, shard: u32, n: u32) -> GroupId {
    let routing = Routing::at_birth(world.configuration().shard_count);
    (0u32..)
        .map(|salt| {
            let mut group = [0; 16];
            group[..4].copy_from_slice(&n.to_be_bytes());
            group[4..8].copy_from_slice(&salt.to_be_bytes());
            group
        })
        .find(|group| routing.shard_of(&group_topic(group)) == shard)
        .expect("some group lies there")
}

/// A group on any shard.
pub(crate) fn group(n: u32) -> GroupId {
    let mut group = [0xaa; 16];
    group[..4].copy_from_slice(&n.to_be_bytes());
    group
}

pub(crate) fn group_topic(group: &GroupId) -> Vec<u8> {
    [&[0][..], group].concat()
}

fn mls_bytes(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short");
    let prefix = match length {
        0..64 => vec![length.to_be_bytes()[3]],
        64..16_384 => (0x4000 | length).to_be_bytes()[2..].to_vec(),
        _ => (0x8000_0000 | length).to_be_bytes().to_vec(),
    };
    [&prefix, bytes].concat()
}

/// A group message: an MLS PrivateMessage around a ciphertext.
pub(crate) fn message_of(group: &GroupId, content_type: u8, ciphertext: &[u8]) -> ClientEnvelope {
    let data = [
        &[0, 1, 0, 2][..],
        &mls_bytes(group),
        &[0; 8],
        &[content_type],
        &mls_bytes(&[]),
        &mls_bytes(&[]),
        &mls_bytes(ciphertext),
    ]
    .concat();
    let message = GroupMessage {
        data: data.into(),
        sender_hmac: Bytes::new(),
        should_push: true,
    };
    ClientEnvelope {
        payload: Some(Payload::GroupMessage(message)),
    }
}

pub(crate) fn message(group: &GroupId, text: &str) -> ClientEnvelope {
    message_of(group, APPLICATION, text.as_bytes())
}

pub(crate) fn welcome(installation_key: [u8; 32], text: &str) -> ClientEnvelope {
    let v1 = welcome_message::V1 {
        installation_key: Bytes::copy_from_slice(&installation_key),
        data: Bytes::copy_from_slice(text.as_bytes()),
        ..Default::default()
    };
    let version = Some(welcome_message::Version::V1(v1));
    ClientEnvelope {
        payload: Some(Payload::WelcomeMessage(WelcomeMessage { version })),
    }
}

pub(crate) fn commit_log_entry(group: &GroupId, sequence_id: u64) -> ClientEnvelope {
    let plaintext = PlaintextCommitLogEntry {
        group_id: Bytes::copy_from_slice(group),
        commit_sequence_id: sequence_id,
        ..Default::default()
    };
    let entry = CommitLogEntry {
        serialized_commit_log_entry: plaintext.encode_to_vec().into(),
        signature: None,
    };
    ClientEnvelope {
        payload: Some(Payload::CommitLogEntry(entry)),
    }
}

pub(crate) fn id_of(meta: &EnvelopeMeta) -> u64 {
    meta.cursor.as_ref().expect("a cursor").sequence_id
}

pub(crate) fn ids(metas: &[EnvelopeMeta]) -> Vec<u64> {
    metas.iter().map(id_of).collect()
}

pub(crate) fn stored_ids(envelopes: &[ServerEnvelope]) -> Vec<u64> {
    envelopes
        .iter()
        .map(|stored| id_of(stored.meta.as_ref().expect("metadata")))
        .collect()
}

pub(crate) fn query_of(topic: &[u8], cursor: u64) -> TopicQuery {
    TopicQuery {
        topic: Some(Topic {
            topic: Bytes::copy_from_slice(topic),
        }),
        cursor: Some(Cursor { sequence_id: cursor }),
    }
}

/// A future that owns what it needs, so that it may outlive the caller.
pub(crate) fn call<R: Rpc>(
    backend: &Rc<Backend<Worker>>,
    request: &R::Request,
    context: CallContext,
) -> impl Future<Output = Result<R::Response, Status>> + use<R> + 'static
where
    R::Response: 'static,
{
    let backend = Rc::clone(backend);
    let message = Bytes::from(request.encode_to_vec());
    async move {
        let reply = backend
            .unary(R::PATH, message.clone(), message.len(), &context)
            .await;
        reply
            .result
            .map(|bytes| R::Response::decode(&bytes[..]).expect("a response decodes"))
    }
}

pub(crate) fn publish(
    backend: &Rc<Backend<Worker>>,
    envelopes: Vec<ClientEnvelope>,
) -> impl Future<Output = Result<Vec<EnvelopeMeta>, Status>> + use<> + 'static {
    let published = call::<Publish>(backend, &PublishRequest { envelopes }, CallContext::default());
    async move { published.await.map(|response| response.envelope_metas) }
}

pub(crate) fn query(
    backend: &Rc<Backend<Worker>>,
    queries: Vec<TopicQuery>,
    limit: u32,
) -> impl Future<Output = Result<QueryResponse, Status>> + use<> + 'static {
    call::<Query>(backend, &QueryRequest { queries, limit }, CallContext::default())
}

/// Calls that run to their end at once.
impl World {
    pub(crate) fn client(&self) -> Rc<Backend<Worker>> {
        Rc::new(self.backend())
    }

    pub(crate) fn call<R: Rpc>(&self, request: &R::Request) -> Result<R::Response, Status>
    where
        R::Response: 'static,
    {
        self.run(call::<R>(&self.client(), request, CallContext::default()))
    }

    pub(crate) fn publish(&self, envelopes: Vec<ClientEnvelope>) -> Result<Vec<EnvelopeMeta>, Status> {
        self.run(publish(&self.client(), envelopes))
    }

    pub(crate) fn publish_expecting(
        &self,
        envelopes: Vec<ClientEnvelope>,
        instance: &str,
    ) -> Result<Vec<EnvelopeMeta>, Status> {
        let context = CallContext {
            expected_router_instance: Some(instance.to_owned()),
            ..CallContext::default()
        };
        let request = PublishRequest { envelopes };
        self.run(call::<Publish>(&self.client(), &request, context))
            .map(|response| response.envelope_metas)
    }

    /// Publishes one message and returns its sequence id.
    pub(crate) fn say(&self, group: &GroupId, text: &str) -> u64 {
        id_of(&self.publish(vec![message(group, text)]).expect("published")[0])
    }

    pub(crate) fn query(&self, queries: Vec<TopicQuery>, limit: u32) -> Result<QueryResponse, Status> {
        self.run(query(&self.client(), queries, limit))
    }

    /// Every envelope of a topic, in order.
    pub(crate) fn read_all(&self, topic: &[u8]) -> Vec<ServerEnvelope> {
        self.query(vec![query_of(topic, 0)], 1_000)
            .expect("a page")
            .envelopes
    }

    pub(crate) fn newest(&self, topics: &[Vec<u8>], full: bool) -> Result<QueryNewestResponse, Status> {
        let topics = topics
            .iter()
            .map(|topic| Topic {
                topic: topic.clone().into(),
            })
            .collect();
        self.call::<QueryNewest>(&QueryNewestRequest {
            topics,
            include_full_envelope: full,
        })
    }

    pub(crate) fn status(&self) -> GetStatusResponse {
        self.call::<GetStatus>(&GetStatusRequest {}).expect("a status")
    }

    pub(crate) fn subscribe(&self, topics: Vec<TopicQuery>) -> Result<StreamSession<Worker>, Status> {
        self.try_subscribe(topics).expect("a stream opens")
    }

    pub(crate) fn try_subscribe(
        &self,
        topics: Vec<TopicQuery>,
    ) -> Option<Result<StreamSession<Worker>, Status>> {
        let backend = self.client();
        let message = Bytes::from(SubscribeStaticRequest { topics }.encode_to_vec());
        self.try_run(async move {
            let context = CallContext::default();
            backend
                .stream(SubscribeStatic::PATH, message.clone(), message.len(), &context)
                .await
        })
    }

    /// Every frame that is ready, and the status if the stream ended.
    pub(crate) fn frames(
        &self,
        stream: &mut StreamSession<Worker>,
    ) -> (Vec<SubscribeStaticResponse>, Option<Status>) {
        match self.take_frames(stream) {
            (frames, Some(Err(status))) => (frames, Some(status)),
            (frames, _) => (frames, None),
        }
    }

    /// Every frame that is ready, and how the stream ended if it did.
    pub(crate) fn take_frames<F: Message + Default>(
        &self,
        stream: &mut StreamSession<Worker>,
    ) -> (Vec<F>, Option<Result<(), Status>>) {
        let mut frames = Vec::new();
        loop {
            self.settle();
            match poll_once(stream) {
                None => return (frames, None),
                Some(Some(Ok(frame))) => frames.push(F::decode(&frame[..]).expect("a frame decodes")),
                Some(Some(Err(status))) => return (frames, Some(Err(status))),
                Some(None) => return (frames, Some(Ok(()))),
            }
        }
    }

    /// Opens a Subscribe stream.
    pub(crate) fn duplex(&self) -> Duplex {
        let backend = self.client();
        let opened = self.run(async move { backend.duplex(Subscribe::PATH, &CallContext::default()).await });
        let (stream, requests) = opened.expect("a stream");
        Duplex { stream, requests }
    }
}

/// A Subscribe stream and what its client sends on it.
pub(crate) struct Duplex {
    pub(crate) stream: StreamSession<Worker>,
    pub(crate) requests: Requests<Worker>,
}

impl Duplex {
    pub(crate) fn send(&self, request: subscribe_request::Request) {
        let frame = SubscribeRequest {
            request: Some(request),
        };
        self.requests.push(frame.encode_to_vec().into());
    }

    pub(crate) fn update(&self, id: u64, adds: Vec<TopicQuery>, removes: &[Vec<u8>]) {
        let removes = removes.iter().map(|topic| Topic {
            topic: topic.clone().into(),
        });
        self.send(subscribe_request::Request::Update(subscribe_request::Update {
            id,
            adds,
            removes: removes.collect(),
        }));
    }

    /// Every frame that is ready, and how the stream ended if it did.
    pub(crate) fn frames(&mut self, world: &World) -> (Vec<SubscribeResponse>, Option<Result<(), Status>>) {
        world.take_frames(&mut self.stream)
    }
}

/// What the stream has now, if anything.
pub(crate) fn poll_once(stream: &mut StreamSession<Worker>) -> Option<Option<Result<Vec<u8>, Status>>> {
    use futures_util::FutureExt as _;
    let mut next = Box::pin(stream.next());
    (&mut next).now_or_never()
}
