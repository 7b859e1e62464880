use std::collections::BTreeSet;

use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::details_until;
use rowmill_core::model::tally::{CHUNKS_PER_TALLY, Counts, Mark, Tally, Totals};
use rowmill_core::ports::{BoxError, PortError};
use rowmill_core::text::Position;
use serde::{Deserialize, Serialize};

use super::usage_row::UsageRow;
use crate::adapters::dynamodb::attributes::{Item, binary, expiry_seconds, from_item, from_millis, to_item};

/// When the rows other than the job row expire, in seconds.
pub fn details_expiry(job: JobGuid) -> i64 {
    expiry_seconds(details_until(job))
}

/// The sort key of a tally. Numbers are padded with zeros, so that tallies sort by number.
pub fn tally_key(attempt: u32, number: u32) -> String {
    format!("tally#{attempt}#{number:08}")
}

pub fn totals_key(attempt: u32) -> String {
    format!("totals#{attempt}")
}

/// The attribute that holds a chunk's mark.
pub fn mark_name(index: u8) -> String {
    format!("c{index}")
}

/// The attributes of a tally row without its marks. The names are short: the row with all marks costs one write unit.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TallyRow {
    job_id: JobGuid,
    row: String,
    expected: u32,
    items: u64,
    done: u32,
    succeeded: u64,
    failed: u64,
    skipped: u64,
    bytes: u64,
    #[serde(flatten)]
    usage: UsageRow,
    at: i64,
    start_offset: u64,
    start_row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<RunId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    next: bool,
    expires_at: i64,
}

/// Encodes a tally row.
///
/// # Errors
/// None in practice: every field can be encoded.
pub fn tally_item(doing: &'static str, job: JobGuid, tally: &Tally) -> Result<Item, PortError> {
    let row = TallyRow {
        job_id: job,
        row: tally_key(tally.attempt, tally.number),
        expected: tally.expected,
        items: tally.items,
        done: tally.done,
        succeeded: tally.counts.succeeded,
        failed: tally.counts.failed,
        skipped: tally.counts.skipped,
        bytes: tally.bytes,
        usage: tally.usage.into(),
        at: tally.at.as_millisecond(),
        start_offset: tally.start.offset,
        start_row: tally.start.row,
        by: tally.stored_by,
        next: tally.next_sent,
        expires_at: details_expiry(job),
    };
    let mut item = to_item(doing, &row)?;
    let marks = (0..).zip(&tally.marks);
    item.extend(marks.filter_map(|(index, mark)| Some((mark_name(index), binary((*mark)?.to_bytes())))));
    Ok(item)
}

/// Decodes a tally row.
pub fn tally_of(doing: &'static str, mut item: Item) -> Result<Tally, PortError> {
    let mut marks = [None; CHUNKS_PER_TALLY];
    for (index, mark) in (0..).zip(&mut marks) {
        if let Some(value) = item.remove(&mark_name(index)) {
            let read = value.as_b().ok().and_then(|bytes| Mark::from_bytes(bytes.as_ref()));
            *mark = Some(read.ok_or_else(|| PortError::invalid(doing, format!("attribute c{index} is no mark")))?);
        }
    }
    let row: TallyRow = from_item(doing, item)?;
    tally_of_row(&row, marks).map_err(|error| PortError::invalid(doing, error))
}

fn tally_of_row(row: &TallyRow, marks: [Option<Mark>; CHUNKS_PER_TALLY]) -> Result<Tally, BoxError> {
    let mut key = row.row.split('#').skip(1);
    let mut part = || key.next().ok_or("no key of a tally");
    Ok(Tally {
        attempt: part()?.parse()?,
        number: part()?.parse()?,
        expected: row.expected,
        items: row.items,
        done: row.done,
        counts: Counts { succeeded: row.succeeded, failed: row.failed, skipped: row.skipped },
        bytes: row.bytes,
        usage: row.usage.into(),
        at: from_millis(row.at)?,
        start: Position { offset: row.start_offset, row: row.start_row },
        stored_by: row.by,
        next_sent: row.next,
        marks,
    })
}

/// The attributes of a totals row. Each is absent before its first write.
#[derive(Deserialize)]
struct TotalsRow {
    #[serde(default)]
    closed: BTreeSet<u32>,
    #[serde(default)]
    items: u64,
    #[serde(default)]
    succeeded: u64,
    #[serde(default)]
    failed: u64,
    #[serde(default)]
    skipped: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(flatten)]
    usage: UsageRow,
    #[serde(default, rename = "final")]
    final_tallies: Option<u32>,
    #[serde(default)]
    at: Option<i64>,
}

/// Decodes a totals row.
pub fn totals_of(doing: &'static str, attempt: u32, item: Item) -> Result<Totals, PortError> {
    let row: TotalsRow = from_item(doing, item)?;
    Ok(Totals {
        attempt,
        closed: row.closed,
        items: row.items,
        counts: Counts { succeeded: row.succeeded, failed: row.failed, skipped: row.skipped },
        bytes: row.bytes,
        usage: row.usage.into(),
        final_tallies: row.final_tallies,
        at: row.at.map(from_millis).transpose().map_err(|error| PortError::invalid(doing, error))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::dynamodb::attributes::size_of;
    use jiff::Timestamp;
    use rowmill_core::model::cost::Usage;
    use rowmill_core::model::tally::MarkKind;
    use uuid::Uuid;

    fn job() -> JobGuid {
        JobGuid(Uuid::from_u128((1_700_000_000_000 << 80) | (7 << 76) | (0b10 << 62)))
    }

    fn full() -> Tally {
        // A chunk has u32::MAX items at most.
        let items = 64 * u64::from(u32::MAX) - 1;
        let mark = |index| Some(Mark { kind: MarkKind::HasOutputs, run: RunId::from_bytes([index; 7]) });
        Tally {
            attempt: u32::MAX,
            number: 99_999_999,
            expected: 64,
            items,
            done: 64,
            counts: Counts { succeeded: items, failed: items, skipped: items },
            bytes: u64::MAX,
            // More than 64 chunks can use: 900 seconds of 10 GB are 10 digits, and each chunk has a few runs.
            usage: Usage {
                lambda_mb_ms: 999_999_999_999_999,
                ..Usage::NONE.zip_with(Usage::NONE, |_, _| 999_999_999_999)
            },
            at: Timestamp::from_millisecond(99_999_999_999_999).unwrap(),
            start: Position { offset: u64::MAX, row: u64::MAX },
            stored_by: Some(RunId::from_bytes([255; 7])),
            next_sent: true,
            marks: std::array::from_fn(|index| mark(u8::try_from(index).unwrap())),
        }
    }

    #[test]
    fn the_biggest_tally_costs_one_write_unit() {
        let item = tally_item("", job(), &full()).unwrap();
        assert_eq!(item.len(), 64 + 15 + 8);
        let size = size_of(&item);
        assert!(size <= 1024, "{size} bytes");
    }

    #[test]
    fn a_tally_reads_back_as_it_was_written() {
        let mut tally = full();
        assert_eq!(tally_of("", tally_item("", job(), &tally).unwrap()).unwrap(), tally);
        tally.marks[63] = None;
        tally.stored_by = None;
        tally.usage = Usage::NONE;
        tally.attempt = 1;
        tally.number = 0;
        assert_eq!(tally_of("", tally_item("", job(), &tally).unwrap()).unwrap(), tally);
    }

    #[test]
    fn tallies_sort_by_number() {
        assert!(tally_key(1, 9) < tally_key(1, 10));
        assert!(tally_key(1, 65_535) < tally_key(1, 99_999_999));
    }

    #[test]
    fn a_mark_with_an_unknown_format_is_invalid() {
        let mut item = tally_item("", job(), &full()).unwrap();
        item.insert("c7".into(), binary([1, 2]));
        assert!(matches!(tally_of("", item), Err(PortError::Invalid { .. })));
    }

    #[test]
    fn totals_without_a_row_are_empty() {
        let totals = totals_of("", 3, Item::new()).unwrap();
        assert_eq!(totals, Totals { attempt: 3, ..Totals::default() });
    }
}
