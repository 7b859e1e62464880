//! The values of one column, read record by record.

use std::io::{Read, Seek};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parquet::basic::Type as PhysicalType;
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::damaged;
use super::file::File;
use super::footer::{Chunk, place};
use super::pages::{Pages, ReadLimit};
use crate::error::{DecodeError, Place};
use crate::watch::Watch;

/// Maximum number of values that all columns together hold in memory.
const VALUES_HELD: u64 = 128 * 1024;

pub(super) struct Column {
    values: Values,
    max_def: i16,
    max_rep: i16,
    def_levels: Vec<i16>,
    rep_levels: Vec<i16>,
    /// Number of levels in memory.
    levels: usize,
    /// Index of the next level.
    level: usize,
    /// Index after the last level of the current record.
    record_end: usize,
    /// Number of values that were taken.
    value: usize,
    read_limit: Arc<ReadLimit>,
    batch_max: u64,
    watch: Watch,
    place: Place,
}

pub(super) enum Value<'a> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Int96(Int96),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

enum Values {
    Boolean(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Int96(Typed<Int96Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    Bytes(Typed<ByteArrayType>),
    FixedBytes(Typed<FixedLenByteArrayType>),
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Typed<T> {
    fn new(descr: ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        Self { reader: get_typed_column_reader(get_column_reader(descr, pages)), values: Vec::new() }
    }

    /// Reads up to `records` records, which replace those read before. Returns how many records, values and levels.
    fn read(&mut self, records: usize, def: &mut Vec<i16>, rep: &mut Vec<i16>) -> Result<(usize, usize, usize)> {
        self.values.clear();
        self.reader.read_records(records, Some(def), Some(rep), &mut self.values)
    }
}

impl Column {
    pub(super) fn open<R: Read + Seek + Send + 'static>(
        file: &Arc<File<R>>,
        descr: &ColumnDescPtr,
        chunk: Chunk,
        (column, columns): (usize, usize),
        (row_group, first_row): (usize, u64),
    ) -> Self {
        let read_limit = Arc::new(ReadLimit::default());
        let pages = Pages::new(file, Arc::clone(descr), chunk, &read_limit, (column, row_group, first_row));
        Self {
            values: Values::new(descr, Box::new(pages)),
            max_def: descr.max_def_level(),
            max_rep: descr.max_rep_level(),
            def_levels: Vec::new(),
            rep_levels: Vec::new(),
            levels: 0,
            level: 0,
            record_end: 0,
            value: 0,
            read_limit,
            batch_max: (VALUES_HELD / columns as u64).max(16),
            watch: file.watch.clone(),
            place: place(column, row_group),
        }
    }

    /// Moves to the next record. Returns whether there is one. All values of the record before must have been taken.
    pub(super) fn next_record(&mut self) -> std::result::Result<bool, DecodeError> {
        if self.level != self.record_end {
            return Err(self.damaged("its columns contradict each other"));
        }
        if self.level == self.levels {
            self.read().map_err(|error| self.read_error(error))?;
        }
        if self.level == self.levels {
            return Ok(false);
        }
        let later = self.rep_levels.get(self.level + 1..).unwrap_or_default();
        self.record_end = match self.max_rep {
            0 => self.level + 1,
            _ => later.iter().position(|&rep| rep == 0).map_or(self.levels, |distance| self.level + 1 + distance),
        };
        Ok(true)
    }

    /// The definition level of the next value.
    pub(super) fn def_level(&self) -> std::result::Result<i16, DecodeError> {
        match self.level < self.record_end {
            true => Ok(self.def_levels.get(self.level).copied().unwrap_or(0)),
            false => Err(self.damaged("its columns contradict each other")),
        }
    }

    /// The repetition level of the next value; 0 at the end of the record.
    pub(super) fn rep_level(&self) -> i16 {
        match self.level < self.record_end {
            true => self.rep_levels.get(self.level).copied().unwrap_or(0),
            false => 0,
        }
    }

    /// Takes the next value, which must not be null.
    pub(super) fn take(&mut self) -> std::result::Result<Value<'_>, DecodeError> {
        if self.def_level()? != self.max_def {
            return Err(self.damaged("its columns contradict each other"));
        }
        (self.level, self.value) = (self.level + 1, self.value + 1);
        let value = self.values.get(self.value - 1);
        value.ok_or_else(|| damaged(self.place.clone(), "it has fewer values than it declares"))
    }

    /// Skips the next value, which must be null or part of a missing parent.
    pub(super) fn skip_null(&mut self) -> std::result::Result<(), DecodeError> {
        if self.def_level()? == self.max_def {
            return Err(self.damaged("its columns contradict each other"));
        }
        self.level += 1;
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        self.def_levels.clear();
        self.rep_levels.clear();
        (self.level, self.record_end, self.value) = (0, 0, 0);
        let limit = &self.read_limit;
        // Do not read past the end of the open pages: a new page must be checked before more than one record of it is
        // read.
        let count = limit.unread.load(Relaxed).min(limit.batch.load(Relaxed)).min(self.batch_max).max(1);
        let (records, _, levels) = self.values.read(count as usize, &mut self.def_levels, &mut self.rep_levels)?;
        limit.unread.store(limit.unread.load(Relaxed).saturating_sub(records as u64), Relaxed);
        self.levels = levels;
        Ok(())
    }

    fn damaged(&self, problem: &'static str) -> DecodeError {
        damaged(self.place.clone(), problem)
    }

    fn read_error(&self, error: parquet::errors::ParquetError) -> DecodeError {
        self.watch.take_failure().unwrap_or_else(|| DecodeError::Corrupt {
            format: "Parquet file",
            at: self.place.clone(),
            problem: "its values cannot be read",
            source: Some(Box::new(error)),
        })
    }
}

impl Values {
    fn new(descr: &ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        let descr = Arc::clone(descr);
        match descr.physical_type() {
            PhysicalType::BOOLEAN => Self::Boolean(Typed::new(descr, pages)),
            PhysicalType::INT32 => Self::Int32(Typed::new(descr, pages)),
            PhysicalType::INT64 => Self::Int64(Typed::new(descr, pages)),
            PhysicalType::INT96 => Self::Int96(Typed::new(descr, pages)),
            PhysicalType::FLOAT => Self::Float(Typed::new(descr, pages)),
            PhysicalType::DOUBLE => Self::Double(Typed::new(descr, pages)),
            PhysicalType::BYTE_ARRAY => Self::Bytes(Typed::new(descr, pages)),
            PhysicalType::FIXED_LEN_BYTE_ARRAY => Self::FixedBytes(Typed::new(descr, pages)),
        }
    }

    fn read(&mut self, records: usize, def: &mut Vec<i16>, rep: &mut Vec<i16>) -> Result<(usize, usize, usize)> {
        match self {
            Self::Boolean(typed) => typed.read(records, def, rep),
            Self::Int32(typed) => typed.read(records, def, rep),
            Self::Int64(typed) => typed.read(records, def, rep),
            Self::Int96(typed) => typed.read(records, def, rep),
            Self::Float(typed) => typed.read(records, def, rep),
            Self::Double(typed) => typed.read(records, def, rep),
            Self::Bytes(typed) => typed.read(records, def, rep),
            Self::FixedBytes(typed) => typed.read(records, def, rep),
        }
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Boolean(typed) => Value::Boolean(*typed.values.get(index)?),
            Self::Int32(typed) => Value::Int32(*typed.values.get(index)?),
            Self::Int64(typed) => Value::Int64(*typed.values.get(index)?),
            Self::Int96(typed) => Value::Int96(*typed.values.get(index)?),
            Self::Float(typed) => Value::Float(*typed.values.get(index)?),
            Self::Double(typed) => Value::Double(*typed.values.get(index)?),
            Self::Bytes(typed) => Value::Bytes(typed.values.get(index).map(ByteArray::data)?),
            Self::FixedBytes(typed) => {
                let value: &FixedLenByteArray = typed.values.get(index)?;
                Value::Bytes(value.data())
            }
        })
    }
}
