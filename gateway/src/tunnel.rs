//! Requests for another protocol on the same connection: WebSockets, which pass byte by byte. Depends on [`crate::calls`].

use std::io;

use http_body_util::BodyExt as _;
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split},
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use crate::{
    Body,
    calls::{Calls, unreachable_status},
    drain::{DrainWatch, Phase},
    heads::{remove_fields_of_one_connection, to_upstream},
    kind::Kind,
    reply,
    settings::{ANSWER_WITHIN, REST_WITHIN},
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

/// Copies both ways until one has ended and what was on its way in the other has had its time, one is lost, or the gateway
/// ends.
async fn join(caller: OnUpgrade, backend: OnUpgrade, drain: DrainWatch, _place: OwnedSemaphorePermit) {
    let (Ok(caller), Ok(backend)) = tokio::join!(caller, backend) else {
        return;
    };
    let (mut from_caller, mut to_caller) = split(TokioIo::new(caller));
    let (mut from_backend, mut to_backend) = split(TokioIo::new(backend));
    let (up, down) = (
        pass(&mut from_caller, &mut to_backend),
        pass(&mut from_backend, &mut to_caller),
    );
    tokio::pin!(up, down);
    // How it ended is known to both ends; here there is nothing to do about it. An end that closed waits for nothing, and
    // one that never closes, or is not there any more, would keep the place for ever.
    tokio::select! {
        result = &mut up => if result.is_ok() { let _ = timeout(REST_WITHIN, down).await; },
        result = &mut down => if result.is_ok() { let _ = timeout(REST_WITHIN, up).await; },
        () = drain.wait_for(Phase::Draining) => {}
    }
}

/// Copies one way, and ends it where it goes.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}
