//! A map of a few entries. Pure.
//!
//! Every kind of `BTreeMap` costs a browser 5 KiB to download. What is kept here are dozens of entries, rarely hundreds,
//! which a scan of a vector finds as fast.

/// A map of a few entries, in the order of their insertion.
#[derive(Clone, Debug)]
pub(crate) struct ShortMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for ShortMap<K, V> {
    fn default() -> Self {
        ShortMap(Vec::new())
    }
}

impl<K: PartialEq, V> ShortMap<K, V> {
    /// The value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0
            .iter()
            .find(|(held, _)| held == key)
            .map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0
            .iter_mut()
            .find(|(held, _)| held == key)
            .map(|(_, value)| value)
    }

    /// Sets the value of a key; one it had keeps its place.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.get_mut(&key) {
            Some(held) => *held = value,
            None => self.0.push((key, value)),
        }
    }

    /// The value of a key, made if there is none.
    pub(crate) fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = self.0.iter().position(|(held, _)| *held == key);
        let place = place.unwrap_or_else(|| {
            self.0.push((key, make()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// Takes a key and its value out.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|(held, _)| held == key)?;
        Some(self.0.remove(place).1)
    }

    /// Keeps the entries that pass.
    pub(crate) fn retain(&mut self, mut passes: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| passes(key, value));
    }

    /// Every entry.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.0.iter()
    }

    /// Every entry, its value to be changed.
    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// Every value, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Every entry, taken out.
    pub(crate) fn into_entries(self) -> Vec<(K, V)> {
        self.0
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_value_and_keeps_its_place() {
        let mut map = ShortMap::default();
        map.insert("a", 1);
        map.insert("b", 2);
        map.insert("a", 3);
        assert_eq!(map.get(&"a"), Some(&3));
        assert_eq!(
            (*map.or_insert_with("a", || 4), *map.or_insert_with("c", || 5)),
            (3, 5)
        );
        assert_eq!(map.remove(&"c"), Some(5));
        assert_eq!(map.remove(&"a"), Some(3));
        assert_eq!(map.remove(&"a"), None);
        assert_eq!(map.into_entries(), [("b", 2)]);
    }
}
