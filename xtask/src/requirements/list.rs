//! The list of requirements: which ids exist, and which of them a later piece of work covers.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};

use super::id::{Id, ids_in};

/// Every id, with the subject of the later work that covers it, if any.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct List(pub(crate) BTreeMap<Id, Option<String>>);

impl List {
    /// Reads the text of `tests/requirements.toml`: `held` lists the ids that need a test; each `[[later]]` has a
    /// `subject` and `ids`.
    ///
    /// # Errors
    ///
    /// It is not such a file, or an id stands twice.
    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let table: toml::Table = text.parse().context("it is not TOML")?;
        let mut list = BTreeMap::new();
        add(&mut list, table.get("held"), None).context("in `held`")?;
        let later = table
            .get("later")
            .and_then(toml::Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for entry in later {
            let subject = entry
                .get("subject")
                .and_then(toml::Value::as_str)
                .context("a `[[later]]` has no `subject`")?;
            add(&mut list, entry.get("ids"), Some(subject)).with_context(|| format!("in `{subject}`"))?;
        }
        ensure!(!list.is_empty(), "it lists no id");
        Ok(Self(list))
    }

    /// How this list differs from a table of the specification, whose lines begin with an id.
    pub(crate) fn differences(&self, table: &str, prefix: &str) -> Vec<String> {
        let theirs: Vec<Id> = table
            .lines()
            .filter_map(|line| Id::parse(line.split('\t').next()?.trim()))
            .collect();
        let missing = theirs
            .iter()
            .filter(|id| !self.0.contains_key(id))
            .map(|id| format!("{id} is not listed"));
        let invented = self
            .0
            .keys()
            .filter(|id| id.to_string().starts_with(prefix) && !theirs.contains(id))
            .map(|id| format!("{id} is listed and does not exist"));
        missing.chain(invented).collect()
    }
}

fn add(
    list: &mut BTreeMap<Id, Option<String>>,
    value: Option<&toml::Value>,
    subject: Option<&str>,
) -> anyhow::Result<()> {
    for item in value
        .and_then(toml::Value::as_array)
        .context("there is no list of ids")?
    {
        let text = item.as_str().context("an id is not a string")?;
        let ids = ids_in(text);
        ensure!(!ids.is_empty(), "`{text}` is no id and no range of ids");
        for id in ids {
            ensure!(
                list.insert(id.clone(), subject.map(str::to_owned)).is_none(),
                "{id} stands twice"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "held = [\"API-210..211\"]\n[[later]]\nsubject = \"Streams\"\nids = [\"API-250\"]";

    #[test]
    fn ids_are_held_or_later() -> anyhow::Result<()> {
        let list = List::read(TEXT)?;
        let pairs: Vec<_> = list
            .0
            .iter()
            .map(|(id, later)| (id.to_string(), later.as_deref()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("API-210".to_owned(), None),
                ("API-211".to_owned(), None),
                ("API-250".to_owned(), Some("Streams"))
            ]
        );
        Ok(())
    }

    #[test]
    fn an_id_that_stands_twice_or_is_none_is_refused() {
        for text in [
            "held = [\"API-210\", \"API-210\"]",
            "held = [\"API-2\"]",
            "held = []",
            "x = 1",
            "held = 1",
        ] {
            assert!(List::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_table_that_has_other_ids_differs() -> anyhow::Result<()> {
        let list = List::read(TEXT)?;
        assert!(
            list.differences("id\ttitle\nAPI-210\ta\nAPI-211\tb\nAPI-250\tc\n", "API-")
                .is_empty()
        );
        assert_eq!(
            list.differences("API-210\nAPI-211\nAPI-299\n", "API-"),
            ["API-299 is not listed", "API-250 is listed and does not exist"]
        );
        Ok(())
    }
}
