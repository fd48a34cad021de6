//! The body of an answer on its way to the caller: translated for native gRPC, watched for gRPC-Web. Depends on
//! `grpc-web`.
//!
//! Whatever happens to the backend, to the gateway or to the deadline, a call ends with a status as long as the caller
//! can still read one.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use conclave_grpc_web::{
    Encoding, FrameRelay, Piece, Status, Trailers, text::TextDecoder, trailers::GRPC_STATUS,
};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    BoxError,
    drain::{DrainWatch, Phase},
    heads::trailer_map,
    reply,
    request_body::{CallHandle, Refusal, read_rest},
};

/// How the caller reads the answer.
pub(crate) enum Form {
    /// As native gRPC: the trailers are taken out of the body.
    Native,
    /// As gRPC-Web: the body passes as it is.
    Web(Encoding),
    /// As HTTP has it: the body passes as it is, and nobody looks.
    Plain,
}

/// What may end a call before its answer does, and what is given back when it ends.
pub(crate) struct Ending {
    /// When the caller's deadline has passed, with some grace.
    pub(crate) deadline: Option<Instant>,
    /// How far the gateway's own end has come.
    pub(crate) drain: DrainWatch,
    /// Whether the request was refused on its way.
    pub(crate) refusal: Refusal,
    /// Tells the request that the call is over.
    pub(crate) call: CallHandle,
    /// The call's place among those there may be.
    pub(crate) place: OwnedSemaphorePermit,
}

type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of an answer.
pub(crate) struct ResponseBody {
    /// The backend's body, until it has ended.
    upstream: Option<Incoming>,
    frames: Frames,
    deadline: Option<Pin<Box<Sleep>>>,
    drain: DrainWatch,
    /// When the gateway begins to end, and, after that, when it is over.
    phase: (Phase, BoxFuture),
    refusal: Refusal,
    /// Whether a message, or a part of one, was passed on.
    has_begun: bool,
    _call: CallHandle,
    _place: OwnedSemaphorePermit,
}

/// The frames of an answer, as its caller reads them.
enum Frames {
    Native {
        relay: FrameRelay,
        /// What has come and is not passed on.
        input: Bytes,
    },
    Web {
        relay: FrameRelay,
        encoding: Encoding,
        text: TextDecoder,
        /// The body is none whose frames can be followed.
        is_lost: bool,
    },
    Plain,
}

/// An answer that broke off where no status can be told any more.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
struct BrokenOff(String);

impl ResponseBody {
    /// The answer `upstream` to a caller that reads it in `form`, messages of at most `max_message_bytes`.
    pub(crate) fn new(
        upstream: Incoming,
        form: Form,
        max_message_bytes: usize,
        ending: Ending,
    ) -> ResponseBody {
        let relay = FrameRelay::new(max_message_bytes);
        let frames = match form {
            Form::Native => Frames::Native {
                relay,
                input: Bytes::new(),
            },
            Form::Web(encoding) => Frames::Web {
                relay,
                encoding,
                text: TextDecoder::default(),
                is_lost: false,
            },
            Form::Plain => Frames::Plain,
        };
        ResponseBody {
            upstream: Some(upstream),
            frames,
            deadline: ending.deadline.map(|deadline| Box::pin(sleep_until(deadline))),
            phase: next_phase(&ending.drain, Phase::Draining),
            drain: ending.drain,
            refusal: ending.refusal,
            has_begun: false,
            _call: ending.call,
            _place: ending.place,
        }
    }

    /// The status of a call that ends now, whatever its answer would have been.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Option<Status> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            return Some(deadline_exceeded());
        }
        while self.phase.1.as_mut().poll(context).is_ready() {
            if self.phase.0 == Phase::Over {
                self.phase.1 = Box::pin(std::future::pending());
                return Some(shutting_down());
            }
            self.phase = next_phase(&self.drain, Phase::Over);
        }
        // A stream may wait for ever, and says nothing more that would be of use. An answer that is on its way may end.
        let is_stream_at_rest = self.has_begun && self.frames.is_between_frames();
        (self.phase.0 == Phase::Over && is_stream_at_rest).then(shutting_down)
    }

    /// Ends the call here with a status, if the caller can read one.
    fn end(&mut self, status: &Status) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let status = self.refusal.get().unwrap_or(status);
        self.upstream = None;
        crate::log(format_args!(
            "a call ended: {}: {}",
            status.code.name(),
            status.message
        ));
        let last = match &self.frames {
            Frames::Native { .. } => Ok(Frame::trailers(trailer_map(&Trailers::from_status(status)))),
            Frames::Web { encoding, .. } if self.frames.is_between_frames() => {
                Ok(Frame::data(reply::trailer_frame(*encoding, status)))
            }
            Frames::Web { .. } | Frames::Plain => Err(BrokenOff(status.message.clone()).into()),
        };
        Poll::Ready(Some(last))
    }

    /// The next frame of what has come already.
    fn pending_frame(&mut self) -> Option<Result<Frame<Bytes>, Status>> {
        let Frames::Native { relay, input } = &mut self.frames else {
            return None;
        };
        match relay.next_piece(input).transpose()? {
            Ok(Piece::Messages(bytes)) => {
                self.has_begun = true;
                Some(Ok(Frame::data(bytes)))
            }
            Ok(Piece::Trailers(mut trailers)) => {
                if trailers.get(GRPC_STATUS).is_none() {
                    trailers = Trailers::from_status(&Status::unavailable(
                        "the backend gave no status: the outcome of the call is unknown",
                    ));
                }
                // So that the connection can be used again. It is mostly there already.
                if let Some(rest) = self.upstream.take() {
                    read_rest(rest);
                }
                Some(Ok(Frame::trailers(trailer_map(&trailers))))
            }
            Err(error) => Some(Err(error.to_response_status())),
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if this.upstream.is_none() {
                return Poll::Ready(None);
            }
            match this.pending_frame() {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(status)) => return this.end(&status),
                None => {}
            }
            let Some(upstream) = &mut this.upstream else {
                return Poll::Ready(None);
            };
            match Pin::new(upstream).poll_frame(context) {
                Poll::Pending => {
                    return match this.poll_ended(context) {
                        Some(status) => this.end(&status),
                        None => Poll::Pending,
                    };
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    match &mut this.frames {
                        Frames::Native { input, .. } => *input = data,
                        web @ (Frames::Web { .. } | Frames::Plain) => {
                            web.follow(&data);
                            this.has_begun = true;
                            return Poll::Ready(Some(Ok(Frame::data(data))));
                        }
                    }
                }
                Poll::Ready(None) if this.frames.has_ended() => {
                    this.upstream = None;
                    return Poll::Ready(None);
                }
                Poll::Ready(None | Some(Err(_))) => return this.end(&went_away()),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_empty = self.upstream.as_ref().is_none_or(http_body::Body::is_end_stream);
        is_empty && matches!(self.frames, Frames::Plain)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.frames, &self.upstream) {
            (Frames::Plain, Some(upstream)) => upstream.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl Frames {
    /// Whether a status may follow what was passed on.
    fn is_between_frames(&self) -> bool {
        match self {
            Frames::Native { relay, input } => relay.is_between_frames() && input.is_empty(),
            Frames::Web {
                relay, text, is_lost, ..
            } => relay.is_between_frames() && !relay.has_ended() && text.is_at_boundary() && !is_lost,
            Frames::Plain => false,
        }
    }

    /// Whether the answer said itself how the call ended, as far as that can be seen.
    fn has_ended(&self) -> bool {
        match self {
            Frames::Native { relay, .. } => relay.has_ended(),
            Frames::Web { relay, is_lost, .. } => relay.has_ended() || *is_lost,
            Frames::Plain => true,
        }
    }

    /// Looks at the frames of a body that passes as it is.
    fn follow(&mut self, data: &Bytes) {
        let Frames::Web {
            relay,
            encoding,
            text,
            is_lost,
        } = self
        else {
            return;
        };
        let mut frames = match encoding {
            Encoding::Binary => data.clone(),
            Encoding::Text => {
                let mut decoded = BytesMut::new();
                *is_lost |= text.push(data, &mut decoded).is_err();
                decoded.freeze()
            }
        };
        while !*is_lost {
            match relay.next_piece(&mut frames) {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => *is_lost = true,
            }
        }
    }
}

fn next_phase(drain: &DrainWatch, phase: Phase) -> (Phase, BoxFuture) {
    (phase, Box::pin(drain.clone().wait_for(phase)))
}

/// The status of a call whose deadline passed and whose backend did not say so.
pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline passed")
}

/// The status of a call that the gateway's own end cut off.
pub(crate) fn shutting_down() -> Status {
    Status::unavailable("the gateway is shutting down")
}

/// The status of a call whose backend broke off.
fn went_away() -> Status {
    Status::unavailable("the backend went away: the outcome of the call is unknown")
}
