//! The causes of a job's failed items: what is wrong, in which column, by which rule of the schema.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::run_output::FailedItem;
use crate::text::shortened;
use crate::whole;

/// The most causes that are told apart.
const CAUSES_MAX: usize = 100;

/// The most causes that the job row keeps.
const COUNTED_MAX: usize = 10;

/// Number of rows that stand for a cause.
const EXAMPLES: usize = 3;

/// Failed items with the same code, column and rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// What they have in common. A long name of a column is cut.
    #[serde(flatten)]
    pub name: CauseName,
    /// How many they are.
    #[schema(minimum = 1)]
    pub items: u64,
    /// The first of them.
    pub examples: Vec<CauseExample>,
}

/// How many items failed of a cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseCount {
    /// What they have in common. A long name of a column is cut.
    #[serde(flatten)]
    pub name: CauseName,
    /// How many they are.
    #[schema(minimum = 1)]
    pub items: u64,
}

/// A failed item that stands for its cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseExample {
    /// Its row number in the job.
    #[schema(minimum = 1)]
    pub row: u64,
    /// What is wrong with it, for a person.
    pub message: String,
}

/// Which failed items a redrive processes. Each field that is given narrows them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selection {
    /// Those with one of these codes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// Those of which one of these columns is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Those of one of these causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseName>,
    /// Those with one of these row numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowRange>,
}

/// A cause, by what its items have in common. More fields are not read, so a cause of the results can be sent as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CauseName {
    /// The code.
    pub code: String,
    /// The column, if the cause has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<String>,
    /// The rule, if the cause has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
}

/// Rows whose numbers follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RowRange {
    /// The first one.
    #[serde(deserialize_with = "whole::required")]
    #[schema(minimum = 1)]
    pub from: u64,
    /// The last one. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "whole::optional")]
    #[schema(minimum = 1)]
    pub to: Option<u64>,
}

impl RowRange {
    /// The last row.
    pub fn last(&self) -> u64 {
        self.to.unwrap_or(self.from)
    }
}

impl CauseName {
    /// That of an item.
    pub fn of(item: &FailedItem) -> Self {
        let column = item.column.as_deref().map(shortened);
        Self { code: item.code.clone(), column, rule: item.rule.clone() }
    }
}

impl Selection {
    /// True if this failed item is one of them.
    pub fn has(&self, item: &FailedItem) -> bool {
        let column = item.column.as_deref().unwrap_or_default();
        let is_in = |range: &RowRange| (range.from..=range.last()).contains(&item.row);
        (self.codes.is_empty() || self.codes.contains(&item.code))
            && (self.columns.is_empty() || self.columns.iter().any(|name| *name == column))
            && (self.causes.is_empty() || self.causes.contains(&CauseName::of(item)))
            && (self.rows.is_empty() || self.rows.iter().any(is_in))
    }

    /// True if it may have items of this cause.
    pub fn may_have(&self, cause: &CauseName) -> bool {
        let is_cut = |name: &String| cause.column.as_deref() == Some(&shortened(name));
        (self.codes.is_empty() || self.codes.contains(&cause.code))
            && (self.columns.is_empty() || self.columns.iter().any(is_cut))
            && (self.causes.is_empty() || self.causes.contains(cause))
    }

    /// True if it narrows nothing.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The causes of failed items, counted in row order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Causes {
    causes: Vec<Cause>,
    /// Items of causes that came when there were too many.
    other: u64,
}

impl Causes {
    pub fn add(&mut self, item: &FailedItem) {
        let name = CauseName::of(item);
        let at = self.causes.iter().position(|cause| cause.name == name).unwrap_or(self.causes.len());
        if at == CAUSES_MAX {
            self.other += 1;
            return;
        }
        if at == self.causes.len() {
            self.causes.push(Cause { name, items: 0, examples: Vec::new() });
        }
        let cause = &mut self.causes[at];
        cause.items += 1;
        if cause.examples.len() < EXAMPLES {
            cause.examples.push(CauseExample { row: item.row, message: item.message.clone() });
        }
    }

    /// The causes, the most frequent one first, and the number of items of others.
    pub fn ranked(&self) -> (Vec<Cause>, u64) {
        let mut causes = self.causes.clone();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.items));
        (causes, self.other)
    }

    /// The most frequent causes, for the job row: without examples, which are data of the rows.
    pub fn counted(&self) -> Vec<CauseCount> {
        let counted = |Cause { name, items, .. }| CauseCount { name, items };
        self.ranked().0.into_iter().take(COUNTED_MAX).map(counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(row: u64, code: &str, column: Option<&str>, rule: Option<&str>) -> FailedItem {
        FailedItem {
            row,
            file: None,
            offset: 0,
            length: 0,
            code: code.to_owned(),
            message: format!("row {row}"),
            column: column.map(str::to_owned),
            rule: rule.map(str::to_owned),
            raw: None,
            raw_base64: None,
        }
    }

    #[test]
    fn items_are_counted_by_code_column_and_rule_and_the_most_frequent_cause_comes_first() {
        let mut causes = Causes::default();
        causes.add(&item(1, "ragged_row", None, None));
        for row in 2..7 {
            causes.add(&item(row, "schema_violation", Some("age"), Some("minimum")));
        }
        causes.add(&item(8, "schema_violation", Some("age"), Some("type")));
        let (ranked, other) = causes.ranked();
        let counts: Vec<_> = ranked.iter().map(|cause| (cause.name.rule.as_deref(), cause.items)).collect();
        assert_eq!((counts, other), (vec![(Some("minimum"), 5), (None, 1), (Some("type"), 1)], 0));
        let rows: Vec<u64> = ranked[0].examples.iter().map(|example| example.row).collect();
        assert_eq!(rows, [2, 3, 4]);
    }

    #[test]
    fn a_selection_narrows_by_each_field_that_is_given() {
        let age = item(7, "schema_violation", Some("age"), Some("minimum"));
        let name = CauseName::of(&age);
        let selects = |selection: serde_json::Value| serde_json::from_value::<Selection>(selection).unwrap().has(&age);
        for (selection, is_selected) in [
            (json!({}), true),
            (json!({"codes": ["ragged_row", "schema_violation"]}), true),
            (json!({"codes": ["ragged_row"]}), false),
            (json!({"columns": ["age"], "codes": ["schema_violation"]}), true),
            (json!({"columns": ["name"], "codes": ["schema_violation"]}), false),
            (json!({"causes": [name]}), true),
            (json!({"causes": [{"code": "schema_violation", "column": "age"}]}), false),
            (json!({"rows": [{"from": 1, "to": 6}, {"from": 7}]}), true),
            (json!({"rows": [{"from": 8}, {"from": 9, "to": 1}]}), false),
        ] {
            assert_eq!(selects(selection.clone()), is_selected, "{selection}");
        }
    }

    #[test]
    fn too_many_causes_are_counted_together() {
        let mut causes = Causes::default();
        for row in 0..250 {
            causes.add(&item(row, &format!("code_{row}"), None, None));
        }
        causes.add(&item(250, "code_7", None, None));
        let (ranked, other) = causes.ranked();
        assert_eq!((ranked.len(), ranked[0].items, other), (100, 2, 150));
        let counted = causes.counted();
        assert_eq!((counted.len(), counted[0].name.code.as_str(), counted[0].items), (10, "code_7", 2));
    }
}
