//! Handles: everything about them that is ours to choose, and the three checks of a claim (contract, API-296 to 298).
//! Depends on nothing.
//!
//! No public source has the grammar, the signed lines or who may sign (IDENT section 10). The choices are the design's,
//! marked "ours", and stand in this module alone, so that published values replace them here. The wire numbers stand in
//! the `.proto` files. A member signs a claim; see [`crate::state`] for how it is applied.

use std::{collections::BTreeSet, fmt};

/// Ours: the first line of the action in the signed text.
pub const TEXT_LINE: &str = "Claim handle";
/// Ours: the label of the handle in the signed text.
pub const TEXT_LABEL: &str = "Handle";
/// Ours: the claims of one update.
pub const MAX_CLAIMS_PER_UPDATE: usize = 1;
/// The claims of one inbox (IDENT-080).
pub const MAX_CLAIMS_PER_INBOX: usize = 64;
/// Ours: the longest name part, in letters.
pub const MAX_NAME_LENGTH: usize = 32;
/// Ours: the fewest digits after the dot.
pub const MIN_DIGITS: usize = 2;
/// Ours: the most digits after the dot.
pub const MAX_DIGITS: usize = 9;
/// Ours: the shortest name part of a claim unless the deployment sets another.
pub const DEFAULT_MIN_NAME_LENGTH: u32 = 3;
/// How long an inbox must wait between claims, in nanoseconds: seven days (API-298).
pub const CLAIM_INTERVAL_NS: u64 = 604_800_000_000_000;

/// Ours: name parts that no claim may have unless the deployment sets others (API-297). Not published.
pub const DEFAULT_RESERVED_NAMES: [&str; 14] = [
    "abuse",
    "admin",
    "administrator",
    "conclave",
    "help",
    "info",
    "moderator",
    "official",
    "root",
    "security",
    "support",
    "system",
    "team",
    "xmtp",
];

/// A handle: `name` or `name.digits`, in lower case (ours, in place of IDENT-078).
///
/// The name has a letter first, then letters, digits, `_` and `-`, and ends in none of the last two. The digits are not
/// all zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(String);

impl Handle {
    /// Reads a handle exactly as claimed; upper-case letters are no part of the grammar. `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Handle> {
        let (name, digits) = match text.split_once('.') {
            Some((name, digits)) => (name, Some(digits)),
            None => (text, None),
        };
        (is_name(name) && digits.is_none_or(is_number)).then(|| Handle(text.to_owned()))
    }

    /// Reads a handle as a person types it: ASCII letters of either case (API-299). `None` for any other text.
    #[must_use]
    pub fn parse_any_case(text: &str) -> Option<Handle> {
        Handle::parse(&text.to_ascii_lowercase())
    }

    /// The part before the dot, which policy applies to.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }

    /// The whole handle.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Handle({})", self.0)
    }
}

fn is_name(name: &str) -> bool {
    let inner = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    name.len() <= MAX_NAME_LENGTH
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(inner)
        && !name.ends_with(['_', '-'])
}

fn is_number(digits: &str) -> bool {
    (MIN_DIGITS..=MAX_DIGITS).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && digits.bytes().any(|digit| digit != b'0')
}

/// Which inbox holds a handle now, from what is stored and from lower indexes of the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleOwner {
    /// None.
    Nobody,
    /// The inbox that claims it again.
    SameInbox,
    /// Another inbox.
    OtherInbox,
}

/// What a deployment allows as a name part. Applies when a claim is admitted and never to a stored one (IDENT-084).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlePolicy {
    min_name_length: u32,
    reserved_names: BTreeSet<String>,
}

impl Default for HandlePolicy {
    fn default() -> HandlePolicy {
        HandlePolicy::new(DEFAULT_MIN_NAME_LENGTH, DEFAULT_RESERVED_NAMES)
    }
}

impl HandlePolicy {
    /// A policy. `min_name_length` is the published value (CONF-069), in letters; reserved names are compared in lower
    /// case.
    #[must_use]
    pub fn new<Name: AsRef<str>>(
        min_name_length: u32,
        reserved_names: impl IntoIterator<Item = Name>,
    ) -> HandlePolicy {
        HandlePolicy {
            min_name_length,
            reserved_names: reserved_names
                .into_iter()
                .map(|name| name.as_ref().to_ascii_lowercase())
                .collect(),
        }
    }

    /// The shortest name part of a claim, in letters.
    #[must_use]
    pub const fn min_name_length(&self) -> u32 {
        self.min_name_length
    }

    /// Judges a claim (API-296 to 298), in this order (ours).
    ///
    /// `latest_claim_ns` is the latest `server_ns` of the inbox's stored updates that carry a claim, and `now_ns` the
    /// backend's clock; both in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`HandleRefusal`], the first check that fails.
    pub fn check(
        &self,
        handle: &Handle,
        owner: HandleOwner,
        latest_claim_ns: Option<u64>,
        now_ns: u64,
    ) -> Result<(), HandleRefusal> {
        if owner == HandleOwner::OtherInbox {
            return Err(HandleRefusal::Taken);
        }
        // The grammar is ASCII, so bytes are characters.
        let length = u32::try_from(handle.name().len()).unwrap_or(u32::MAX);
        if length < self.min_name_length {
            return Err(HandleRefusal::TooShort {
                min: self.min_name_length,
            });
        }
        if self.reserved_names.contains(handle.name()) {
            return Err(HandleRefusal::Reserved);
        }
        match latest_claim_ns {
            Some(claimed_ns) if claimed_ns.saturating_add(CLAIM_INTERVAL_NS) > now_ns => {
                Err(HandleRefusal::TooSoon)
            }
            _ => Ok(()),
        }
    }
}

/// A claim that only a backend refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleRefusal {
    /// Another inbox claimed it (API-296).
    #[error("another inbox has claimed the handle")]
    Taken,
    /// The name part is shorter than the deployment allows (API-297).
    #[error("the name part of the handle has fewer than {min} letters")]
    TooShort {
        /// The fewest letters.
        min: u32,
    },
    /// The name part is reserved (API-297).
    #[error("the name part of the handle is reserved")]
    Reserved,
    /// The inbox's last claim is less than seven days old (API-298).
    #[error("the inbox has claimed a handle less than seven days ago")]
    TooSoon,
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
