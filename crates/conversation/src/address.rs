//! The two addresses a host sees, `agent:NAME` and `group:NAME,NAME,…` ("Addresses and membership").
//!
//! Parsing needs the local name only. Resolving needs each named agent's verified card, which the caller looks up.

use conclave_harness::agent_card::AgentCard;
use conclave_harness::agent_name::{AgentName, AgentNameError};
use conclave_harness::identifiers::AgentId;
use conclave_harness::wire_version::WireVersions;

use crate::membership::{Membership, MembershipError};
use crate::values::{GROUP_MEMBERS_MIN, MEMBERS_MAX, MEMBERS_MIN};

const AGENT_SCHEME: &str = "agent:";
const GROUP_SCHEME: &str = "group:";

/// The three reasons for which a host's address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRefusal {
    /// `invalid-address`: the grammar, or the local agent as a direct destination.
    InvalidAddress,
    /// `membership-invalid`: a repeated name, or a total outside the bounds.
    MembershipInvalid,
    /// `unknown-agent`: the Registry has no card of that name.
    UnknownAgent,
}

impl AddressRefusal {
    /// The stable code a host sees.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidAddress => "invalid-address",
            Self::MembershipInvalid => "membership-invalid",
            Self::UnknownAgent => "unknown-agent",
        }
    }
}

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It starts with neither scheme.
    #[error("an address starts with \"agent:\" or \"group:\"")]
    Scheme,
    /// A name is misspelled.
    #[error("name {index} of the address: {source}")]
    Name {
        /// Which name, from 0.
        index: usize,
        /// What is wrong with it.
        source: AgentNameError,
    },
    /// `agent:` names the local agent.
    #[error("the address names the local agent itself")]
    OwnAddress,
    /// A group names an agent twice.
    #[error("the group names {0} twice")]
    RepeatedName(AgentName),
    /// A group has fewer than 2 or more than 32 members in all.
    #[error("the group has {0} members, expected {MEMBERS_MIN} to {MEMBERS_MAX} with the local agent")]
    Size(usize),
    /// No card is known for a name.
    #[error("no agent is registered as {0}")]
    UnknownAgent(AgentName),
    /// The looked-up cards are no membership.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

impl AddressError {
    /// The reason a host is given.
    pub const fn refusal(&self) -> AddressRefusal {
        match self {
            Self::Scheme | Self::Name { .. } | Self::OwnAddress => AddressRefusal::InvalidAddress,
            Self::RepeatedName(_) | Self::Size(_) | Self::Membership(_) => AddressRefusal::MembershipInvalid,
            Self::UnknownAgent(_) => AddressRefusal::UnknownAgent,
        }
    }
}

/// A parsed address: the other members of the conversation it means, as seen from the local agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    local: AgentName,
    /// Ascending by ASCII bytes, 1 to 31, without the local name.
    others: Vec<AgentName>,
}

impl Destination {
    /// Parses an address as the agent `local` means it. Nothing is looked up and nothing stored.
    ///
    /// # Errors
    /// [`AddressError`], except [`AddressError::UnknownAgent`] and [`AddressError::Membership`].
    pub fn parse(address: &str, local: &AgentName) -> Result<Self, AddressError> {
        if let Some(name) = address.strip_prefix(AGENT_SCHEME) {
            let name: AgentName = name
                .parse()
                .map_err(|source| AddressError::Name { index: 0, source })?;
            if name == *local {
                return Err(AddressError::OwnAddress);
            }
            return Ok(Self {
                local: local.clone(),
                others: vec![name],
            });
        }
        let names = address.strip_prefix(GROUP_SCHEME).ok_or(AddressError::Scheme)?;
        let mut named = names
            .split(',')
            .enumerate()
            .map(|(index, name)| {
                name.parse()
                    .map_err(|source| AddressError::Name { index, source })
            })
            .collect::<Result<Vec<AgentName>, _>>()?;
        named.sort_unstable();
        if let Some(pair) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(AddressError::RepeatedName(pair[0].clone()));
        }
        named.retain(|name| name != local);
        let total = named.len() + 1;
        // One other agent is its direct address; the local agent alone is nobody's.
        if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&total) {
            return Err(AddressError::Size(total));
        }
        Ok(Self {
            local: local.clone(),
            others: named,
        })
    }

    /// The names to look up, ascending by ASCII bytes: everyone but the local agent.
    pub fn others(&self) -> &[AgentName] {
        &self.others
    }

    /// The canonical address, without having resolved it.
    pub fn canonical(&self) -> String {
        if let [other] = self.others.as_slice() {
            return agent_address(other);
        }
        let mut names: Vec<&AgentName> = self.others.iter().chain([&self.local]).collect();
        names.sort_unstable();
        group_address(&names)
    }

    /// The membership the address means, from the local card and a look-up of the others'.
    ///
    /// # Errors
    /// [`AddressError::UnknownAgent`] for the first name without a card (a card of another name counts as none);
    /// [`AddressError::Membership`] when the cards contradict each other.
    pub fn resolve(
        &self,
        local: &AgentCard,
        history: &WireVersions,
        mut card_of: impl FnMut(&AgentName) -> Option<AgentCard>,
    ) -> Result<Membership, AddressError> {
        let mut cards = vec![local.clone()];
        for name in &self.others {
            let card = card_of(name).filter(|card| card.agent_name() == name);
            cards.push(card.ok_or_else(|| AddressError::UnknownAgent(name.clone()))?);
        }
        Ok(Membership::from_cards(cards, history)?)
    }
}

/// `agent:NAME`.
pub fn agent_address(name: &AgentName) -> String {
    format!("{AGENT_SCHEME}{name}")
}

/// The canonical address of a conversation as `perspective` sees it: the other agent's for two members, the complete
/// group's for more.
///
/// None if `perspective` is no member.
pub fn canonical_address(membership: &Membership, perspective: &AgentId) -> Option<String> {
    if !membership.contains(perspective) {
        return None;
    }
    if membership.len() < GROUP_MEMBERS_MIN {
        let other = membership
            .cards()
            .iter()
            .find(|card| card.agent_id() != *perspective)?;
        return Some(agent_address(other.agent_name()));
    }
    Some(group_address(&membership.names()))
}

/// `group:` and names that are sorted already.
fn group_address(names: &[&AgentName]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    format!("{GROUP_SCHEME}{}", names.join(","))
}
