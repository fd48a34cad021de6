//! What the admission table checks beyond parsing, of envelopes that are no duplicates (contract section 3.1, API-222,
//! API-230 to 235, API-296 to 298). Depends on `envelope` for key packages and on `identity` for identity updates.
//!
//! A key package that stands the checks needs no look for duplicates: only one that fails them is asked for. Whether an
//! identity update is stored shows in the log it is judged against. Everything is judged in the order of the request and
//! no further than the first that fails, so the lowest failing index is the one that is reported (API-223).
//!
//! The verdict holds for the log as it was read. It travels with the publish as preconditions, claims and associations, and
//! the shards store all of it or none.

use std::collections::HashMap;

use bytes::Bytes;
use conclave_envelope::{
    Admitted, Topic, Unchecked,
    key_package::ParsedKeyPackage,
    request::{AdmittedPublish, PublishFailure},
};
use conclave_grpc_web::Status;
use conclave_identity::{
    Candidate, Change, HandleOwner, History, IdentityFailure, Refusal, Surroundings, ValidatedUpdate,
    WalletQuestion, WalletVerdict,
    request::{RequestUpdate, is_claimed_below, second_of_an_inbox},
};
use conclave_proto::{
    conclave::internal::v1::{Association, Claim, Precondition},
    xmtp::{backend::v1::publish_error::Reason, identity::associations::IdentityUpdate},
};

use super::{Backend, CallContext};
use crate::{keys, platform::Platform};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// What must hold, and what is written besides, when the envelopes of a publish are stored.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) preconditions: Vec<Precondition>,
    pub(super) claims: Vec<Claim>,
    pub(super) associations: Vec<Association>,
}

/// Why a publish is not stored.
#[derive(Debug)]
pub(super) enum Rejection {
    /// An envelope fails: no later one was looked at.
    Refused(PublishFailure),
    /// Whether an envelope fails is not known of all of them, and none is known to.
    Undecided(Status),
}

/// An envelope that is no duplicate of an earlier index.
struct Entry<'a> {
    index: usize,
    /// Its place among those.
    place: u32,
    admitted: &'a Admitted,
}

/// An identity update and the log it is judged against.
struct Judged<'a> {
    entry: &'a Entry<'a>,
    candidate: Candidate,
    history: History,
    head: u64,
}

impl<P: Platform> Backend<P> {
    /// Judges everything that is left unchecked of a publish.
    pub(super) async fn validate(
        &self,
        publish: &AdmittedPublish,
        context: &CallContext,
    ) -> Result<Conditions, Rejection> {
        if publish
            .envelopes()
            .iter()
            .all(|admitted| admitted.unchecked().is_none())
        {
            return Ok(Conditions::default());
        }
        let entries: Vec<Entry<'_>> = (0..)
            .zip(publish.distinct())
            .map(|(place, (index, admitted))| Entry {
                index,
                place,
                admitted,
            })
            .collect();
        let updates: Vec<(&Entry<'_>, &IdentityUpdate)> = entries
            .iter()
            .filter_map(|entry| match entry.admitted.unchecked() {
                Some(Unchecked::IdentityUpdate(update)) => Some((entry, update)),
                _ => None,
            })
            .collect();
        let in_request: Vec<RequestUpdate> = updates
            .iter()
            .map(|(entry, update)| {
                let inbox = inbox_of(entry.admitted.topic());
                RequestUpdate::new(entry.index, inbox, *entry.admitted.message_hash(), update)
            })
            .collect();
        let mut lowest = Lowest::default();
        if let Some(index) = second_of_an_inbox(&in_request) {
            lowest.fail(index, &Refusal::SecondOfInbox);
        }
        let packages = self.judge_key_packages(&entries, &mut lowest, context).await;
        let conditions = self
            .judge_updates(&updates, &in_request, &mut lowest, context)
            .await;
        match lowest.failure {
            Some(failure) => Err(Rejection::Refused(failure)),
            None => packages.and(conditions).map_err(Rejection::Undecided),
        }
    }

    async fn judge_key_packages(
        &self,
        entries: &[Entry<'_>],
        lowest: &mut Lowest,
        context: &CallContext,
    ) -> Result<(), Status> {
        let now_seconds = self.platform.now_ns() / NANOS_PER_SECOND;
        let failing: Vec<(&Entry<'_>, Reason, String)> = entries
            .iter()
            .filter(|entry| lowest.may_be(entry.index))
            .filter_map(|entry| match entry.admitted.unchecked() {
                Some(Unchecked::KeyPackage(bytes)) => {
                    let (reason, why) = judge_key_package(bytes, now_seconds).err()?;
                    Some((entry, reason, why))
                }
                _ => None,
            })
            .collect();
        let envelopes: Vec<&Admitted> = failing.iter().map(|(entry, ..)| entry.admitted).collect();
        let is_stored = self.find(&envelopes, context).await?;
        let first = failing.iter().zip(is_stored).find(|(_, is_stored)| !is_stored);
        if let Some(((entry, reason, why), _)) = first {
            lowest.fail_as(entry.index, *reason, why);
        }
        Ok(())
    }

    /// Judges the updates in the order of the request. An error is a status that decides nothing.
    async fn judge_updates(
        &self,
        updates: &[(&Entry<'_>, &IdentityUpdate)],
        in_request: &[RequestUpdate],
        lowest: &mut Lowest,
        context: &CallContext,
    ) -> Result<Conditions, Status> {
        let (judged, damage) = self.begin_updates(updates, lowest, context).await?;
        let verdicts = self.ask_chains(&judged, context).await;
        let owners = self.ask_owners(&judged, context).await?;
        let max_entries = self.configuration.limits.max_identity_entries;
        let mut undecided = damage;
        let mut conditions = Conditions::default();
        for (judged, owner) in judged.iter().zip(owners) {
            let index = judged.entry.index;
            let surroundings = Surroundings {
                verdicts: &|question: &WalletQuestion| {
                    let verdict = verdicts.get(question).copied();
                    verdict.unwrap_or(WalletVerdict::Unavailable)
                },
                handles: &self.configuration.handles,
                handle_owner: match is_claimed_below(in_request, index) {
                    true => HandleOwner::OtherInbox,
                    false => owner,
                },
                now_ns: self.platform.now_ns(),
            };
            let outcome = {
                let mut memo = self.isolate.states().borrow_mut();
                judged.candidate.admit(&judged.history, &surroundings, &mut memo)
            };
            match outcome {
                Ok(validated) => conditions.add(judged, &validated, max_entries),
                // Time has made it so. A copy may have been stored while the chain was asked, after its log was read.
                Err(IdentityFailure::Refused(Refusal::BlockNotFresh))
                    if self.find(&[judged.entry.admitted], context).await? == [true] => {}
                Err(IdentityFailure::Refused(refusal)) => {
                    lowest.fail(index, &refusal);
                    break;
                }
                Err(failure) => undecided = undecided.or(Some(undecided_status(&failure))),
            }
        }
        match undecided {
            Some(status) => Err(status),
            None => Ok(conditions),
        }
    }

    /// Reads the logs of updates, and judges those that are not stored as far as neither state nor chain is needed. Also
    /// what is wrong with a log, if anything is.
    async fn begin_updates<'a>(
        &self,
        updates: &[(&'a Entry<'a>, &IdentityUpdate)],
        lowest: &mut Lowest,
        context: &CallContext,
    ) -> Result<(Vec<Judged<'a>>, Option<Status>), Status> {
        let updates = updates.iter().take_while(|(entry, _)| lowest.may_be(entry.index));
        let updates: Vec<_> = updates.collect();
        let keys = updates
            .iter()
            .map(|(entry, _)| (*entry.admitted.topic(), *entry.admitted.message_hash()));
        let logs = self.read_logs(keys, context).await?;
        let mut judged = Vec::with_capacity(logs.len());
        let mut damage = None;
        for ((entry, update), log) in updates.into_iter().zip(logs) {
            let history = match log.history {
                _ if log.is_stored => continue,
                Ok(history) => history,
                Err(failure) => {
                    damage = damage.or(Some(undecided_status(&failure)));
                    continue;
                }
            };
            let hash = *entry.admitted.message_hash();
            let max = self.configuration.limits.max_identity_entries;
            match Candidate::begin(update, hash, history.entries(), max) {
                Ok(candidate) => judged.push(Judged {
                    entry,
                    candidate,
                    history,
                    head: log.head,
                }),
                Err(refusal) => {
                    lowest.fail(entry.index, &refusal);
                    break;
                }
            }
        }
        Ok((judged, damage))
    }

    async fn ask_chains(
        &self,
        judged: &[Judged<'_>],
        context: &CallContext,
    ) -> HashMap<WalletQuestion, WalletVerdict> {
        let questions: Vec<&WalletQuestion> = judged
            .iter()
            .flat_map(|judged| judged.candidate.wallet_questions())
            .collect();
        if questions.is_empty() {
            return HashMap::new();
        }
        let verdicts = self
            .isolate
            .chains()
            .admit(&questions, self.call_deadline_ms(context));
        let verdicts = verdicts.await;
        questions.into_iter().cloned().zip(verdicts).collect()
    }

    /// Who holds the handle that each update claims; nobody for one that claims none.
    async fn ask_owners(
        &self,
        judged: &[Judged<'_>],
        context: &CallContext,
    ) -> Result<Vec<HandleOwner>, Status> {
        let keys = judged.iter().filter_map(|judged| {
            let handle = judged.candidate.claimed_handle()?;
            Some(keys::of_handle(handle))
        });
        let keys: Vec<Bytes> = keys.collect();
        let owners = self.resolve(&keys, &[], context).await?;
        let owner = |judged: &Judged<'_>| {
            let key = keys::of_handle(judged.candidate.claimed_handle()?);
            let owner = owners.get(&key)?;
            Some(
                match owner.as_ref() == judged.entry.admitted.topic().identifier() {
                    true => HandleOwner::SameInbox,
                    false => HandleOwner::OtherInbox,
                },
            )
        };
        Ok(judged
            .iter()
            .map(|judged| owner(judged).unwrap_or(HandleOwner::Nobody))
            .collect())
    }
}

impl Conditions {
    fn add(&mut self, judged: &Judged<'_>, validated: &ValidatedUpdate, max_identity_entries: u32) {
        let Entry {
            index,
            place,
            admitted,
        } = judged.entry;
        let index = u32::try_from(*index).unwrap_or(u32::MAX);
        let inbox = Bytes::copy_from_slice(admitted.topic().identifier());
        self.preconditions.push(Precondition {
            topic: Bytes::copy_from_slice(admitted.topic().as_bytes()),
            expected_head: Some(judged.head),
            max_entries: Some(max_identity_entries),
            index,
        });
        self.claims
            .extend(validated.claimed_handle.iter().map(|handle| Claim {
                key: keys::of_handle(handle),
                owner: inbox.clone(),
                index,
            }));
        self.associations
            .extend(validated.changes.iter().map(|change| Association {
                key: keys::of_identifier(&change.key),
                inbox: inbox.clone(),
                is_live: change.change == Change::Added,
                envelope: *place,
            }));
    }
}

/// The failure of the lowest index so far.
#[derive(Debug, Default)]
struct Lowest {
    failure: Option<PublishFailure>,
}

impl Lowest {
    /// Whether an envelope comes before every one that is known to fail, so that it may be the lowest.
    fn may_be(&self, index: usize) -> bool {
        let lowest = self.failure.as_ref().and_then(PublishFailure::index);
        lowest.is_none_or(|lowest| index < lowest)
    }

    fn fail(&mut self, index: usize, refusal: &Refusal) {
        self.fail_as(index, refusal.reason(), refusal);
    }

    fn fail_as(&mut self, index: usize, reason: Reason, why: impl std::fmt::Display) {
        if self.may_be(index) {
            self.failure = Some(PublishFailure::not_admitted(index, reason, why));
        }
    }
}

fn judge_key_package(bytes: &[u8], now_seconds: u64) -> Result<(), (Reason, String)> {
    // It parsed when the request was admitted.
    let parsed =
        ParsedKeyPackage::parse(bytes).map_err(|error| (Reason::MalformedPayload, error.to_string()))?;
    match parsed.validate(now_seconds) {
        Ok(_) => Ok(()),
        Err(error) => Err((Reason::InvalidKeyPackage, error.to_string())),
    }
}

/// The 32 bytes of the inbox id of an identity topic.
fn inbox_of(topic: &Topic) -> [u8; 32] {
    topic.identifier().try_into().unwrap_or_default()
}

/// The status of a failure that says nothing about the update.
fn undecided_status(failure: &IdentityFailure) -> Status {
    let message = format!("{failure}; nothing was stored");
    match failure {
        IdentityFailure::NoVerdict { .. } => Status::unavailable(message),
        IdentityFailure::DamagedHistory { .. } | IdentityFailure::Refused(_) => Status::internal(message),
    }
}
