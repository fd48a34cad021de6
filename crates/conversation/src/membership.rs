//! A conversation's verified, immutable membership.
//!
//! Whoever holds a [`Membership`] knows that every card is the Registry's, that ids and names are distinct and in
//! canonical order, and that identity and hash were derived from exactly these cards.

use conclave_harness::agent_card::{AgentCard, EncodedAgentCard};
use conclave_harness::agent_name::AgentName;
use conclave_harness::identifiers::{AgentId, RouterInstanceId};
use conclave_harness::key::PublicKey;
use conclave_harness::wire_version::WireVersions;

use crate::certificates::quorum;
use crate::ordered::OrderedSet;
use crate::values::{
    ClosedValue, ConversationId, ConversationIdentityInput, ConversationIdentityKind, GenesisAnchorBody,
    GenesisAnchorBodyKind, MEMBERS_MAX, MEMBERS_MIN, MembershipDescriptor, MembershipDescriptorKind,
    MembershipHash, ValueError,
};

/// Why cards or a descriptor are no membership.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// The bytes are no descriptor.
    #[error(transparent)]
    Malformed(#[from] ValueError),
    /// Fewer than 2 or more than 32 cards.
    #[error("{0} members, expected {MEMBERS_MIN} to {MEMBERS_MAX}")]
    Size(usize),
    /// A card is not the Registry's.
    #[error("card {index} does not verify under the Registry's key")]
    Card {
        /// Which card, from 0.
        index: usize,
    },
    /// Two cards of one agent, or cards out of canonical order.
    #[error("card {index} repeats an agent or is out of order")]
    Order {
        /// Which card, from 0.
        index: usize,
    },
    /// Two agents of one name.
    #[error("two members are named {0}")]
    RepeatedName(AgentName),
    /// The stated conversation is not that of the cards.
    #[error("the conversation id is not that of the members")]
    ForeignConversation,
    /// The stated version is not that of the first card.
    #[error("the version is not that of the first member's card")]
    ForeignVersion,
}

/// A verified membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    descriptor: MembershipDescriptor,
    hash: MembershipHash,
    /// In the descriptor's order.
    cards: Vec<AgentCard>,
    history: WireVersions,
}

impl Membership {
    /// The membership of these cards, in any order. Its version is that of the first card in canonical order.
    ///
    /// `history` is the set of versions that artifacts of this conversation may carry.
    ///
    /// # Errors
    /// [`MembershipError::Size`], [`MembershipError::Order`] (a repeated agent), [`MembershipError::RepeatedName`].
    pub fn from_cards(mut cards: Vec<AgentCard>, history: &WireVersions) -> Result<Self, MembershipError> {
        if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&cards.len()) {
            return Err(MembershipError::Size(cards.len()));
        }
        cards.sort_by_key(|card| card.agent_id());
        check_distinct(&cards)?;
        let descriptor = MembershipDescriptor {
            sharness_version: cards[0].version(),
            kind: MembershipDescriptorKind,
            conversation_id: identity(&cards),
            members: cards.iter().map(|card| card.encoded().clone()).collect(),
        };
        Ok(Self {
            hash: descriptor.hash(),
            descriptor,
            cards,
            history: history.clone(),
        })
    }

    /// Verifies a decoded descriptor under the pinned key of the Registry.
    ///
    /// # Errors
    /// [`MembershipError`] says which of the chapter's conditions fails.
    pub fn verify(
        descriptor: MembershipDescriptor,
        registry: &PublicKey,
        history: &WireVersions,
    ) -> Result<Self, MembershipError> {
        let cards = verify_cards(&descriptor.members, registry, history)?;
        if descriptor.conversation_id != identity(&cards) {
            return Err(MembershipError::ForeignConversation);
        }
        if descriptor.sharness_version != cards[0].version() {
            return Err(MembershipError::ForeignVersion);
        }
        Ok(Self {
            hash: descriptor.hash(),
            descriptor,
            cards,
            history: history.clone(),
        })
    }

    /// Decodes and verifies a descriptor's canonical bytes.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), or [`MembershipError::Malformed`].
    pub fn decode(
        bytes: &[u8],
        registry: &PublicKey,
        history: &WireVersions,
    ) -> Result<Self, MembershipError> {
        Self::verify(
            MembershipDescriptor::decode_over(history, bytes)?,
            registry,
            history,
        )
    }

    /// The descriptor.
    pub fn descriptor(&self) -> &MembershipDescriptor {
        &self.descriptor
    }

    /// The conversation.
    pub fn conversation_id(&self) -> &ConversationId {
        &self.descriptor.conversation_id
    }

    /// The descriptor's hash.
    pub fn hash(&self) -> &MembershipHash {
        &self.hash
    }

    /// The versions that artifacts of this conversation may carry.
    pub fn history(&self) -> &WireVersions {
        &self.history
    }

    /// How many members there are, 2 to 32.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.cards.len()
    }

    /// `q(n)` of this membership.
    pub fn quorum(&self) -> usize {
        quorum(self.len())
    }

    /// Every member's card, ascending by decoded AgentId.
    pub fn cards(&self) -> &[AgentCard] {
        &self.cards
    }

    /// Every member's id, ascending by decoded bytes: the recipients of every outer message.
    pub fn agent_ids(&self) -> Vec<AgentId> {
        self.cards.iter().map(|card| card.agent_id()).collect()
    }

    /// Whether `agent` is a member.
    pub fn contains(&self, agent: &AgentId) -> bool {
        self.card(agent).is_some()
    }

    /// A member's card.
    pub fn card(&self, agent: &AgentId) -> Option<&AgentCard> {
        self.cards
            .binary_search_by(|card| card.agent_id().cmp(agent))
            .ok()
            .map(|index| &self.cards[index])
    }

    /// The card of the member of that name.
    pub fn card_named(&self, name: &AgentName) -> Option<&AgentCard> {
        self.cards.iter().find(|card| card.agent_name() == name)
    }

    /// Every member's name, ascending by unsigned ASCII bytes: the order in which they are rendered.
    pub fn names(&self) -> Vec<&AgentName> {
        let mut names: Vec<_> = self.cards.iter().map(AgentCard::agent_name).collect();
        names.sort_unstable();
        names
    }

    /// The conversation's first anchor. Its version is the descriptor's, whatever this build emits.
    pub fn genesis_anchor(&self, router_instance_id: RouterInstanceId) -> GenesisAnchorBody {
        GenesisAnchorBody {
            sharness_version: self.descriptor.sharness_version,
            kind: GenesisAnchorBodyKind,
            conversation_id: self.descriptor.conversation_id,
            membership_hash: self.hash,
            router_instance_id,
        }
    }
}

/// Verifies that encoded cards are the Registry's, in canonical order, and of distinct names.
pub(crate) fn verify_cards(
    members: &[EncodedAgentCard],
    registry: &PublicKey,
    history: &WireVersions,
) -> Result<Vec<AgentCard>, MembershipError> {
    if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&members.len()) {
        return Err(MembershipError::Size(members.len()));
    }
    let cards = members
        .iter()
        .enumerate()
        .map(|(index, card)| {
            card.verify(registry, history)
                .map_err(|_| MembershipError::Card { index })
        })
        .collect::<Result<Vec<_>, _>>()?;
    check_distinct(&cards)?;
    Ok(cards)
}

fn check_distinct(cards: &[AgentCard]) -> Result<(), MembershipError> {
    let mut names = OrderedSet::new();
    for (index, card) in cards.iter().enumerate() {
        if index > 0 && cards[index - 1].agent_id() >= card.agent_id() {
            return Err(MembershipError::Order { index });
        }
        if !names.insert(card.agent_name()) {
            return Err(MembershipError::RepeatedName(card.agent_name().clone()));
        }
    }
    Ok(())
}

fn identity(cards: &[AgentCard]) -> ConversationId {
    ConversationIdentityInput {
        kind: ConversationIdentityKind,
        member_agent_ids: cards.iter().map(|card| card.agent_id()).collect(),
    }
    .hash()
}
