//! Planted bugs: one step of the protocol done wrong on purpose, so that tests and the simulation can show that they would
//! notice.
//!
//! Compiled only with the feature `planted-bugs`. Without it [`has`] is a constant `false` and nothing remains of any
//! of this. Depends on nothing.

/// A step that is done wrong. The numbers are those of the pitfalls table (`harness-client.md`, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    not(feature = "planted-bugs"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "without the feature nobody names or plants them"
    )
)]
pub enum Bug {
    /// 1: a lock taken under an old anchor survives the re-anchor.
    LockSurvivesReanchor,
    /// 2: a released lock leaves its signatures, its staged record and its votes behind.
    ReleasedLockKeepsEvidence,
    /// 3: what is held of a superseded action stays in memory.
    SupersededFoldKept,
    /// 4: a certified competitor is refused because of the own lock.
    CompetitorRefused,
    /// 5: a lock is moved without the whole certificate that moves it.
    SupersedeWithoutCertificate,
    /// 6: a staged action is superseded.
    StagedSuperseded,
    /// 7: a record received whole is staged and voted for first.
    WholeRecordStagedFirst,
    /// 8: only the author shares its copy of a record.
    OnlyAuthorShares,
    /// 9: every member broadcasts the certified record it assembled.
    AssembledBroadcast,
    /// 10: a local post is proposed behind the fence.
    ProposeWhileFenced,
    /// 11: the oldest post is proposed at each head that catch-up brings.
    RebaseWhileFenced,
    /// 12: a question is not answered before the own recovery.
    AnswersWaitForRecovery,
    /// 13: the holder of a staged successor says that it has none.
    HolderSaysIncomplete,
    /// 14: the holder of a staged successor votes to re-anchor behind it.
    VoteBehindSuccessor,
    /// 16: readiness waits for all members for ever.
    ReadinessNeedsAll,
    /// A second candidate at a head is signed like the first.
    SignEveryProposal,
    /// The holder of a staged GENESIS begins again without it.
    HolderBeginsAgain,
    /// 46: the cursor of a fenced conversation is durable before the run ends that a crash would have to repeat.
    FencedCursorKept,
    /// A record is staged and voted for under an anchor that the member voted to leave.
    StagesWhileLeaving,
}

impl Bug {
    /// Every bug.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: [Self; 19] = [
        Self::LockSurvivesReanchor,
        Self::ReleasedLockKeepsEvidence,
        Self::SupersededFoldKept,
        Self::CompetitorRefused,
        Self::SupersedeWithoutCertificate,
        Self::StagedSuperseded,
        Self::WholeRecordStagedFirst,
        Self::OnlyAuthorShares,
        Self::AssembledBroadcast,
        Self::ProposeWhileFenced,
        Self::RebaseWhileFenced,
        Self::AnswersWaitForRecovery,
        Self::HolderSaysIncomplete,
        Self::VoteBehindSuccessor,
        Self::ReadinessNeedsAll,
        Self::SignEveryProposal,
        Self::HolderBeginsAgain,
        Self::FencedCursorKept,
        Self::StagesWhileLeaving,
    ];
}

#[cfg(feature = "planted-bugs")]
std::thread_local! {
    static CURRENT: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in everything this thread runs from now on, or removes it.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    CURRENT.set(bug);
}

/// Whether this bug is planted now.
#[cfg(feature = "planted-bugs")]
pub(crate) fn has(bug: Bug) -> bool {
    CURRENT.get() == Some(bug)
}

/// Whether this bug is planted now: never.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn has(_bug: Bug) -> bool {
    false
}
