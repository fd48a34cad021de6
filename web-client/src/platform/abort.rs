//! An `AbortSignal` as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;
use web_sys::AbortSignal;

/// Completes when a signal aborts. Takes its listener back when it is dropped.
pub(crate) struct Aborted {
    signal: AbortSignal,
    listener: Closure<dyn FnMut()>,
    aborted: oneshot::Receiver<()>,
}

impl Aborted {
    pub(crate) fn of(signal: &AbortSignal) -> Self {
        let (tell, aborted) = oneshot::channel();
        let mut tell = Some(tell);
        let mut listener = move || {
            if let Some(tell) = tell.take() {
                // Nobody waits any more once the future is dropped.
                let _ = tell.send(());
            }
        };
        if signal.aborted() {
            listener();
        }
        let listener = Closure::new(listener);
        // Adding a listener fails for no signal.
        let _ = signal.add_event_listener_with_callback("abort", listener.as_ref().unchecked_ref());
        Aborted {
            signal: signal.clone(),
            listener,
            aborted,
        }
    }
}

impl Future for Aborted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.aborted.poll_unpin(context).map(drop)
    }
}

impl Drop for Aborted {
    fn drop(&mut self) {
        let _ = self
            .signal
            .remove_event_listener_with_callback("abort", self.listener.as_ref().unchecked_ref());
    }
}
