//! Tasks: one by one, and such as end together.

use std::future::Future;
use std::pin::Pin;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::{Shared, select};

/// A task as it is run: of one type, so that running one is compiled once.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Starts a task that ends by itself.
pub(crate) fn spawn(task: Task) {
    wasm_bindgen_futures::spawn_local(task);
}

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
    pub(crate) fn spawn(&self, task: Task) {
        let ended = self.ended.clone();
        spawn(Box::pin(async move {
            select(task, ended).await;
        }));
    }
}
