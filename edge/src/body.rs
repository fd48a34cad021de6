//! What a streaming response sends, in a body or on a WebSocket, pulled chunk by chunk by `edge/js/http.js`. Depends on `topiclog`'s session.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use bytes::Bytes;
use conclave_grpc_web::{
    Code, Encoding, Status,
    server::{FrameJoiner, MessageTooLong},
};
use conclave_topiclog::StreamSession;
use futures_util::{
    FutureExt as _,
    future::{AbortHandle, Abortable},
};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::{platform::WorkerPlatform, recording::Recording};

/// The session of a stream that still runs and what is recorded of it, or `None` once it ended or the client has gone.
/// Emptying it drops the session, which closes every message stream it holds, and ends the recording.
type Running = Rc<RefCell<Option<(StreamSession<WorkerPlatform>, Recording)>>>;

/// What a response's body is read from.
#[wasm_bindgen]
pub struct BodySource {
    session: Running,
    encoding: Encoding,
    max_response_bytes: usize,
    /// Whether frames that are ready travel together.
    joins: bool,
    /// What the stream ended with.
    status: Rc<Cell<Code>>,
    /// Ends the chunk that is being waited for.
    waiting: Rc<RefCell<Option<AbortHandle>>>,
}

impl BodySource {
    pub(crate) fn new(
        session: StreamSession<WorkerPlatform>,
        encoding: Encoding,
        max_response_bytes: usize,
        recording: Recording,
    ) -> Self {
        Self {
            session: Rc::new(RefCell::new(Some((session, recording)))),
            encoding,
            max_response_bytes,
            joins: true,
            status: Rc::new(Cell::new(Code::Ok)),
            waiting: Rc::default(),
        }
    }

    /// For a WebSocket: every chunk is one frame.
    pub(crate) fn frame_by_frame(
        session: StreamSession<WorkerPlatform>,
        max_response_bytes: usize,
        recording: Recording,
    ) -> Self {
        Self {
            joins: false,
            ..Self::new(session, Encoding::Binary, max_response_bytes, recording)
        }
    }
}

#[wasm_bindgen]
impl BodySource {
    /// Resolves with the next chunk, or with `undefined` after the last. One at a time.
    pub fn next(&self) -> Promise {
        let (handle, registration) = AbortHandle::new_pair();
        self.waiting.replace(Some(handle));
        let running = Rc::clone(&self.session);
        let frames = FrameJoiner::new(self.encoding, self.max_response_bytes);
        let (joins, status) = (self.joins, Rc::clone(&self.status));
        let chunk = async move {
            let (mut session, recording) = running.borrow_mut().take()?;
            let (chunk, ended) = next_chunk(&mut session, frames, joins).await;
            recording.sent(chunk.len());
            match ended {
                Some(code) => {
                    recording.ended(code);
                    status.set(code);
                }
                None => drop(running.replace(Some((session, recording)))),
            }
            Some(chunk)
        };
        let chunk = Abortable::new(chunk, registration);
        future_to_promise(async move {
            let chunk = chunk.await.ok().flatten();
            Ok(chunk.map_or(JsValue::UNDEFINED, |chunk| {
                Uint8Array::from(chunk.as_ref()).into()
            }))
        })
    }

    /// Whether the next chunk is the last, and can be had at once.
    #[wasm_bindgen(js_name = isSpent)]
    pub fn is_spent(&self) -> bool {
        let running = self.session.borrow();
        running.as_ref().is_some_and(|(session, _)| session.is_spent())
    }

    /// The number of the status that the last chunk told.
    pub fn status(&self) -> u32 {
        self.status.get().number().into()
    }

    /// The client has gone: drops the session now.
    pub fn cancel(&self) {
        self.session.borrow_mut().take();
        if let Some(handle) = self.waiting.borrow_mut().take() {
            handle.abort();
        }
    }
}

/// Waits for a frame, adds those that are ready where they join, and says with what the stream ended if it did.
async fn next_chunk(
    session: &mut StreamSession<WorkerPlatform>,
    mut frames: FrameJoiner,
    joins: bool,
) -> (Bytes, Option<Code>) {
    let end = |frames: FrameJoiner, status: &Status| (frames.finish(status), Some(status.code));
    let mut next = session.next().await;
    loop {
        let message = match next {
            Some(Ok(message)) => message,
            Some(Err(status)) => return end(frames, &status),
            None => return end(frames, &Status::ok()),
        };
        if let Err(status) = frames.push(&message).map_err(MessageTooLong::out_of_range) {
            return end(frames, &status);
        }
        let ready = if frames.is_full() || !joins {
            None
        } else {
            session.next().now_or_never()
        };
        match ready {
            Some(ready) => next = ready,
            // At least the message above waits.
            None => return (frames.take().unwrap_or_default(), None),
        }
    }
}
