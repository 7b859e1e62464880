//! Counts records and values in encoded pages, before the decoders allocate memory for them.
//!
//! This is necessary because a few bytes can encode a record of a billion values, and a header can declare as many.

/// The records of a page, counted from its repetition levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Records {
    /// Number of records that begin in the page.
    pub(super) begun: u64,
    /// Number of values of the longest record, including its values in earlier pages.
    pub(super) longest: u64,
    /// Number of values so far of the last record, which can continue on the next page.
    pub(super) open: u64,
}

/// Counts the records in `count` repetition levels of `bits` bits each, in Parquet's hybrid of run-length and
/// bit-packed encoding. `open` is the number of values of the first record in the pages before. `None` if there are too
/// few levels.
pub(super) fn count_records(mut levels: &[u8], bits: u32, mut count: u64, open: u64) -> Option<Records> {
    let mut records = Records { open, ..Records::default() };
    while count > 0 {
        let header = varint(&mut levels)?;
        if header & 1 == 0 {
            let run = (header >> 1).min(count);
            let value = levels.split_off(..bits.div_ceil(8) as usize)?;
            records.add(value.iter().any(|&byte| byte != 0), run);
            count -= run;
        } else {
            let groups = header >> 1;
            let packed = levels.split_off(..usize::try_from(groups.checked_mul(bits.into())?).ok()?)?;
            for at in 0..count.min(groups * 8) {
                let is_inner = (0..u64::from(bits)).map(|bit| at * u64::from(bits) + bit);
                records.add(is_inner.into_iter().any(|bit| packed[bit as usize / 8] >> (bit % 8) & 1 == 1), 1);
            }
            count -= count.min(groups * 8);
        }
    }
    Some(records)
}

impl Records {
    /// Adds values that continue the current record (`is_inner`), or that each begin a new record.
    fn add(&mut self, is_inner: bool, count: u64) {
        if count == 0 {
            return;
        }
        if is_inner {
            self.open += count;
        } else {
            self.begun += count;
            self.open = 1;
        }
        self.longest = self.longest.max(self.open);
    }
}

/// The number of values in a run of delta-encoded integers, and the offset of its end; `None` if the run is incomplete.
pub(super) fn delta_run(data: &[u8]) -> Option<(u64, usize)> {
    let mut rest = data;
    let (block, minis, count) = (varint(&mut rest)?, varint(&mut rest)?, varint(&mut rest)?);
    let _first = varint(&mut rest)?;
    let values = block.checked_div(minis).filter(|&values| values > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _least = varint(&mut rest)?;
        let widths = rest.split_off(..usize::try_from(minis).ok()?)?;
        for &width in widths {
            if left > 0 {
                let bytes = values.checked_mul(width.into())? / 8;
                rest.split_off(..usize::try_from(bytes).ok()?)?;
                left = left.saturating_sub(values);
            }
        }
    }
    Some((count, data.len() - rest.len()))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_in_runs_and_in_packed_bits() {
        // Bit-packed: 0 1 1 0 1 0 0 0, then a run of ten ones.
        let levels = [0b11, 0b0001_0110, 20, 1];
        assert_eq!(count_records(&levels, 1, 18, 0), Some(Records { begun: 5, longest: 11, open: 11 }));
        // Only `count` levels are counted. Levels can continue the record of the page before.
        assert_eq!(count_records(&levels, 1, 3, 0), Some(Records { begun: 1, longest: 3, open: 3 }));
        let run_of_ones = [20, 1];
        assert_eq!(count_records(&run_of_ones, 1, 10, 7), Some(Records { begun: 0, longest: 17, open: 17 }));
        // Two bits each: 0 2 1 0.
        assert_eq!(count_records(&[0b11, 0b0001_1000, 0], 2, 4, 0), Some(Records { begun: 2, longest: 3, open: 1 }));
        assert_eq!(count_records(&levels, 1, 19, 0), None);
        assert_eq!(count_records(&[0xFF; 9], 1, 1, 0), None);
    }

    #[test]
    fn a_record_of_a_billion_values_is_detected_in_a_few_bytes() {
        let mut levels = vec![2, 0];
        let mut header = 2_000_000_000_u64;
        while header >= 0x80 {
            levels.push(header as u8 | 0x80);
            header >>= 7;
        }
        levels.extend([header as u8, 1]);
        let records = count_records(&levels, 1, 1_000_000_001, 0).unwrap();
        assert_eq!((records.begun, records.longest), (1, 1_000_000_001));
    }

    #[test]
    fn a_delta_run_is_measured_without_decoding_it() {
        // Blocks of 128 in four parts, five values, first 7; least delta 1, widths 2 0 0 0, eight bytes.
        let run = [0x80, 1, 4, 5, 14, 2, 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 99, 99];
        assert_eq!(delta_run(&run), Some((5, 18)));
        assert_eq!(delta_run(&run[..17]), None);
        assert_eq!(delta_run(&[0x80, 1, 4, 1, 14]), Some((1, 5)));
        assert_eq!(delta_run(&[0x80, 1, 0, 5, 14, 2]), None);
        assert_eq!(delta_run(&[0x80, 1, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 2, 0, 0, 0, 0]), None);
    }
}
