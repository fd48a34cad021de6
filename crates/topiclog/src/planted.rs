//! Planted bugs: one step of the protocol done wrong on purpose, so that the simulation can show that it would notice.
//!
//! Compiled only with the feature `planted-bugs`. Without it [`has`] is a constant `false` and nothing remains of any
//! of this. Depends on nothing.

/// A step that is done wrong.
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
    /// A publish across shards is decided although a participant refused or did not answer.
    DecideBeforeAllPrepared,
    /// The client is answered when the publish is decided, before it is applied everywhere.
    ReplyBeforeApply,
    /// The ids of a decided publish count as finished before it is applied everywhere.
    IdsReleasedBeforeApply,
    /// A restarted shard reports none of the ids its decision records carry.
    BoundaryIgnoresDecisions,
    /// The decision record is dropped when the first participant has applied.
    DecisionDroppedEarly,
    /// A shard uses ids of an epoch that it knows is over.
    EpochIgnored,
    /// A prepared publish does not hold its topics.
    TopicsNotHeld,
    /// A restarted shard does not hold the topics of what it had prepared.
    HoldsForgottenOnRestart,
    /// A publish of bytes that are prepared now is taken for a new one.
    DuplicateIgnoresPrepared,
    /// A coordinator says that a publish it may still decide was aborted.
    PendingAnsweredAborted,
    /// A participant reads the clock itself instead of taking the publish's one time.
    ServerTimePerShard,
    /// The durable mark of the sequence is not raised, so a restart hands out ids again.
    MarkNotRaised,
    /// A shard takes ids in advance and uses them for publishes that arrive later.
    IdsTakenInAdvance,
    /// Nobody looks whether a topic is what the publish expects.
    HeadIgnored,
    /// The claims of a prepared publish are not held.
    ClaimsNotHeld,
    /// Deletion does not spare the newest envelope of a topic.
    NewestDeleted,
    /// A session delivers a push without looking whether it continues its topic.
    ChainUnchecked,
    /// A shard reads the heads for a stream before it registers its topics.
    TargetBeforeRegistration,
    /// A topic that is added again goes on where its former registration was.
    CursorOfTheRemoved,
    /// What was read of a topic is delivered though the topic was removed meanwhile.
    DeliveredAfterRemove,
    /// A Pong counts as a frame that the client sent of itself.
    PongCounted,
    /// History is delivered topic by topic.
    CatchUpUnfair,
    /// A session does not register again with a shard that has restarted.
    ReintroduceIgnored,
}

impl Bug {
    /// Every bug.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: [Self; 23] = [
        Self::DecideBeforeAllPrepared,
        Self::ReplyBeforeApply,
        Self::IdsReleasedBeforeApply,
        Self::BoundaryIgnoresDecisions,
        Self::DecisionDroppedEarly,
        Self::EpochIgnored,
        Self::TopicsNotHeld,
        Self::HoldsForgottenOnRestart,
        Self::DuplicateIgnoresPrepared,
        Self::PendingAnsweredAborted,
        Self::ServerTimePerShard,
        Self::MarkNotRaised,
        Self::IdsTakenInAdvance,
        Self::HeadIgnored,
        Self::ClaimsNotHeld,
        Self::NewestDeleted,
        Self::ChainUnchecked,
        Self::TargetBeforeRegistration,
        Self::CursorOfTheRemoved,
        Self::DeliveredAfterRemove,
        Self::PongCounted,
        Self::CatchUpUnfair,
        Self::ReintroduceIgnored,
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
