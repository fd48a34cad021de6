//! Ending without losing what is under way: first no new work, then, after a while, no work at all. Depends on nothing.

use tokio::sync::watch;

/// How far the end has come. Later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Everything is served.
    Serving,
    /// No new call is taken; streams end; what is being answered may be finished.
    Draining,
    /// What is not answered by now is not answered any more.
    Over,
}

/// Tells a gateway to end.
#[derive(Clone, Debug)]
pub struct Drain {
    phase: watch::Sender<Phase>,
}

impl Default for Drain {
    fn default() -> Drain {
        Drain::new()
    }
}

impl Drain {
    /// For a gateway that is to serve.
    #[must_use]
    pub fn new() -> Drain {
        Drain {
            phase: watch::Sender::new(Phase::Serving),
        }
    }

    /// Begins to end: the port closes and calls under way have the time of the settings.
    pub fn begin(&self) {
        self.advance(Phase::Draining);
    }

    /// Goes on to a later phase; an earlier one changes nothing.
    pub(crate) fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_later = to > *phase;
            *phase = (*phase).max(to);
            is_later
        });
    }

    /// What looks at the phase.
    pub(crate) fn watch(&self) -> DrainWatch {
        DrainWatch {
            phase: self.phase.subscribe(),
        }
    }
}

/// Looks at how far the end has come.
#[derive(Clone, Debug)]
pub(crate) struct DrainWatch {
    phase: watch::Receiver<Phase>,
}

impl DrainWatch {
    /// Whether new work is refused.
    pub(crate) fn has_begun(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// Waits for a phase or a later one. Never done where nobody is left to say so.
    pub(crate) async fn wait_for(mut self, phase: Phase) {
        if self.phase.wait_for(|now| *now >= phase).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
