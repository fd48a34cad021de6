//! The agents of a simulation: always the same, made once for each thread.

use std::{cell::RefCell, rc::Rc};

use conclave_conversation::test_support::Agent;
use conclave_harness::AgentId;

/// Agents that there can be: as many as a conversation has at most.
pub(super) const AGENTS_MAX: usize = 32;

std::thread_local! {
    static AGENTS: RefCell<Vec<Rc<Agent>>> = const { RefCell::new(Vec::new()) };
}

/// Agents `0..count`.
pub(super) fn agents(count: usize) -> Vec<Rc<Agent>> {
    AGENTS.with_borrow_mut(|known| {
        while known.len() < count {
            known.push(Rc::new(Agent::new(known.len())));
        }
        known[..count].to_vec()
    })
}

/// The number of an agent.
pub(super) fn number_of(agents: &[Rc<Agent>], id: &AgentId) -> Option<usize> {
    agents.iter().position(|agent| agent.id() == *id)
}
