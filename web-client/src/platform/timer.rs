//! Time: the clock and delays.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;

use super::globals;

/// Milliseconds since the epoch, by the browser's clock.
pub(crate) fn now_ms() -> u64 {
    // Positive and far below 2^53, so the conversion is exact.
    js_sys::Date::now() as u64
}

/// Completes after a while. Dropping it takes the browser's timer back.
pub(crate) struct Delay {
    state: Rc<State>,
    timeout: JsValue,
    _callback: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct State {
    elapsed: Cell<bool>,
    // Replaced at every poll: a future may be moved between tasks.
    waker: RefCell<Option<Waker>>,
}

impl Delay {
    /// A delay of `duration`, at least. The browser stretches it in hidden pages.
    pub(crate) fn new(duration: Duration) -> Self {
        let state = Rc::new(State::default());
        let callback = Closure::once({
            let state = Rc::clone(&state);
            move || {
                state.elapsed.set(true);
                if let Some(waker) = state.waker.take() {
                    waker.wake();
                }
            }
        });
        let timeout = globals::set_timeout(
            wasm_bindgen::JsCast::unchecked_ref(callback.as_ref()),
            duration.as_secs_f64() * 1000.0,
        );
        Delay {
            state,
            timeout,
            _callback: callback,
        }
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.state.elapsed.get() {
            return Poll::Ready(());
        }
        self.state.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        globals::clear_timeout(&self.timeout);
    }
}
