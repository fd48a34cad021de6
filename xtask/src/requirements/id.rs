//! Requirement ids as they stand in comments: `API-222`, `CONV-A01`, and ranges such as `CONV-D01..D03`.

use std::fmt;

/// A requirement's id. Ids order as they stand in the specification's tables.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Id {
    family: Family,
    /// The letter of a CONV id's section; none for API ids.
    section: Option<char>,
    number: u16,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Family {
    Api,
    Conv,
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.family, self.section) {
            (Family::Api, _) => write!(formatter, "API-{:03}", self.number),
            (Family::Conv, section) => write!(formatter, "CONV-{}{:02}", section.unwrap_or('?'), self.number),
        }
    }
}

impl Id {
    /// Reads exactly one id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_prefix("API-") {
            return Some(Self {
                family: Family::Api,
                section: None,
                number: digits(number, 3)?,
            });
        }
        let rest = text.strip_prefix("CONV-")?;
        let section = rest.chars().next().filter(char::is_ascii_uppercase)?;
        Some(Self {
            family: Family::Conv,
            section: Some(section),
            number: digits(&rest[1..], 2)?,
        })
    }

    /// The ids from this one to the last, whose family and section may be left out: `API-220..224`, `CONV-D01..D03`.
    fn up_to(&self, last: &str) -> Option<Vec<Self>> {
        let last = Self::parse(last).or_else(|| match self.family {
            Family::Api => Self::parse(&format!("API-{last}")),
            Family::Conv => Self::parse(&format!("CONV-{last}"))
                .or_else(|| Self::parse(&format!("CONV-{}{last}", self.section?))),
        })?;
        let same = last.family == self.family && last.section == self.section;
        (same && last.number >= self.number).then(|| {
            (self.number..=last.number)
                .map(|number| Self {
                    number,
                    ..self.clone()
                })
                .collect()
        })
    }
}

fn digits(text: &str, count: usize) -> Option<u16> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Every id named in `text`, ranges spelt out, in the order they stand.
pub(crate) fn ids_in(text: &str) -> Vec<Id> {
    let mut ids = Vec::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '.')) {
        let word = word.trim_matches('.');
        match word.split_once("..") {
            Some((first, last)) => ids.extend(
                Id::parse(first)
                    .and_then(|first| first.up_to(last))
                    .unwrap_or_default(),
            ),
            None => ids.extend(Id::parse(word)),
        }
    }
    ids
}

/// Whether `text` is nothing but ids, ranges and commas: a claim, and not prose that mentions one.
pub(crate) fn is_only_ids(text: &str) -> bool {
    let mut words = text.split([',', ' ']).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| !ids_in(word).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        ids_in(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ids_are_found_among_words() {
        assert_eq!(
            names("// API-222, CONV-A01: retried (see API-224)."),
            ["API-222", "CONV-A01", "API-224"]
        );
        assert!(names("API-22 CONV-1 CONV-a01 XAPI-222 API-2222 CONV-A1").is_empty());
    }

    #[test]
    fn ranges_are_spelt_out() {
        assert_eq!(names("CONV-D01..D03"), ["CONV-D01", "CONV-D02", "CONV-D03"]);
        assert_eq!(
            names("CONV-D01..CONV-D02, API-220..222"),
            ["CONV-D01", "CONV-D02", "API-220", "API-221", "API-222"]
        );
        assert_eq!(names("CONV-D09..11"), ["CONV-D09", "CONV-D10", "CONV-D11"]);
        assert!(names("CONV-D03..D01 CONV-D01..E02 API-220..CONV-D01").is_empty());
    }

    #[test]
    fn prose_that_mentions_an_id_is_no_claim() {
        assert!(is_only_ids("API-222, CONV-D01..D03"));
        assert!(!is_only_ids("as API-222 says"));
        assert!(!is_only_ids(""));
    }
}
