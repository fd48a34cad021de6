//! A delay over the runtime's timers. Depends on [`runtime`](crate::runtime).

use wasm_bindgen_futures::JsFuture;

use crate::runtime::Timer;

/// Cancels its timer when it is dropped: a timer left behind would keep an object awake.
struct Cancelled(Timer);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Resolves after `milliseconds`.
pub(crate) async fn delay(milliseconds: u32) {
    let timer = Cancelled(Timer::new(milliseconds));
    // It never rejects, and an early end would only be an early wake.
    let _elapsed = JsFuture::from(timer.0.elapsed()).await;
}
