//! Tasks that end together.

use std::future::Future;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::{Shared, select};

/// Runs tasks until it is dropped; whatever of them is still under way is then dropped too.
pub(crate) struct Scope {
    ended: Shared<oneshot::Receiver<()>>,
    _end: oneshot::Sender<()>,
}

impl Scope {
    pub(crate) fn new() -> Self {
        let (end, ended) = oneshot::channel();
        Scope {
            ended: ended.shared(),
            _end: end,
        }
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let ended = self.ended.clone();
        wasm_bindgen_futures::spawn_local(async move {
            select(std::pin::pin!(task), ended).await;
        });
    }
}
