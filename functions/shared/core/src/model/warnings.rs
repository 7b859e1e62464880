//! The warnings of a job: what its owner should know about a file that could be read.

use serde::{Deserialize, Serialize};

use crate::text::{Head, shortened};
use crate::words::{Open, words};

words! {
    /// What a warning of a job is about.
    WarningCode {
        /// Columns of the header have no name, and are read under made-up ones.
        UnnamedColumns = "unnamed_columns",
        /// Columns of the header have the name of another one, and are read under names with a suffix.
        DuplicateColumns = "duplicate_columns",
        /// The file is not valid UTF-8, and no param says what it is.
        NotUtf8 = "not_utf8",
        /// Bytes behind the last member of the gzip file were ignored.
        TrailingBytes = "trailing_bytes",
    }
}

/// A warning as the job row holds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Warning {
    pub code: Open<WarningCode>,
    /// What was noticed and what to do, for a person.
    #[serde(default)]
    pub message: String,
}

/// Maximum number of columns a warning lists. It gives the number of the others.
const COLUMNS_LISTED: usize = 5;

/// The warnings about the names in the header of a file.
pub fn of_columns(head: &Head) -> Vec<Warning> {
    let Some(header) = &head.header else { return Vec::new() };
    let changed = || (1_usize..).zip(header.iter().zip(&head.columns)).filter(|(_, (own, name))| own != name);
    let unnamed: Vec<String> = changed()
        .filter(|(_, (own, _))| own.is_empty())
        .map(|(place, (_, name))| format!("{place} as `{name}`"))
        .collect();
    let doubled: Vec<String> = changed()
        .filter(|(_, (own, _))| !own.is_empty())
        .map(|(place, (own, name))| format!("{place} (`{}`) as `{}`", shortened(own), shortened(name)))
        .collect();
    let mut warnings = Vec::new();
    if !unnamed.is_empty() {
        let message =
            format!("Columns of the header have no name. They are read under other names: {}.", listed(&unnamed));
        warnings.push(Warning { code: WarningCode::UnnamedColumns.into(), message });
    }
    if !doubled.is_empty() {
        let message = format!(
            "Columns of the header have the name of an earlier column. They are read under other names: {}.",
            listed(&doubled)
        );
        warnings.push(Warning { code: WarningCode::DuplicateColumns.into(), message });
    }
    warnings
}

/// The warning about text that is not UTF-8 from this byte on. For compressed text it is a byte of the text.
pub fn not_utf8(byte: u64, likely: Option<&str>) -> Warning {
    let advice = match likely {
        Some(charset) => format!(
            "It looks like {charset}. If it is, create the job again with the param `encoding` set to `{charset}`."
        ),
        None => "Most of its text is UTF-8, so single bytes seem to be damaged.".to_owned(),
    };
    let message = format!(
        "The file is not valid UTF-8: byte {byte} of its text is the first that is not. Rows that are not valid fail with \
         `invalid_utf8`. {advice}"
    );
    Warning { code: WarningCode::NotUtf8.into(), message }
}

/// The warning about bytes behind the last member of a gzip file, from this byte of the file on.
pub fn trailing_bytes(from: u64) -> Warning {
    let message = format!(
        "Bytes that are not gzip data follow the compressed text, from byte {from} of the file on. They were ignored, as gzip \
         does. Check that the file is whole."
    );
    Warning { code: WarningCode::TrailingBytes.into(), message }
}

/// Adds warnings to those of a job, one of each kind. Returns whether any was added.
pub fn add(warnings: &mut Vec<Warning>, found: Vec<Warning>) -> bool {
    let before = warnings.len();
    for warning in found {
        if !warnings.iter().any(|known| known.code == warning.code) {
            warnings.push(warning);
        }
    }
    warnings.len() > before
}

fn listed(columns: &[String]) -> String {
    let shown =
        columns.iter().take(COLUMNS_LISTED).map(|column| format!("column {column}")).collect::<Vec<_>>().join(", ");
    match columns.len().saturating_sub(COLUMNS_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Dialect, Format};

    fn head(header: &[&str], columns: &[&str]) -> Head {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let dialect = Dialect { format: Format::Csv, delimiter: b',' };
        Head { dialect, columns: names(columns), header: Some(names(header)), data_start: 0 }
    }

    #[test]
    fn the_warnings_about_columns_say_which_ones_and_under_which_name_they_are_read() {
        let warnings = of_columns(&head(&["a", "", "a"], &["a", "column2", "a_2"]));
        let told: Vec<(&str, &str)> = warnings.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
        let expected = [
            (
                "unnamed_columns",
                "Columns of the header have no name. They are read under other names: column 2 as `column2`.",
            ),
            (
                "duplicate_columns",
                "Columns of the header have the name of an earlier column. They are read under other names: column 3 (`a`) \
                 as `a_2`.",
            ),
        ];
        assert_eq!(told, expected);
        let many = of_columns(&head(&[""; 9], &["c"; 9]));
        assert!(many[0].message.ends_with("column 5 as `c` and 4 more."), "{}", many[0].message);
    }

    #[test]
    fn a_job_has_one_warning_of_each_kind() {
        let mut warnings = vec![not_utf8(7, Some("windows-1252"))];
        assert!(!add(&mut warnings, vec![not_utf8(99, None)]));
        assert!(add(&mut warnings, vec![trailing_bytes(3)]));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].message.contains("set to `windows-1252`"), "{}", warnings[0].message);
    }
}
