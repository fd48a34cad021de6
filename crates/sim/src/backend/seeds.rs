//! Seeds that once failed: they run first, for ever.
//!
//! `seeds/backend.txt` has one a line: the seed, the shard count or `-`, the faults, and the workload unless it is the mixed
//! one; after a `#` what went wrong then.

use super::simulation::{Options, Workload};

/// The kept seeds.
const KEPT: &str = include_str!("../../seeds/backend.txt");

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
    let (seed, shards, faults) = (words.next()?, words.next()?, words.next()?);
    let workload = words.next().map_or(Ok(Workload::default()), str::parse);
    let options = Options {
        workload: workload.ok()?,
        shards: match shards {
            "-" => None,
            count => Some(count.parse().ok()?),
        },
        faults: faults.parse().ok()?,
        bug: None,
    };
    words.next().is_none().then_some((seed.parse().ok()?, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kept_seed_is_read() {
        assert!(kept().iter().all(|(_, options)| options.bug.is_none()));
        assert_eq!(
            parse("7 4 lose,crash").map(|(seed, options)| (seed, options.shards)),
            Some((7, Some(4)))
        );
        assert_eq!(
            parse("7 - all streams").map(|(_, options)| options.workload),
            Some(Workload::Streams)
        );
        assert_eq!(parse("7 4"), None);
    }
}
