//! What the client of a bidirectional stream sends, pushed piece by piece by `edge/js/http.js`. Depends on `topiclog`'s
//! session.
//!
//! In a request body the frames follow each other, however it is cut. On a WebSocket every message is one frame, and a
//! trailer frame says that the client sends nothing more, which the end of a body says otherwise.

use std::{cell::RefCell, rc::Rc};

use conclave_grpc_web::{Encoding, Frame, FrameDecoder, FrameError, Status, frame};
use conclave_topiclog::Requests;
use js_sys::Promise;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::{platform::WorkerPlatform, recording::ReceivedBytes};

/// Where a client's frames go.
#[wasm_bindgen]
pub struct RequestSink {
    requests: Rc<Requests<WorkerPlatform>>,
    decoder: RefCell<FrameDecoder>,
    max_request_bytes: usize,
    received: ReceivedBytes,
}

impl RequestSink {
    /// A sink for frames in an encoding that refuses one longer than `max_request_bytes`. Their bytes are counted in
    /// `received`.
    pub(crate) fn new(
        requests: Requests<WorkerPlatform>,
        encoding: Encoding,
        max_request_bytes: usize,
        received: ReceivedBytes,
    ) -> Self {
        Self {
            requests: Rc::new(requests),
            decoder: RefCell::new(FrameDecoder::new(encoding, max_request_bytes)),
            max_request_bytes,
            received,
        }
    }

    fn take(&self, frame: Result<Frame, FrameError>) {
        match frame {
            Ok(Frame::Message(message)) => self.requests.push(message),
            Ok(Frame::Trailers(_)) => self.requests.end(),
            Err(error) => self.requests.fail(error.to_request_status()),
        }
    }
}

#[wasm_bindgen]
impl RequestSink {
    /// Takes in a piece of a request body. Whether the next may follow at once, or when [`RequestSink::ready`] resolves.
    pub fn push(&self, piece: &[u8]) -> bool {
        self.received.add(piece.len());
        let mut decoder = self.decoder.borrow_mut();
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame().transpose() {
            let is_over = frame.is_err();
            self.take(frame);
            if is_over {
                break;
            }
        }
        self.requests.is_ready()
    }

    /// Resolves when another piece may follow.
    pub fn ready(&self) -> Promise {
        let requests = Rc::clone(&self.requests);
        future_to_promise(async move {
            requests.ready().await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// The request body has ended.
    pub fn end(&self) {
        match self.decoder.borrow_mut().finish() {
            Ok(()) => self.requests.end(),
            Err(error) => self.requests.fail(error.to_request_status()),
        }
    }

    /// Takes in a message of a WebSocket.
    pub fn message(&self, message: &[u8]) {
        self.received.add(message.len());
        self.take(frame::decode_single(message, self.max_request_bytes));
    }

    /// Takes in a message of a WebSocket that is text.
    pub fn text(&self) {
        self.requests
            .fail(Status::internal("a message is text and not a frame"));
    }

    /// The client has gone.
    pub fn lost(&self) {
        self.requests.fail(Status::cancelled("the client has gone"));
    }
}
