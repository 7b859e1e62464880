//! The stored forms of fields of the job row, for `#[serde(with)]`.
//!
//! `split`, `lease` and `usage` are several attributes of the row, so they also need `flatten`. The others are one.

use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::{Lease, SplitState};
use rowmill_core::text::Position;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// A value as JSON text.
pub mod json {
    use serde::de::DeserializeOwned;

    use super::*;

    pub fn serialize<T: Serialize, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        let text = value.as_ref().map(serde_json::to_string).transpose();
        text.map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.as_deref().map(serde_json::from_str).transpose().map_err(de::Error::custom)
    }
}

/// A time in milliseconds since 1970.
pub mod millis {
    use jiff::Timestamp;

    use super::*;
    use crate::adapters::dynamodb::attributes::from_millis;

    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        at.as_millisecond().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        from_millis(i64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A time in milliseconds since 1970, if there is one.
pub mod optional_millis {
    use jiff::Timestamp;

    use super::*;
    use crate::adapters::dynamodb::attributes::from_millis;

    pub fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(|at| at.as_millisecond()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::deserialize(deserializer)?.map(from_millis).transpose().map_err(de::Error::custom)
    }
}

/// When DynamoDB may delete the row, in seconds since 1970.
pub mod expiry {
    use jiff::Timestamp;

    use super::*;
    use crate::adapters::dynamodb::attributes::{expiry_seconds, from_seconds};

    pub fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(expiry_seconds).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::deserialize(deserializer)?.map(from_seconds).transpose().map_err(de::Error::custom)
    }
}

/// The state of the split: six attributes.
pub mod split {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attributes {
        tallies: u32,
        dispatched: u32,
        cursor_offset: u64,
        cursor_row: u64,
        split_done: bool,
        #[serde(default)]
        at_end: bool,
    }

    pub fn serialize<S: Serializer>(split: &SplitState, serializer: S) -> Result<S::Ok, S::Error> {
        let &SplitState { tallies, dispatched, cursor, done, at_end } = split;
        let Position { offset: cursor_offset, row: cursor_row } = cursor;
        let split_done = done;
        Attributes { tallies, dispatched, cursor_offset, cursor_row, split_done, at_end }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SplitState, D::Error> {
        let Attributes { tallies, dispatched, cursor_offset, cursor_row, split_done, at_end } =
            Attributes::deserialize(deserializer)?;
        let cursor = Position { offset: cursor_offset, row: cursor_row };
        Ok(SplitState { tallies, dispatched, cursor, done: split_done, at_end })
    }
}

/// The lease: two attributes, or none.
pub mod lease {
    use jiff::Timestamp;

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attributes {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_holder: Option<RunId>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_millis")]
        lease_until: Option<Timestamp>,
    }

    pub fn serialize<S: Serializer>(lease: &Option<Lease>, serializer: S) -> Result<S::Ok, S::Error> {
        let (lease_holder, lease_until) = lease.map(|Lease { holder, until }| (holder, until)).unzip();
        Attributes { lease_holder, lease_until }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Lease>, D::Error> {
        let Attributes { lease_holder, lease_until } = Attributes::deserialize(deserializer)?;
        Ok(lease_holder.zip(lease_until).map(|(holder, until)| Lease { holder, until }))
    }
}

/// The usage: eight attributes, of which those that are zero are left out.
pub mod usage {
    use rowmill_core::model::cost::Usage;

    use super::super::usage_row::UsageRow;
    use super::*;

    pub fn serialize<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
        UsageRow::from(*usage).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usage, D::Error> {
        UsageRow::deserialize(deserializer).map(Usage::from)
    }
}
