//! Names for the columns of a file: unique and not empty for every header.

use std::collections::{HashMap, HashSet};

/// Gives every column of a header a name of its own.
///
/// A column without a name becomes `column` and its 1-based place. Of several columns with the same name the first
/// keeps it, and the others get a suffix: `amount_2`, `amount_3`. A name that another column has in the header is never
/// given to a second one; the next free suffix is taken.
pub(super) fn unique_names(header: &[String]) -> Vec<String> {
    // Names of the header, and those given so far. All of them are taken.
    let mut taken: HashSet<String> = header.iter().filter(|name| !name.is_empty()).cloned().collect();
    let mut seen: HashSet<&str> = HashSet::with_capacity(header.len());
    // The next suffix to try for a name, so that many equal names take linear time.
    let mut next_suffix: HashMap<String, u32> = HashMap::new();
    let named = header.iter().enumerate().map(|(index, name)| {
        if !name.is_empty() && seen.insert(name) {
            return name.clone();
        }
        let base = if name.is_empty() { format!("column{}", index + 1) } else { name.clone() };
        if name.is_empty() && taken.insert(base.clone()) {
            return base;
        }
        let suffix = next_suffix.entry(base.clone()).or_insert(2);
        loop {
            let candidate = format!("{base}_{suffix}");
            *suffix += 1;
            if taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(header: &[&str]) -> Vec<String> {
        unique_names(&header.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_column_without_a_name_is_named_by_its_place_and_a_doubled_name_gets_a_suffix() {
        assert_eq!(named(&["a", "", "c", ""]), ["a", "column2", "c", "column4"]);
        assert_eq!(named(&["amount", "amount", "x", "amount"]), ["amount", "amount_2", "x", "amount_3"]);
        assert_eq!(named(&[" ", "A", "a"]), [" ", "A", "a"], "white space and capitals distinguish names");
    }

    #[test]
    fn a_name_that_the_header_has_is_never_given_to_another_column() {
        assert_eq!(named(&["a", "a", "a_2", "a"]), ["a", "a_3", "a_2", "a_4"]);
        assert_eq!(named(&["", "column1", ""]), ["column1_2", "column1", "column3"]);
        assert_eq!(named(&["column3", "", "", "column3"]), ["column3", "column2", "column3_2", "column3_3"]);
    }

    #[test]
    fn a_header_of_many_equal_names_takes_linear_time() {
        let mut header = vec!["a"; 8000];
        let real: Vec<String> = (2..8000).map(|suffix| format!("a_{suffix}")).collect();
        header.extend(real.iter().map(String::as_str));
        assert_eq!(named(&header)[7999], "a_15998");
    }

    proptest! {
        #[test]
        fn names_are_unique_and_not_empty_and_good_ones_stay(
            header in prop::collection::vec("(a|b|a_2|a_3|column1|column2|column2_2|)", 0..12),
        ) {
            let names = unique_names(&header);
            prop_assert_eq!(names.len(), header.len());
            prop_assert!(names.iter().all(|name| !name.is_empty()));
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
            for (index, name) in header.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                if !header[..index].contains(name) {
                    prop_assert_eq!(&names[index], name);
                }
            }
        }
    }
}
