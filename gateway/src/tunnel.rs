//! Requests for another protocol on the same connection: WebSockets, which pass byte by byte. Depends on [`crate::calls`].

use http_body_util::BodyExt as _;
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::TokioIo;
use tokio::{io::copy_bidirectional_with_sizes, sync::OwnedSemaphorePermit, time::timeout};

use crate::{
    Body,
    calls::{Calls, unreachable_status},
    drain::{DrainWatch, Phase},
    heads::{remove_fields_of_one_connection, to_upstream},
    kind::Kind,
    reply,
    settings::{ANSWER_WITHIN, SEND_BUFFER_BYTES},
};

/// Asks the backend for the other protocol, and joins the two connections if it agrees.
pub(crate) async fn open(
    calls: &Calls,
    mut request: Request<Incoming>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    let caller = upgrade::on(&mut request);
    let (mut parts, _) = request.into_parts();
    to_upstream(&mut parts, Kind::Upgrade, calls.settings.upstream.authority());
    let request = Request::from_parts(parts, reply::empty());
    let mut answer = match timeout(ANSWER_WITHIN, calls.backend.send(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return reply::failure(
                Kind::Upgrade,
                &unreachable_status(&error),
                StatusCode::BAD_GATEWAY,
            );
        }
        Err(_) => return reply::plain(StatusCode::GATEWAY_TIMEOUT, "the backend does not answer"),
    };
    let agreed = (answer.status() == StatusCode::SWITCHING_PROTOCOLS)
        .then(|| answer.headers().get(UPGRADE).cloned())
        .flatten();
    let backend = upgrade::on(&mut answer);
    let (mut parts, body) = answer.into_parts();
    remove_fields_of_one_connection(&mut parts.headers);
    let Some(protocol) = agreed else {
        // Refused: an answer like any other. It has the place until its head is sent, and its body is short.
        return Response::from_parts(parts, body.map_err(Into::into).boxed_unsync());
    };
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("upgrade"));
    parts.headers.insert(UPGRADE, protocol);
    tokio::spawn(join(caller, backend, calls.drain.clone(), place));
    Response::from_parts(parts, reply::empty())
}

/// Copies both ways until both have ended, one is lost, or the gateway ends.
async fn join(caller: OnUpgrade, backend: OnUpgrade, drain: DrainWatch, _place: OwnedSemaphorePermit) {
    let (Ok(caller), Ok(backend)) = tokio::join!(caller, backend) else {
        return;
    };
    let (mut caller, mut backend) = (TokioIo::new(caller), TokioIo::new(backend));
    tokio::select! {
        // How it ended is known to both ends; here there is nothing to do about it.
        _ = copy_bidirectional_with_sizes(&mut caller, &mut backend, SEND_BUFFER_BYTES, SEND_BUFFER_BYTES) => {}
        () = drain.wait_for(Phase::Draining) => {}
    }
}
