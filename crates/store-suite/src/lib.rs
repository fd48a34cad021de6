//! What every store of the conversation engine must do.
//!
//! The cases are written once, over any [`Store`], and wait as a store in a browser makes them wait. This crate's own tests run
//! them over the one in memory, `tests/browser/store_suite.test.mjs` over IndexedDB, by the browser library's feature
//! `store-suite`. A case panics where the store does something else.
//!
//! | module | cases about |
//! | - | - |
//! | `conversations` | identity, first posts, foundations |
//! | `locks`, `records`, `reanchors`, `outbox`, `transport` | the transitions of each |
//! | `commits` | batches, failing commits, rows this crate did not write |
//! | `layout` | keys and their order |
//! | `rows` | rows and transitions as short as a case wants them |

mod commits;
mod conversations;
mod layout;
mod locks;
#[cfg(test)]
mod memory;
mod outbox;
mod reanchors;
mod records;
mod rows;
#[cfg(test)]
mod stored_forms;
mod transport;

use conclave_conversation::store::{CommitError, Key, Outcome, Read, Snapshot, Table, Transition};

/// A store as the cases use it.
pub trait Store: Sized {
    /// A fresh, empty one.
    fn fresh() -> impl Future<Output = Self>;

    /// Commits a batch.
    fn commit(&self, transitions: Vec<Transition>)
    -> impl Future<Output = Result<Vec<Outcome>, CommitError>>;

    /// What reads answer, from one state of the store.
    fn read(&self, reads: Vec<Read>) -> impl Future<Output = Snapshot>;

    /// Everything it holds.
    fn snapshot(&self) -> impl Future<Output = Snapshot>;

    /// Puts rows there by hand.
    fn put(&self, rows: Vec<(Table, Key, Vec<u8>)>) -> impl Future<Output = ()>;

    /// Lets the next commit fail as on a full disk.
    fn fail_next_commit(&self);
}

macro_rules! suite {
    ($($module:ident: $($case:ident),+;)+) => {
        /// The name of every case.
        pub const CASES: &[&str] = &[$($(stringify!($case)),+),+];

        /// Runs one case, on stores of its own. Says whether there is a case of that name.
        ///
        /// # Panics
        /// Where the store does something else than it must.
        pub async fn run<S: Store>(case: &str) -> bool {
            match case {
                $($(stringify!($case) => $module::$case::<S>().await,)+)+
                _ => return false,
            }
            true
        }

        #[cfg(test)]
        mod in_memory {
            $($(#[test]
            fn $case() {
                crate::memory::run(crate::$module::$case::<conclave_conversation::store::MemoryStore>());
            })+)+
        }
    };
}

suite! {
    commits:
        a_batch_is_committed_whole_or_not_at_all_and_each_transition_sees_those_before_it,
        a_commit_that_fails_writes_nothing_and_the_same_batch_can_be_committed_after_it,
        a_row_that_this_crate_did_not_write_is_corruption_and_not_a_refusal;
    conversations:
        an_identity_is_bound_once,
        a_first_post_and_its_foundation_are_one_transition_and_a_competing_foundation_a_conflict,
        a_genesis_lock_and_its_foundation_are_one_transition_and_a_competing_genesis_a_conflict,
        an_empty_conversation_is_restarted_with_its_posts_and_one_with_a_record_is_not;
    layout:
        a_prefix_answers_with_every_row_below_it_and_with_no_neighbour,
        a_copy_of_everything_holds_every_row_of_a_large_table_once;
    locks:
        a_predecessor_is_locked_by_one_action,
        a_superseded_lock_goes_with_its_signatures_and_brings_the_whole_certificate,
        neither_a_staged_action_nor_a_genesis_loses_its_lock,
        evidence_needs_its_subject_and_keeps_its_first_bytes;
    outbox:
        an_envelope_is_begun_once_and_completed_once,
        a_set_of_envelopes_is_discarded_whole_and_an_obligation_is_owed_again;
    reanchors:
        after_a_candidate_away_from_an_anchor_no_own_vote_under_it_is_kept_alone_or_in_a_whole_record,
        a_candidate_is_staged_neither_behind_a_staged_successor_nor_beside_another_of_its_scope,
        a_completed_reanchor_takes_the_lock_at_its_head_and_everything_kept_about_it;
    records:
        a_record_is_staged_at_the_head_under_the_current_anchor_by_its_lock_alone,
        a_remote_record_is_certified_with_its_delivery_or_not_at_all,
        the_same_record_again_keeps_its_token_and_another_projection_of_it_is_a_conflict,
        a_local_record_finishes_its_post_and_is_not_delivered,
        a_record_takes_the_next_place_of_the_chain_and_no_other,
        a_delivery_is_acknowledged_by_its_own_token_once;
    transport:
        a_cursor_moves_forward_within_an_instance_and_starts_again_in_another,
        a_conversation_is_watched_until_it_is_held_or_dropped;
}
