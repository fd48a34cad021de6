//! Seeds that once failed: they run first, for ever.
//!
//! `seeds/conversation.txt` has one a line: the seed, the members and the Byzantine ones or `-`, and the faults; after a `#`
//! what went wrong then.

use super::simulation::Options;

/// The kept seeds.
const KEPT: &str = include_str!("../../seeds/conversation.txt");

/// Every kept seed and what to simulate with it.
///
/// # Panics
/// When the file is not as described: it is part of this build.
#[must_use]
pub fn kept() -> Vec<(u64, Options)> {
    KEPT.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(|line| parse(line).unwrap_or_else(|| panic!("no kept seed: {line:?}")))
        .collect()
}

fn parse(line: &str) -> Option<(u64, Options)> {
    let mut words = line.split_whitespace();
    let seed = words.next()?.parse().ok()?;
    let mut count = || match words.next()? {
        "-" => Some(None),
        count => Some(Some(count.parse().ok()?)),
    };
    let (members, byzantine) = (count()?, count()?);
    let options = Options {
        members,
        byzantine,
        faults: words.next()?.parse().ok()?,
        bug: None,
    };
    words.next().is_none().then_some((seed, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kept_seed_is_read() {
        assert!(kept().iter().all(|(_, options)| options.bug.is_none()));
        let read =
            parse("7 4 - lose,crash").map(|(seed, options)| (seed, options.members, options.byzantine));
        assert_eq!(read, Some((7, Some(4), None)));
        assert_eq!(parse("7 4"), None);
    }
}
