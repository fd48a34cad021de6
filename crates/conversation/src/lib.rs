#![forbid(unsafe_code)]
//! The conversation engine: verified messages in, transitions to persist and messages to send out.
//!
//! Pure: no I/O, no clock, no randomness of its own. Layers, each using only those above it:
//!
//! | module | what it owns |
//! | - | - |
//! | [`values`] | every closed value of the chapter, its canonical bytes and its hash |
//! | [`membership`], [`address`] | who a conversation is between, and how a host names it |
//! | [`certificates`] | thresholds, signed statements, maps of signers |
//! | [`verification`] | from well-formed values to verified ones |
//! | [`outer_message`] | sealing to the membership, opening as a member |
//! | [`projection`] | what a host sees of a certified record |
//! | [`binding`] | how conversations travel over the backend: topics, framing, invitations |
//! | [`store`] | what an endpoint keeps, and the transitions that change it |
//! | [`engine`] | one input in, one step out: what to commit, then what to do |
//! | [`export`] | a history in a file, verified by whoever has the Registry's key |
//! | [`ordered`] | the maps and sets all of these keep |
//! | `planted` | steps done wrong on purpose, for tests and the simulation alone (feature `planted-bugs`) |

pub mod address;
pub mod binding;
pub mod certificates;
pub mod engine;
pub mod export;
pub mod membership;
pub mod ordered;
pub mod outer_message;
#[cfg(feature = "planted-bugs")]
pub mod planted;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
pub mod projection;
pub mod store;
pub mod values;
pub mod verification;

#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
