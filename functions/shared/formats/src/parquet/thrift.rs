//! A reader for the part of Thrift's compact protocol that Parquet headers use. The bytes are untrusted.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThriftError {
    /// The bytes end too early.
    Ends,
    Malformed,
}

/// The type code of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Type(u8);

impl Type {
    pub(super) const STRUCT: Self = Self(12);
    const TRUE: Self = Self(1);
    const FALSE: Self = Self(2);
}

/// Maximum nesting depth of skipped values.
const SKIP_DEPTH_MAX: u32 = 16;

/// Reads one value after the other.
#[derive(Clone)]
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Reads a struct. `field` gets the number and type of each field. It reads the value and returns true, or returns
    /// false to skip the value.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, Type) -> Result<bool, ThriftError>,
    ) -> Result<(), ThriftError> {
        let mut id = 0_i16;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            id = match byte >> 4 {
                0 => i16::try_from(self.integer()?).map_err(|_| ThriftError::Malformed)?,
                delta => id.checked_add(delta.into()).ok_or(ThriftError::Malformed)?,
            };
            let kind = Type(byte & 0x0F);
            if !field(self, id, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    /// Reads the start of a list: the number of its values and their type. The number is checked against the remaining
    /// bytes, because each value takes at least one byte.
    pub(super) fn list(&mut self) -> Result<(usize, Type), ThriftError> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| ThriftError::Malformed)?,
            count => count.into(),
        };
        match count <= self.bytes.len() - self.at {
            true => Ok((count, Type(byte & 0x0F))),
            false => Err(ThriftError::Ends),
        }
    }

    /// Reads an integer of any width.
    pub(super) fn integer(&mut self) -> Result<i64, ThriftError> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads bytes or text.
    pub(super) fn binary(&mut self) -> Result<&'a [u8], ThriftError> {
        let length = usize::try_from(self.varint()?).map_err(|_| ThriftError::Malformed)?;
        self.take(length)
    }

    /// The value of a boolean field. The type code contains it.
    pub(super) fn boolean(kind: Type) -> bool {
        kind == Type::TRUE
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ThriftError::Malformed)
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ThriftError> {
        let end = self.at.checked_add(length).ok_or(ThriftError::Malformed)?;
        let bytes = self.bytes.get(self.at..end).ok_or(ThriftError::Ends)?;
        self.at = end;
        Ok(bytes)
    }

    fn skip(&mut self, kind: Type, depth: u32) -> Result<(), ThriftError> {
        if depth > SKIP_DEPTH_MAX {
            return Err(ThriftError::Malformed);
        }
        match kind.0 {
            1 | 2 => {}
            3 => _ = self.byte()?,
            4..=6 => _ = self.varint()?,
            7 => _ = self.take(8)?,
            8 => _ = self.binary()?,
            9 | 10 => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    self.skip_element(kind, depth + 1)?;
                }
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.skip_element(Type(kinds >> 4), depth + 1)?;
                    self.skip_element(Type(kinds & 0x0F), depth + 1)?;
                }
            }
            12 => self.fields(|thrift, _, kind| thrift.skip(kind, depth + 1).map(|()| true))?,
            13 => _ = self.take(16)?,
            _ => return Err(ThriftError::Malformed),
        }
        Ok(())
    }

    /// Skips an element of a list or map. A boolean takes one byte there, because there is no field type to contain it.
    fn skip_element(&mut self, kind: Type, depth: u32) -> Result<(), ThriftError> {
        match kind {
            Type::TRUE | Type::FALSE => self.byte().map(|_| ()),
            kind => self.skip(kind, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_that_are_not_read_are_skipped() {
        // 1: i32 -3; 3: list of two bools; 4: map of one byte to one string; 20: i64 5, its number written out; 21:
        // true
        let bytes = b"\x15\x05\x29\x21\x01\x02\x1b\x01\x38\x07\x02ab\x06\x28\x0a\x11\x00rest";
        let (mut first, mut last, mut flag) = (0, 0, false);
        let mut thrift = Thrift::new(bytes);
        thrift
            .fields(|thrift, id, kind| {
                match id {
                    1 => first = thrift.integer()?,
                    20 => last = thrift.integer()?,
                    21 => flag = Thrift::boolean(kind),
                    _ => return Ok(false),
                }
                Ok(true)
            })
            .unwrap();
        assert_eq!((first, last, flag, thrift.at()), (-3, 5, true, bytes.len() - 4));
        for end in 0..bytes.len() - 4 {
            assert_eq!(Thrift::new(&bytes[..end]).fields(|_, _, _| Ok(false)), Err(ThriftError::Ends));
        }
    }

    #[test]
    fn values_that_are_nested_too_deeply_are_malformed() {
        assert_eq!(Thrift::new(&[0x1C; 1000]).fields(|_, _, _| Ok(false)), Err(ThriftError::Malformed));
        assert_eq!(Thrift::new(&[0x19; 1000]).fields(|_, _, _| Ok(false)), Err(ThriftError::Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Thrift::new(&bytes).fields(|_, _, _| Ok(false));
        }
    }
}
