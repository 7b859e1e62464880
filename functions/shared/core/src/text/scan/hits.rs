//! Finds certain bytes, 64 of the text at a time.
//!
//! `memchr` is faster where such bytes are rare. But in a row of short cells most of its time goes into beginning a
//! search, and here 64 bytes are one search.

/// Number of bytes examined together.
pub(super) const STRIDE: usize = u64::BITS as usize;

/// Which of these bytes are one of the wanted ones: a bit for each, the lowest one for the first byte.
#[inline]
pub(super) fn bits<const N: usize>(bytes: &[u8; STRIDE], wanted: [u8; N]) -> u64 {
    // The compiler makes vector instructions of this loop.
    let mut hits = [0_u8; STRIDE];
    for (hit, &byte) in hits.iter_mut().zip(bytes) {
        *hit = wanted.iter().fold(0, |hit, &wanted| hit | u8::from(byte == wanted));
    }
    let eights = hits.as_chunks::<8>().0;
    (0..).step_by(8).zip(eights).fold(0, |bits, (shift, &eight)| bits | gathered(eight) << shift)
}

/// The lowest bit of each byte, next to each other. The other bits must be 0.
#[inline]
fn gathered(eight: [u8; 8]) -> u64 {
    // The product shifts the bit of byte n to bit 56 + n, and no two bits of it meet.
    u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The indices of the wanted bytes, in their order.
pub(in crate::text) struct Hits<'a, const N: usize> {
    bytes: &'a [u8],
    wanted: [u8; N],
    stride_start: usize,
    /// Those in the stride that have not been returned yet.
    bits: u64,
}

impl<'a, const N: usize> Hits<'a, N> {
    pub(in crate::text) fn new(bytes: &'a [u8], wanted: [u8; N]) -> Self {
        let mut hits = Self { bytes, wanted, stride_start: 0, bits: 0 };
        hits.restart(0);
        hits
    }

    /// Leaves out what is before this index, which must not be before the last hit.
    #[inline]
    pub(in crate::text) fn skip_to(&mut self, index: usize) {
        match index.checked_sub(self.stride_start) {
            Some(distance) if distance < STRIDE => self.bits &= u64::MAX << distance,
            _ => self.restart(index),
        }
    }

    fn restart(&mut self, index: usize) {
        self.stride_start = index;
        self.bits = self.stride_bits();
    }

    #[inline]
    fn stride_bits(&self) -> u64 {
        let rest = self.bytes.get(self.stride_start..).unwrap_or_default();
        match rest.first_chunk() {
            Some(stride) => bits(stride, self.wanted),
            None => {
                let mut stride = [0; STRIDE];
                stride[..rest.len()].copy_from_slice(rest);
                bits(&stride, self.wanted) & !(u64::MAX << rest.len())
            }
        }
    }
}

impl<const N: usize> Iterator for Hits<'_, N> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            self.stride_start = self.stride_start.saturating_add(STRIDE);
            if self.stride_start >= self.bytes.len() {
                return None;
            }
            self.bits = self.stride_bits();
        }
        let index = self.stride_start + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hits_are_the_bytes_that_a_simple_search_finds(
            bytes in prop::collection::vec(prop::sample::select(&b"\0,,\"\nab\x80\xff"[..]), 0..300),
            from in 0_usize..300,
        ) {
            let wanted = [b',', b'\0', b'\xff'];
            let from = from.min(bytes.len());
            let mut hits = Hits::new(&bytes, wanted);
            hits.skip_to(from);
            let expected: Vec<_> = (from..bytes.len()).filter(|&index| wanted.contains(&bytes[index])).collect();
            prop_assert_eq!(hits.collect::<Vec<_>>(), expected);
        }
    }
}
