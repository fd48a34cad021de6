//! The services of push and of attachments, as a deployment that has neither answers them (companions 5.6): every request
//! is judged, and nothing is stored.

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::xmtp::backend::v1::{
    CreateUploadRequest, RegisterRequest, UnregisterRequest, UpdateSubscriptionsRequest,
};

use super::decode;

/// How long the id of a recipient and its secret are, in bytes.
const RECIPIENT_BYTES: usize = 32;

/// FAILED_PRECONDITION: no channel is configured (PUSH-210).
pub(super) fn register(message: Bytes) -> Status {
    let checked = decode(message).and_then(|request: RegisterRequest| {
        check_recipient(&request.recipient_id, &request.recipient_secret)
    });
    checked.err().unwrap_or_else(|| {
        Status::failed_precondition(
            "this deployment delivers no push notifications: no channel is configured",
        )
    })
}

/// NOT_FOUND: there is no recipient at all.
pub(super) fn unregister(message: Bytes) -> Status {
    let checked = decode(message).and_then(|request: UnregisterRequest| {
        check_recipient(&request.recipient_id, &request.recipient_secret)
    });
    checked.err().unwrap_or_else(no_recipient)
}

/// NOT_FOUND, whatever the subscriptions: there is no recipient at all.
pub(super) fn update_subscriptions(message: Bytes) -> Status {
    let checked = decode(message).and_then(|request: UpdateSubscriptionsRequest| {
        check_recipient(&request.recipient_id, &request.recipient_secret)
    });
    checked.err().unwrap_or_else(no_recipient)
}

/// UNIMPLEMENTED, whatever is to be uploaded: there is no storage, and `attachments` is published unset.
pub(super) fn create_upload(message: Bytes) -> Status {
    decode::<CreateUploadRequest>(message)
        .err()
        .unwrap_or_else(|| Status::unimplemented("this deployment stores no attachments"))
}

/// The first check of each request, before anything is looked up (PUSH-253).
fn check_recipient(id: &[u8], secret: &[u8]) -> Result<(), Status> {
    for (name, bytes) in [("recipient_id", id), ("recipient_secret", secret)] {
        if bytes.len() != RECIPIENT_BYTES {
            return Err(Status::invalid_argument(format!(
                "{name} has {} bytes, not {RECIPIENT_BYTES}",
                bytes.len()
            )));
        }
    }
    Ok(())
}

fn no_recipient() -> Status {
    Status::not_found("there is no such recipient")
}
