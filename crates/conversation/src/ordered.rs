//! Maps and sets whose iteration follows their keys, as sorted vectors. Pure.
//!
//! Every kind of `BTreeMap` costs a browser 2 KiB of download, and there are two dozen kinds here. What they hold are a
//! conversation's members, what is under way, the rows that one step reads: dozens of entries, rarely thousands, where a
//! vector is as fast. Only what grows with the whole history is a `BTreeMap`.

use std::borrow::Borrow;
use std::fmt;

/// A map in the order of its keys. Insertion and removal move what stands behind, so that an entry at the end, where
/// rows read in their order go, costs nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct OrderedMap<K, V>(Vec<(K, V)>);

/// An entry, as the iterators give it.
type Pair<'a, K, V> = (&'a K, &'a V);

/// Every entry of a map, in order.
pub type Iter<'a, K, V> = std::iter::Map<std::slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> Pair<'a, K, V>>;

/// Every entry of a map, its value to be changed.
pub type IterMut<'a, K, V> =
    std::iter::Map<std::slice::IterMut<'a, (K, V)>, fn(&'a mut (K, V)) -> (&'a K, &'a mut V)>;

fn pair_mut<K, V>(entry: &mut (K, V)) -> (&K, &mut V) {
    (&entry.0, &mut entry.1)
}

fn pair<K, V>(entry: &(K, V)) -> Pair<'_, K, V> {
    (&entry.0, &entry.1)
}

impl<K, V> OrderedMap<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every entry, in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.0.iter().map(pair as fn(&(K, V)) -> Pair<'_, K, V>)
    }

    /// Every entry, its value to be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.0.iter_mut().map(pair_mut as fn(&mut (K, V)) -> (&K, &mut V))
    }

    /// Every key, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// Every value, in the order of the keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// Every value, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Every key, taken out.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.0.into_iter().map(|(key, _)| key)
    }

    /// Every value, taken out.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// Takes every entry out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps the entries that pass.
    pub fn retain(&mut self, mut passes: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| passes(key, value));
    }
}

impl<K: Ord, V> OrderedMap<K, V> {
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // What arrives in order is compared once.
        match self.0.last() {
            Some((last, _)) if last.borrow() < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(held, _)| held.borrow().cmp(key)),
        }
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|place| &self.0[place].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|place| &mut self.0[place].1)
    }

    /// Whether there is an entry of this key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets the value of a key, and returns the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes the entry of a key out, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|place| self.0.remove(place).1)
    }

    /// The value of a key; one it does not have is made first.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(&key) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, (key, make()));
                place
            }
        };
        &mut self.0[place].1
    }

    /// The value of a key, the default one if it had none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }

    /// Every entry from this key on, in order.
    pub fn from(&self, key: &K) -> Iter<'_, K, V> {
        let place = self.place(key).unwrap_or_else(|place| place);
        self.0[place..].iter().map(pair as fn(&(K, V)) -> Pair<'_, K, V>)
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        entries.into_iter().for_each(|(key, value)| {
            self.insert(key, value);
        });
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a OrderedMap<K, V> {
    type Item = Pair<'a, K, V>;
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut OrderedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// A set in the order of its elements.
#[derive(Clone, PartialEq, Eq)]
pub struct OrderedSet<K>(OrderedMap<K, ()>);

impl<K> OrderedSet<K> {
    /// An empty set.
    pub const fn new() -> Self {
        Self(OrderedMap::new())
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every element, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.keys()
    }

    /// Takes every element out.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord> OrderedSet<K> {
    /// Whether the element is there.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Adds an element, and says whether it was missing.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Takes an element out, and says whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).is_some()
    }
}

impl<K> Default for OrderedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for OrderedSet<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Ord> Extend<K> for OrderedSet<K> {
    fn extend<T: IntoIterator<Item = K>>(&mut self, elements: T) {
        self.0.extend(elements.into_iter().map(|element| (element, ())));
    }
}

impl<K: Ord> FromIterator<K> for OrderedSet<K> {
    fn from_iter<T: IntoIterator<Item = K>>(elements: T) -> Self {
        let mut set = Self::new();
        set.extend(elements);
        set
    }
}

impl<K> IntoIterator for OrderedSet<K> {
    type Item = K;
    type IntoIter = std::iter::Map<std::vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(element, ())| element)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u16),
        Remove(u8),
        OrDefault(u8),
        Retain(u8),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (any::<u8>(), any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
            4 => any::<u8>().prop_map(Step::Remove),
            2 => any::<u8>().prop_map(Step::OrDefault),
            1 => any::<u8>().prop_map(Step::Retain),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn an_ordered_map_is_what_a_tree_is(steps in prop::collection::vec(step(), 0..200), from: u8) {
            let (mut ours, mut tree) = (OrderedMap::new(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(key, value) => prop_assert_eq!(ours.insert(key, value), tree.insert(key, value)),
                    Step::Remove(key) => prop_assert_eq!(ours.remove(&key), tree.remove(&key)),
                    Step::OrDefault(key) => prop_assert_eq!(ours.or_default(key), tree.entry(key).or_default()),
                    Step::Retain(bound) => {
                        ours.retain(|key, _| *key < bound);
                        tree.retain(|key, _| *key < bound);
                    }
                    Step::Clear => {
                        ours.clear();
                        tree.clear();
                    }
                }
                prop_assert!(ours.iter().eq(tree.iter()));
                prop_assert_eq!(ours.len(), tree.len());
            }
            prop_assert!(ours.from(&from).eq(tree.range(from..)));
            prop_assert_eq!(ours.get(&from), tree.get(&from));
            prop_assert_eq!(ours.contains_key(&from), tree.contains_key(&from));
            prop_assert!(ours.keys().eq(tree.keys()));
            prop_assert!(ours.values().rev().eq(tree.values().rev()));
            prop_assert!(ours.into_iter().eq(tree));
        }
    }

    #[test]
    fn a_set_holds_an_element_once_and_in_order() {
        let mut set: OrderedSet<u8> = [3, 1, 2, 3].into_iter().collect();
        assert!(!set.insert(1));
        assert!(set.remove(&2) && !set.remove(&2));
        assert!(set.contains(&3) && !set.contains(&2));
        assert_eq!(set.into_iter().collect::<Vec<_>>(), [1, 3]);
    }
}
