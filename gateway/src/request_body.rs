//! The body of a request on its way to the backend. Depends on `grpc-web`.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use conclave_grpc_web::{FrameError, FrameRelay, Piece, Status};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::{Version, body::Incoming};
use tokio::{runtime::Handle, sync::oneshot, time::timeout};

use crate::{BoxError, settings::REST_WITHIN};

/// Why the gateway itself refused a request while its body came in; empty while it has not.
pub(crate) type Refusal = Arc<OnceLock<Status>>;

/// Held by who answers: once dropped, the rest of the request is of no use and is not sent.
pub(crate) type CallHandle = oneshot::Sender<()>;

/// The body of a request. It ends with an error when it is refused, when its caller goes, and when the call is over
/// before it: then its connection to the backend closes.
pub(crate) struct RequestBody {
    /// Taken when it is dropped.
    incoming: Option<Incoming>,
    /// Whether what nobody wants any more is read all the same.
    is_read_to_its_end: bool,
    /// Follows the messages of a native call, to refuse one that is too long.
    relay: Option<FrameRelay>,
    refusal: Refusal,
    call: oneshot::Receiver<()>,
}

/// Why a request body ended before its end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Cut {
    #[error("the request was refused")]
    Refused,
    #[error("the call is over")]
    CallOver,
}

impl RequestBody {
    /// The body `incoming` in a version of HTTP, and what keeps its call going. With a relay its messages are looked at.
    pub(crate) fn new(
        incoming: Incoming,
        version: Version,
        relay: Option<FrameRelay>,
        refusal: Refusal,
    ) -> (RequestBody, CallHandle) {
        let (handle, call) = oneshot::channel();
        let body = RequestBody {
            incoming: Some(incoming),
            // HTTP/2 ends one direction of a call by itself. HTTP/1.1 can only close, and a caller that is still sending
            // then loses the answer.
            is_read_to_its_end: version < Version::HTTP_2,
            relay,
            refusal,
            call,
        };
        (body, handle)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if Pin::new(&mut self.call).poll(context).is_ready() {
            return Poll::Ready(Some(Err(Cut::CallOver.into())));
        }
        loop {
            let Some(incoming) = &mut self.incoming else {
                return Poll::Ready(None);
            };
            let Some(frame) = ready!(Pin::new(incoming).poll_frame(context)?) else {
                return Poll::Ready(None);
            };
            // Trailers of a request mean nothing to gRPC and have no place in gRPC-Web.
            let Ok(data) = frame.into_data() else { continue };
            if let Some(relay) = &mut self.relay
                && let Err(error) = follow(relay, data.clone())
            {
                let _ = self.refusal.set(error.to_request_status());
                return Poll::Ready(Some(Err(Cut::Refused.into())));
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(incoming), true) = (self.incoming.take(), self.is_read_to_its_end) {
            read_rest(incoming);
        }
    }
}

/// Reads what is left of a body and forgets it, for a while.
pub(crate) fn read_rest(mut rest: Incoming) {
    if rest.is_end_stream() {
        return;
    }
    // Without a runtime nobody is left to read.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move {
            let _ = timeout(REST_WITHIN, async {
                while let Some(Ok(_)) = rest.frame().await {}
            })
            .await;
        });
    }
}

/// Looks at the messages that pass. A native request has nothing else.
fn follow(relay: &mut FrameRelay, mut data: Bytes) -> Result<(), FrameError> {
    const TRAILERS_FLAG: u8 = 0x80;
    while let Some(piece) = relay.next_piece(&mut data)? {
        if matches!(piece, Piece::Trailers(_)) {
            return Err(FrameError::UnknownFlags(TRAILERS_FLAG));
        }
    }
    Ok(())
}
