//! The chunks of a tally: each row is in exactly one of them.

use super::{Broken, in_chunk, in_tally};
use crate::model::audit::AuditCode;
use crate::model::chunk_index::ChunkIndex;
use crate::model::tally::{CHUNKS_PER_TALLY, ChunkAddress, Tally};
use crate::text::{Chunk, Position};

/// The rows that a chunk may hold: from its first row up to this one, both included.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub first: u64,
    pub last: u64,
}

/// Checks that a chunk index is that of its tally, and that it continues the one before, which ended at `border`.
pub(super) fn check_index(tally: &Tally, index: &ChunkIndex, border: Option<Position>) -> Result<(), Broken> {
    let Tally { attempt, number, expected, items, start, .. } = tally;
    let listed: u64 = index.chunks.iter().map(|chunk| u64::from(chunk.items)).sum();
    let weights_fit = index.stored.as_ref().is_none_or(|stored| stored.weights.len() == index.chunks.len());
    let is_of_tally = (index.chunks.len(), listed, index.start) == (*expected as usize, *items, *start);
    if !is_of_tally || !weights_fit || index.chunks.len() > CHUNKS_PER_TALLY {
        let message = format!(
            "Tally {number} of attempt {attempt} counts {expected} chunks with {items} items from row {}, but its chunk index \
             lists {} chunks with {listed} items from row {}.",
            start.row,
            index.chunks.len(),
            index.start.row
        );
        return Err(in_tally(AuditCode::ChunkIndexDiffers, message, *attempt, *number));
    }
    let Some(border) = border.filter(|border| border != start) else { return Ok(()) };
    // In a redrive a border's row counts items, and its offset is the row of the last one.
    let repeats = (start.row, start.offset) < (border.row, border.offset);
    let code = if repeats { AuditCode::ChunkRepeated } else { AuditCode::ChunkGap };
    let message = format!(
        "Tally {number} of attempt {attempt} begins at item {} ({}), but the tally before ends at item {} ({}).",
        start.row, start.offset, border.row, border.offset
    );
    Err(in_chunk(code, message, ChunkAddress { attempt: *attempt, tally: *number, index: 0 }))
}

/// Checks that the chunks of a tally follow one another without overlap and, in the first attempt, without gap, up to
/// the end of the index. Returns the rows that each may hold.
pub(super) fn rows_of_chunks(tally: &Tally, index: &ChunkIndex) -> Result<Vec<Rows>, Broken> {
    let is_first = tally.attempt == 1;
    let mut rows = Vec::with_capacity(index.chunks.len());
    let mut next = if is_first { index.start.row } else { index.start.offset.saturating_add(1) };
    let mut offset = if is_first { index.start.offset } else { 0 };
    for (place, chunk) in (0_u8..).zip(&index.chunks) {
        let address = ChunkAddress { attempt: tally.attempt, tally: tally.number, index: place };
        let repeats = chunk.first_row < next || chunk.offset < offset;
        if repeats || (is_first && chunk.first_row > next) {
            let code = if repeats { AuditCode::ChunkRepeated } else { AuditCode::ChunkGap };
            let message = format!(
                "Chunk {place} of tally {} of attempt {} begins at row {} (byte {}), but row {next} (byte {offset}) comes next.",
                tally.number, tally.attempt, chunk.first_row, chunk.offset
            );
            return Err(in_chunk(code, message, address));
        }
        let last = match is_first {
            true => after(chunk) - 1,
            false => index
                .chunks
                .get(usize::from(place) + 1)
                .map_or(index.end.offset, |next| next.first_row.saturating_sub(1)),
        };
        rows.push(Rows { first: chunk.first_row, last });
        next = if is_first { after(chunk) } else { chunk.first_row.saturating_add(1) };
        offset = if is_first { chunk.offset.saturating_add(chunk.length) } else { chunk.offset };
    }
    let items = index.start.row.saturating_add(tally.items);
    let ends = if is_first { Position { offset, row: next } } else { Position { row: items, ..index.end } };
    if ends != index.end || index.end.row != items {
        let message = format!(
            "The chunks of tally {} of attempt {} end before item {}, but its chunk index ends before item {}.",
            tally.number, tally.attempt, ends.row, index.end.row
        );
        return Err(in_tally(AuditCode::ChunkIndexDiffers, message, tally.attempt, tally.number));
    }
    Ok(rows)
}

/// The row after the last one of a chunk of the first attempt.
fn after(chunk: &Chunk) -> u64 {
    chunk.first_row.saturating_add(u64::from(chunk.items.max(1)))
}
