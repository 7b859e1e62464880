//! What an import would change, and what an undo or a prune has changed: for each row, and counted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::decimal::Decimal;
use super::ids::JobGuid;
use super::records::DatasetRecord;
use crate::text::shortened;

/// The most changed fields that a row names.
const ROW_FIELDS_MAX: usize = 20;

/// The most changed fields that are counted by name.
const FIELDS_MAX: usize = 100;

/// What a row would do to the record of its key, if it were imported now; or what an undo or a prune did to a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// There is no such record.
    Create,
    /// Fields of the record would change.
    Update,
    /// The record has the same fields. Or the job that is undone has not written it.
    Unchanged,
    /// The record is again what it was before the job that is undone.
    Reversed,
    /// The record stays: another job has changed it since, or what was there before is not kept.
    Kept,
    /// The import has not got the record: a prune removes it.
    Remove,
}

/// The change of a row: a line of the output of a dry run, an undo or a prune.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowChange {
    pub row: u64,
    pub key: String,
    pub change: Change,
    /// The fields that an update would set to another value, add or remove: the first ones, each shortened.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<String>,
    /// How many more it would change.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub other_fields: u64,
    /// Why it is kept: the job that has changed it since. The undone job itself, if its record keeps too little.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<JobGuid>,
}

/// The changes of the rows of a job, counted. Each row counts by itself: two rows that would create the same record
/// count twice.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Rows without a record.
    pub create: u64,
    /// Rows that change fields of their record.
    pub update: u64,
    /// Rows whose record has the same fields.
    pub unchanged: u64,
    /// The first 100 fields that updates change, the most frequent one first.
    pub fields: Vec<ChangedField>,
    /// How often updates change other fields, or more fields than a row names.
    pub other_fields: u64,
    /// Records that an undo has reversed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub reversed: u64,
    /// Records that an undo has kept as they are.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub kept: u64,
    /// Records that a prune has removed, or would remove.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub remove: u64,
}

/// A field that updates change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedField {
    /// Its name. A long one is cut.
    pub name: String,
    /// How many rows name it.
    #[schema(minimum = 1)]
    pub items: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RowChange {
    /// What this record would do, if `stored` is there in its place.
    pub fn of(new: &DatasetRecord, stored: Option<&DatasetRecord>) -> Self {
        let (row, key) = (new.version.row, new.key.clone());
        let bare = |change| Self { row, key, ..Self::bare(change) };
        let Some(stored) = stored else { return bare(Change::Create) };
        let changed = changed_fields(&stored.fields, &new.fields);
        if changed.is_empty() {
            return bare(Change::Unchanged);
        }
        let mut fields: Vec<String> = Vec::new();
        for name in changed.iter().take(ROW_FIELDS_MAX).map(|name| shortened(name)) {
            // Two long names may be cut to the same one.
            if !fields.contains(&name) {
                fields.push(name);
            }
        }
        let other_fields = (changed.len() - fields.len()) as u64;
        Self { fields, other_fields, ..bare(Change::Update) }
    }

    /// A change of no row yet.
    pub const fn bare(change: Change) -> Self {
        Self { row: 0, key: String::new(), change, fields: Vec::new(), other_fields: 0, by: None }
    }

    /// The line of the output.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Changes {
    pub fn add(&mut self, row: &RowChange) {
        match row.change {
            Change::Create => self.create += 1,
            Change::Update => self.update += 1,
            Change::Unchanged => self.unchanged += 1,
            Change::Reversed => self.reversed += 1,
            Change::Kept => self.kept += 1,
            Change::Remove => self.remove += 1,
        }
        self.other_fields += row.other_fields;
        for name in &row.fields {
            match self.fields.iter().position(|field| field.name == *name) {
                Some(at) => self.fields[at].items += 1,
                None if self.fields.len() < FIELDS_MAX => {
                    self.fields.push(ChangedField { name: name.clone(), items: 1 });
                }
                None => self.other_fields += 1,
            }
        }
    }

    /// The same, the most frequent field first.
    #[must_use]
    pub fn ranked(&self) -> Self {
        let mut ranked = self.clone();
        ranked.fields.sort_by_key(|field| std::cmp::Reverse(field.items));
        ranked
    }
}

/// The names of the fields that differ, those of the new record first.
fn changed_fields<'a>(stored: &'a Map<String, Value>, new: &'a Map<String, Value>) -> Vec<&'a str> {
    let changed = new.iter().filter(|(name, value)| stored.get(*name).is_none_or(|stored| !are_same(stored, value)));
    let removed = stored.keys().filter(|name| !new.contains_key(*name));
    changed.map(|(name, _)| name).chain(removed).map(String::as_str).collect()
}

/// True if two values are the same, however their numbers are written.
fn are_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || Decimal::of(one).is_some_and(|one| Decimal::of(other) == Some(one))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => changed_fields(one, other).is_empty(),
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ids::JobGuid;
    use crate::model::records::{RecordVersion, Writer};

    fn record(job: i64, row: u64, fields: &str) -> DatasetRecord {
        let by = Writer { job_created_ms: job, job_guid: JobGuid(uuid::Uuid::nil()) };
        let fields = serde_json::from_str(fields).unwrap();
        DatasetRecord { key: "k".to_owned(), version: RecordVersion { by, row }, fields }
    }

    #[test]
    fn a_row_is_compared_field_by_field() {
        let of = |stored: &str, new: &str| {
            let change = RowChange::of(&record(2, 7, new), Some(&record(1, 9, stored)));
            (change.change, change.fields.join(" "))
        };
        let unchanged = (Change::Unchanged, String::new());
        for (stored, new) in [
            (r#"{"a": 1, "b": "x"}"#, r#"{"b": "x", "a": 1}"#),
            (r#"{"a": 1.5, "b": 100, "c": -0.0012, "d": 0}"#, r#"{"a": 1.50, "b": 1e2, "c": -12E-4, "d": -0.0}"#),
            (r#"{"a": 12345678901234567890123456789012345678}"#, r#"{"a": 12345678901234567890123456789012345678.0}"#),
            (r#"{"a": [1, {"b": 2.0}]}"#, r#"{"a": [1, {"b": 2}]}"#),
        ] {
            assert_eq!(of(stored, new), unchanged, "{stored} and {new}");
        }
        for (stored, new, fields) in [
            (r#"{"a": 1, "b": 2, "c": 3}"#, r#"{"a": 1, "b": "2", "c": 4}"#, "b c"),
            (r#"{"a": 1, "gone": 2}"#, r#"{"a": 1, "new": 2}"#, "new gone"),
            (r#"{"a": null}"#, r#"{}"#, "a"),
            (r#"{"a": 12345678901234567890}"#, r#"{"a": 12345678901234567891}"#, "a"),
            (r#"{"a": 10}"#, r#"{"a": 1}"#, "a"),
            (r#"{"a": 1}"#, r#"{"a": -1}"#, "a"),
            (r#"{"a": 1e99999999999999999999}"#, r#"{"a": 1}"#, "a"),
            (r#"{"a": [1, 2]}"#, r#"{"a": [1]}"#, "a"),
        ] {
            assert_eq!(of(stored, new), (Change::Update, fields.to_owned()), "{stored} and {new}");
        }
    }

    #[test]
    fn a_record_that_is_not_there_is_new_and_who_wrote_one_makes_no_difference() {
        let new = record(2, 7, "{}");
        assert_eq!(RowChange::of(&new, None).change, Change::Create);
        assert_eq!(RowChange::of(&new, Some(&record(3, 1, r#"{"a": 1}"#))).change, Change::Update);
    }

    #[test]
    fn changes_are_counted_with_their_fields() {
        let many: Vec<String> = (0..30).map(|n| format!("\"f{n:02}\": 1")).collect();
        let many = record(2, 1, &format!("{{{}}}", many.join(", ")));
        let mut changes = Changes::default();
        changes.add(&RowChange::of(&many, Some(&record(1, 1, "{}"))));
        for row in 0..5 {
            changes.add(&RowChange::of(&record(2, row, r#"{"f07": 2}"#), Some(&record(1, 1, r#"{"f07": 1}"#))));
        }
        changes.add(&RowChange::of(&many, Some(&many)));
        changes.add(&RowChange::of(&many, None));
        let ranked = changes.ranked();
        assert_eq!((ranked.create, ranked.update, ranked.unchanged), (1, 6, 1));
        assert_eq!((ranked.fields.len(), ranked.other_fields), (20, 10));
        assert_eq!(ranked.fields[0], ChangedField { name: "f07".to_owned(), items: 6 });
        for row in 0..200 {
            let fields = format!("{{\"g{row}\": 1}}");
            changes.add(&RowChange::of(&record(2, row, &fields), Some(&record(1, 1, "{}"))));
        }
        assert_eq!((changes.fields.len(), changes.other_fields), (100, 10 + 120));
    }

    #[test]
    fn the_line_of_a_row_reads_back() {
        let line = json!({ "row": 7, "key": "k", "change": "update", "fields": ["a"] });
        let change: RowChange = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(serde_json::to_value(change).unwrap(), line);
    }
}
