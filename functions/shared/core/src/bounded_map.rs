//! A map of bounded size, for what a process remembers.

use std::collections::HashMap;
use std::hash::Hash;

/// A map that holds at most so many entries.
///
/// A new key that finds it full empties it first. So it is only for what can be lost at any time, because it can be read again.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    most: usize,
    entries: HashMap<K, V>,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// An empty map for at most so many entries.
    pub fn new(most: usize) -> Self {
        Self { most, entries: HashMap::new() }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// Remembers a value in place of what was under the key.
    pub fn insert(&mut self, key: K, value: V) {
        if self.entries.len() >= self.most && !self.entries.contains_key(&key) {
            self.entries.clear();
        }
        self.entries.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_empties_a_full_map_and_a_known_one_does_not() {
        let mut map = BoundedMap::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        map.insert("a", 3);
        assert_eq!((map.get(&"a"), map.get(&"b")), (Some(&3), Some(&2)));
        map.insert("c", 4);
        assert_eq!((map.get(&"a"), map.get(&"b"), map.get(&"c")), (None, None, Some(&4)));
    }
}
