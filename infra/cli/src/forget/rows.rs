//! Which rows of a stack's tables are of an owner. The keys are those of the module `dynamodb` of rowmill-aws.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::records::owner_and_name;
use serde_json::Value;

pub type Row = HashMap<String, AttributeValue>;

/// A table with rows of owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    Jobs,
    Uploads,
    Records,
    Tasks,
    Connections,
    /// The last one: its rows say who may do what.
    Admission,
}

impl Table {
    pub const ALL: [Self; 6] =
        [Self::Jobs, Self::Uploads, Self::Records, Self::Tasks, Self::Connections, Self::Admission];

    /// The output of the stack with its name.
    pub const fn output(self) -> &'static str {
        match self {
            Self::Jobs => "JobsTable",
            Self::Uploads => "UploadsTable",
            Self::Records => "RecordsTable",
            Self::Tasks => "TasksTable",
            Self::Connections => "ConnectionsTable",
            Self::Admission => "AdmissionTable",
        }
    }

    /// Its partition key, and its sort key if it has one.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Jobs => &["jobId", "row"],
            Self::Uploads => &["fileGuid"],
            Self::Records => &["bucket", "key"],
            Self::Tasks | Self::Connections => &["scope", "entry"],
            Self::Admission => &["scope"],
        }
    }

    /// The attributes that tell whose a row is, or what else is stored under its name.
    pub const fn others(self) -> &'static [&'static str] {
        match self {
            Self::Jobs => &["owner", "spec", "fileGuid"],
            Self::Uploads => &["owner", "key", "multipart", "etag"],
            Self::Connections => &["owner"],
            Self::Records | Self::Tasks | Self::Admission => &[],
        }
    }

    /// True if this row is of the owner.
    pub fn is_of(self, owner: &Owner, row: &Row) -> bool {
        let text = |name: &str| text(row, name).unwrap_or_default();
        let owner = owner.as_str();
        let has_owner = || text("owner") == owner;
        match self {
            Self::Jobs => has_owner() || owner_of_spec(text("spec")).is_some_and(|of| of == owner),
            Self::Uploads => has_owner(),
            Self::Records => match text("bucket").rsplit_once('#') {
                Some((list, "datasets")) => list == owner,
                Some((dataset, _)) => dataset.contains('/') && owner_and_name(dataset).0 == owner,
                None => false,
            },
            Self::Tasks => match text("scope").split_once('#') {
                Some(("tasks", rest)) => rest.split_once('#').is_some_and(|(_, of)| of == owner),
                Some(("owners", _)) => text("entry").split_once('#').is_some_and(|(_, of)| of == owner),
                _ => false,
            },
            Self::Connections => has_owner() || text("scope").strip_prefix("watch#") == Some(owner),
            Self::Admission => is_of_admission(owner, text("scope")),
        }
    }
}

fn is_of_admission(owner: &str, scope: &str) -> bool {
    match scope.split_once('#') {
        Some(("owner" | "uploads", of)) => of == owner,
        Some(("idempotency" | "dedupe", rest)) => rest.split('#').next() == Some(owner),
        Some(("requests", rest)) => {
            rest.split('#').next().and_then(|principal| principal.strip_prefix("owner:")) == Some(owner)
        }
        // The block is lifted at the end.
        _ => false,
    }
}

fn owner_of_spec(spec: &str) -> Option<String> {
    let spec: Value = serde_json::from_str(spec).ok()?;
    Some(spec.get("owner")?.as_str()?.to_owned())
}

/// The text of an attribute.
pub fn text<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)?.as_s().ok().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of(table: Table, owner: &str, attributes: &[(&str, &str)]) -> bool {
        let row = attributes.iter().map(|(name, text)| ((*name).to_owned(), AttributeValue::S((*text).to_owned())));
        table.is_of(&Owner(owner.to_owned()), &row.collect())
    }

    #[test]
    fn the_rows_of_an_owner_are_told_from_those_of_others() {
        // Names that look like the beginnings of keys, or like names of others.
        for owner in ["me", "a/b", "owner", "system", "datasets", "tasks", "requests", "me@example.com|x y"] {
            let others = ["m", "me2", "a", "b", "a/b/c", "you", &format!("{owner}/x"), &format!("x/{owner}")];
            let rows = |of: &str| {
                [
                    (Table::Jobs, vec![("jobId", "1".to_owned()), ("row", "job".into()), ("owner", of.into())]),
                    (Table::Jobs, vec![("row", "spec".into()), ("spec", format!("{{\"owner\":{}}}", Value::from(of)))]),
                    (Table::Uploads, vec![("fileGuid", "1".into()), ("owner", of.into())]),
                    (Table::Records, vec![("bucket", format!("{of}/d#17")), ("key", "k#1".into())]),
                    (Table::Records, vec![("bucket", format!("{of}/d#dataset")), ("key", "dataset".into())]),
                    (Table::Records, vec![("bucket", format!("{of}#datasets")), ("key", "d".into())]),
                    (Table::Tasks, vec![("scope", format!("tasks#render#{of}")), ("entry", "1.1.1.1".into())]),
                    (Table::Tasks, vec![("scope", "owners#render".into()), ("entry", format!("0a#{of}"))]),
                    (Table::Connections, vec![("scope", "ticket#1".into()), ("owner", of.into())]),
                    (Table::Connections, vec![("scope", format!("watch#{of}")), ("entry", "c".into())]),
                    (Table::Admission, vec![("scope", format!("owner#{of}"))]),
                    (Table::Admission, vec![("scope", format!("uploads#{of}"))]),
                    (Table::Admission, vec![("scope", format!("idempotency#{of}#k#1"))]),
                    (Table::Admission, vec![("scope", format!("dedupe#{of}#{owner}"))]),
                    (Table::Admission, vec![("scope", format!("requests#owner:{of}#ListJobs#7"))]),
                ]
            };
            let told = |of: &str| {
                rows(of).into_iter().map(move |(table, row)| {
                    let row: Vec<(&str, &str)> = row.iter().map(|(name, text)| (*name, text.as_str())).collect();
                    (is_of(table, owner, &row), row.iter().map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>())
                })
            };
            for (mine, row) in told(owner) {
                assert!(mine, "{owner}: {row:?}");
            }
            for other in others.into_iter().filter(|other| *other != owner) {
                for (mine, row) in told(other) {
                    assert!(!mine, "{owner}: {row:?}");
                }
            }
            for scope in ["system", "system#1", "type#me", "breaker#me", "permits#me", "requests#address:192.0.2.7#X#1"]
            {
                assert!(!is_of(Table::Admission, owner, &[("scope", scope)]), "{owner}: {scope}");
            }
        }
    }
}
