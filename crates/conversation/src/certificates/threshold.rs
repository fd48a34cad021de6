//! How many members a certificate needs ("Certificates and certified records").

use conclave_harness::identifiers::AgentId;

/// `q(n)`: how many of `n` members (2 to 32) decide.
pub const fn quorum(members: usize) -> usize {
    if members < 4 {
        members
    } else {
        members - (members - 1) / 3
    }
}

/// `f(n)`: how many of `n` members may be Byzantine; none below four.
pub const fn faults(members: usize) -> usize {
    if members < 4 { 0 } else { (members - 1) / 3 }
}

/// How many *other* members' answers settle a catch-up position: `q(n) - 1`.
pub const fn readiness_answers(members: usize) -> usize {
    quorum(members) - 1
}

/// How many durability votes for a successor it has not staged make a recovering member stage it: more than
/// `n - q(n)`.
pub const fn conversion_votes(members: usize) -> usize {
    members - quorum(members) + 1
}

/// Which signers make a certificate complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateRule {
    /// Action certificate of GENESIS: every member.
    GenesisAction,
    /// Action certificate of POST: `q(n)`, the author among them.
    PostAction {
        /// The post's author.
        author: AgentId,
    },
    /// Durability certificate: `q(n)`.
    Durability,
    /// Re-anchor certificate: `q(n)`.
    Reanchor,
}

impl CertificateRule {
    /// Fewest signers of a complete certificate among `members` members.
    pub const fn signers_min(&self, members: usize) -> usize {
        match self {
            Self::GenesisAction => members,
            Self::PostAction { .. } | Self::Durability | Self::Reanchor => quorum(members),
        }
    }

    /// Who must be among the signers.
    pub const fn required_signer(&self) -> Option<&AgentId> {
        match self {
            Self::PostAction { author } => Some(author),
            Self::GenesisAction | Self::Durability | Self::Reanchor => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CONV-C02
    #[test]
    fn thresholds_follow_the_table_for_every_size() {
        let quorums = [
            2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 11, 12, 13, 13, 14, 15, 15, 16, 17, 17, 18, 19, 19,
            20, 21, 21, 22,
        ];
        for (expected, members) in quorums.into_iter().zip(2..=32) {
            assert_eq!(quorum(members), expected, "q({members})");
            let expected_faults = if members < 4 { 0 } else { members - expected };
            assert_eq!(faults(members), expected_faults, "f({members})");
            assert_eq!(readiness_answers(members), expected - 1);
            assert_eq!(conversion_votes(members), members - expected + 1);
            // Two quorums share more members than can be faulty, so one that is honest.
            assert!(
                2 * quorum(members) - members > faults(members),
                "intersection at {members}"
            );
        }
    }
}
