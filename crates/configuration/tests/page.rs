//! `docs/configuration.md` against the code: every variable, both ends of every range, every default.

use std::collections::BTreeSet;

use conclave_configuration::{ConfigurationError, Settings, Value, variables};

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// What stands in for the `<…>` of a name.
const PLACEHOLDERS: [(&str, &str); 2] = [("<number>", "1"), ("<name>", "ops")];

/// One row of one of the page's tables of variables.
struct Row {
    name: &'static str,
    value: &'static str,
    default: &'static str,
}

fn rows() -> Vec<Row> {
    let cells = |line: &'static str| {
        line.trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect::<Vec<_>>()
    };
    PAGE.lines()
        .filter(|line| line.starts_with("| `CONCLAVE_"))
        .map(|line| match cells(line)[..] {
            [name, value, default, _] => Row {
                name: code(name).expect("a name is code"),
                value,
                default,
            },
            _ => panic!("four cells: {line}"),
        })
        .collect()
}

/// What a cell that is code alone says.
fn code(cell: &'static str) -> Option<&'static str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// What lets a variable be as low as the page says.
const ROOM_BELOW: [(&str, &str); 4] = [
    ("CONCLAVE_KEEPALIVE_INTERVAL_MS", "100"),
    ("CONCLAVE_MAX_ENVELOPE_BYTES", "1"),
    ("CONCLAVE_DEFAULT_QUERY_LIMIT", "1"),
    ("CONCLAVE_MAX_UPDATE_ADDS", "1"),
];

/// What lets a variable be as high as the page says.
const ROOM_ABOVE: [(&str, &str); 3] = [
    ("CONCLAVE_MAX_PONG_WAIT_MS", "4294967295"),
    ("CONCLAVE_MAX_QUERY_LIMIT", "4294967295"),
    ("CONCLAVE_MAX_STREAM_TOPICS", "4294967295"),
];

/// What variables about credentials mean nothing without.
const CREDENTIALS: [(&str, &str); 2] = [
    ("CONCLAVE_AUTH_ENABLED", "true"),
    ("CONCLAVE_AUTH_API_KEY_page", "0123456789abcdef0123456789abcdef"),
];

impl Row {
    /// The lowest and the highest value, where the row gives numbers.
    fn range(&self) -> Option<(u64, u64)> {
        let range = self.value.split(',').next()?;
        let (min, max) = range.split_once(" to ")?;
        Some((min.parse().ok()?, max.parse().ok()?))
    }

    /// A variable of this name, with something in place of what is the operator's to choose.
    fn variable(&self) -> String {
        PLACEHOLDERS
            .iter()
            .fold(self.name.to_owned(), |name, (placeholder, instead)| {
                name.replace(placeholder, instead)
            })
    }

    /// Reads a deployment in which this variable has a value, or none, beside others that leave it room.
    fn read(&self, value: Option<&str>, beside: &[(&str, &str)]) -> Result<Settings, ConfigurationError> {
        let is_credential = self.name.starts_with("CONCLAVE_AUTH_");
        let others = [("CONCLAVE_IDENTIFIER", "page")]
            .into_iter()
            .chain(beside.iter().copied())
            .chain(CREDENTIALS.into_iter().filter(|_| is_credential))
            .filter(|(name, _)| *name != self.name)
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = value.map(|value| (self.variable(), value.to_owned()));
        let texts = others.chain(own).map(|(name, value)| (name, Value::Text(value)));
        // At the epoch, where the longest retention has its expiry.
        Settings::from_variables(texts, 0)
    }
}

#[test]
fn every_variable_stands_on_the_page_and_no_other() {
    let documented: BTreeSet<String> = rows().iter().map(|row| row.name.to_owned()).collect();
    let read: BTreeSet<String> = variables::all_names().into_iter().collect();
    assert_eq!(documented, read);
    assert_eq!(documented.len(), rows().len(), "each stands once");
}

#[test]
fn both_ends_of_every_range_are_accepted_and_what_lies_beyond_is_refused_by_name() {
    let check_refused = |row: &Row, value: u64, beside: &[(&str, &str)]| {
        let error = row.read(Some(&value.to_string()), beside).expect_err(row.name);
        let ConfigurationError::Variable { name, .. } = &error else {
            panic!("{}: {error}", row.name)
        };
        // Where one must leave room for another, either may be named.
        assert!(name == row.name || row.value.contains(name.as_str()), "{error}");
    };
    let mut ranges = 0;
    for row in rows() {
        let Some((min, max)) = row.range() else { continue };
        ranges += 1;
        for (value, beside) in [(min, &ROOM_BELOW[..]), (max, &ROOM_ABOVE)] {
            let settings = row.read(Some(&value.to_string()), beside);
            assert!(settings.is_ok(), "{}={value}: {:?}", row.name, settings.err());
        }
        if let Some(below) = min.checked_sub(1) {
            check_refused(&row, below, &ROOM_BELOW);
        }
        check_refused(&row, max + 1, &ROOM_ABOVE);
    }
    assert!(ranges > 25, "the ranges of the page are read");
}

#[test]
fn every_default_is_the_one_that_holds() {
    let mut defaults = 0;
    for row in rows() {
        let Some(default) = code(row.default) else {
            continue;
        };
        defaults += 1;
        let unset = row.read(None, &[]).expect("usable");
        let set = row.read(Some(default), &[]).expect(row.name);
        assert_eq!(unset.backend, set.backend, "{}", row.name);
        assert_eq!(unset.credentials, set.credentials, "{}", row.name);
    }
    assert!(defaults > 25, "the defaults of the page are read");
}
