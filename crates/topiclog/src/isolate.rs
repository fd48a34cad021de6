//! What one process keeps between requests. Losing it costs time alone. Depends on [`crate::chains`] and `identity`.

use std::{cell::RefCell, rc::Rc};

use conclave_identity::StateMemo;

use crate::chains::{Chains, NoChains};

/// How much of the association states it has verified a process remembers, in bytes: some thousands of inboxes.
const STATE_MEMO_BYTES: usize = 8 << 20;

/// The memory of a process, shared by every [`crate::Backend`] in it.
#[derive(Debug)]
pub struct Isolate {
    states: RefCell<StateMemo>,
    chains: Rc<dyn Chains>,
}

impl Isolate {
    /// An empty memory, in a deployment with these chains.
    #[must_use]
    pub fn new(chains: Rc<dyn Chains>) -> Self {
        Self {
            states: RefCell::new(StateMemo::new(STATE_MEMO_BYTES)),
            chains,
        }
    }

    /// The association states it has verified. Never borrowed across an await.
    #[must_use]
    pub const fn states(&self) -> &RefCell<StateMemo> {
        &self.states
    }

    /// The chains it can ask.
    #[must_use]
    pub fn chains(&self) -> &dyn Chains {
        &*self.chains
    }
}

impl Default for Isolate {
    /// An empty memory, in a deployment without chains.
    fn default() -> Self {
        Self::new(Rc::new(NoChains))
    }
}
