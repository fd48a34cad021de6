//! Clients that open inboxes and publish key packages.

use std::rc::Rc;

use conclave_envelope::key_package::building::{Package, lifetime};
use conclave_grpc_web::{Code, Status};
use conclave_identity::{
    building::{Account, Installation, Signer, Step, update},
    inbox_id,
};
use conclave_proto::xmtp::{
    backend::v1::{
        ClientEnvelope, EnvelopeMeta, GetInboxIdsRequest, KeyPackage, PublishError, client_envelope::Payload,
        get_inbox_ids_request, identity_service::GetInboxIds, publish_error::Reason,
    },
    identity::associations::IdentityUpdate,
};
use conclave_topiclog::{Backend, Isolate, chains::Chains};
use prost::Message as _;

use crate::world::{Worker, World};

/// An inbox that an account opens with a nonce.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) id: String,
}

impl Inbox {
    pub(crate) fn of(owner: &dyn Signer, nonce: u64) -> Self {
        Self {
            id: inbox_id::derive(&owner.identifier(), nonce),
        }
    }

    pub(crate) fn topic(&self) -> Vec<u8> {
        [vec![2], hex::decode(&self.id).expect("hexadecimal")].concat()
    }

    /// An update of it. Equal arguments give equal bytes but for passkeys.
    pub(crate) fn update(&self, seconds: u64, steps: &[Step<'_>]) -> ClientEnvelope {
        enveloped(update(&self.id, seconds, steps))
    }
}

pub(crate) fn enveloped(update: IdentityUpdate) -> ClientEnvelope {
    ClientEnvelope {
        payload: Some(Payload::IdentityUpdate(update)),
    }
}

/// A sound key package of the installation with this seed, valid for an hour around the deployment's clock.
pub(crate) fn package(world: &World, seed: u8) -> Package {
    let now = world.now_ns() / 1_000_000_000;
    Package {
        signer: [seed; 32],
        source: lifetime(now - 1_800, now + 1_800),
        ..Package::sound()
    }
}

pub(crate) fn key_package(package: &Package) -> ClientEnvelope {
    let key_package_tls_serialized = package.write().into();
    ClientEnvelope {
        payload: Some(Payload::KeyPackage(KeyPackage {
            key_package_tls_serialized,
        })),
    }
}

/// The index and the reason of a publish that is an INVALID_ARGUMENT.
pub(crate) fn refused(published: Result<Vec<EnvelopeMeta>, Status>) -> (Option<u32>, Reason) {
    let status = published.expect_err("refused");
    assert_eq!(status.code, Code::InvalidArgument, "{status:?}");
    let detail = status
        .detail("type.googleapis.com/xmtp.backend.v1.PublishError")
        .expect("a detail");
    let detail = PublishError::decode(detail).expect("decodes");
    (detail.index, detail.reason())
}

/// The code of a publish that is none.
pub(crate) fn code(published: Result<Vec<EnvelopeMeta>, Status>) -> Code {
    let status = published.expect_err("refused");
    assert!(status.details.is_empty());
    status.code
}

pub(crate) const ETHEREUM: i32 = 1;
pub(crate) const PASSKEY: i32 = 2;
pub(crate) const HANDLE: i32 = 3;

impl World {
    /// A backend with these chains.
    pub(crate) fn client_with(&self, chains: Rc<dyn Chains>) -> Rc<Backend<Worker>> {
        let worker = Worker::new(Rc::clone(&self.shared));
        let isolate = Rc::new(Isolate::new(chains));
        Rc::new(Backend::in_isolate(worker, self.configuration(), isolate))
    }

    /// Opens an inbox with its owner as the only member.
    pub(crate) fn open(&self, owner: &dyn Signer, nonce: u64) -> Inbox {
        let inbox = Inbox::of(owner, nonce);
        self.publish(vec![inbox.update(1, &[Step::Create(owner, nonce)])])
            .expect("it opens");
        inbox
    }

    pub(crate) fn try_look_up(&self, entries: &[(&str, i32)]) -> Result<Vec<Option<String>>, Status> {
        let entry = |(identifier, identifier_kind): &(&str, i32)| get_inbox_ids_request::Request {
            identifier: (*identifier).to_owned(),
            identifier_kind: *identifier_kind,
        };
        let request = GetInboxIdsRequest {
            requests: entries.iter().map(entry).collect(),
        };
        let responses = self.call::<GetInboxIds>(&request)?.responses;
        assert_eq!(responses.len(), entries.len());
        for (response, request) in responses.iter().zip(&request.requests) {
            assert_eq!(
                (&response.identifier, response.identifier_kind),
                (&request.identifier, request.identifier_kind)
            );
        }
        Ok(responses.into_iter().map(|response| response.inbox_id).collect())
    }

    pub(crate) fn look_up(&self, identifier: &str, kind: i32) -> Option<String> {
        let mut found = self.try_look_up(&[(identifier, kind)]).expect("found");
        found.pop().flatten()
    }
}

/// Adds installations, one an update.
pub(crate) fn additions(inbox: &Inbox, owner: &Account, seeds: std::ops::Range<u8>) -> Vec<ClientEnvelope> {
    seeds
        .map(|seed| inbox.update(seed.into(), &[Step::Add(&Installation::new(seed), owner)]))
        .collect()
}

pub(crate) fn log_of(world: &World, inbox: &Inbox) -> Vec<ClientEnvelope> {
    let stored = world.read_all(&inbox.topic());
    stored.into_iter().filter_map(|stored| stored.envelope).collect()
}
